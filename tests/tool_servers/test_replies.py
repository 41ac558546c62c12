"""What an error in reply to a call means."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.tool_servers.outcomes import Reading, outcome_of_error
from adapters.tool_servers.replies import Fault, NotSent
from graph.ports import BrokeOff, Failed, SignInNeeded


def outcome(code: int, message: str = "no", data: Any = None) -> Any:
    return outcome_of_error(code, message, data, Reading("drive"))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (-32601, Failed),
        (-32602, Failed),
        (-32603, Failed),
        (-32000, Failed),
        (Fault.REFUSED, Failed),
        (Fault.SIGN_IN, Failed),
        (Fault.NO_ANSWER, BrokeOff),
        (Fault.NOT_SENT, NotSent),
        (Fault.SESSION_ENDED, NotSent),
    ],
)
def test_an_error_leaves_the_call_open_only_when_the_server_did_not_answer(code: int, kind: type) -> None:
    assert isinstance(outcome(code), kind)


def test_a_lost_connection_leaves_the_call_open() -> None:
    assert isinstance(outcome(-32000, "Connection closed"), BrokeOff)


def test_a_servers_error_message_is_shown_without_secrets() -> None:
    assert outcome(-32603, "bad token=abcdefgh\x07").text == "drive reported an error: bad token=[redacted]"


def test_a_link_to_be_opened_is_a_sign_in() -> None:
    data = {
        "elicitations": [{"url": "https://drive.test/c?e=1", "message": "Connect\nyour drive", "elicitationId": "e1"}]
    }
    assert outcome(-32042, "x", data) == SignInNeeded("https://drive.test/c?e=1", "Connect your drive", "e1")


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "https://a\nb/", "http://[", 7]
)
def test_a_link_that_is_none_is_not_passed_on(url: Any) -> None:
    got = outcome(-32042, "x", {"elicitations": [{"url": url}]})
    assert isinstance(got, Failed)
    assert str(url) not in got.text


@pytest.mark.parametrize(
    "data", [None, [], {}, {"elicitations": None}, {"elicitations": "https://x/"}, {"elicitations": [7]}]
)
def test_a_sign_in_without_a_link_fails(data: Any) -> None:
    assert isinstance(outcome(-32042, "x", data), Failed)


def test_the_first_usable_link_is_taken() -> None:
    data = {"elicitations": [{"url": "ftp://a/"}, {"url": "https://b.test/"}]}
    assert outcome(-32042, "Sign in", data) == SignInNeeded("https://b.test/", "Sign in", None)
