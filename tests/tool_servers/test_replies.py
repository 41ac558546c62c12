"""What it means that a call got an error, or no answer. Rule 4: only a protocol says that nothing was done."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.tool_servers.outcomes import (
    AnswerContext,
    FaultKind,
    RequestFault,
    SessionLost,
    outcome_of_error,
    outcome_of_fault,
)
from graph.ports import AccountNeeded, Failed, NotSent, OutcomeUnknown, SignInNeeded


def outcome(code: int, message: str = "no", data: Any = None) -> Any:
    return outcome_of_error(code, message, data, AnswerContext("drive"))


@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32000, -31901, -31902, -31903, -31904, -31905])
def test_an_error_of_the_server_is_a_failure_whatever_its_code(code: int) -> None:
    assert outcome(code) == Failed("drive reported an error: no")


@pytest.mark.parametrize(
    ("kind", "means"),
    [
        (FaultKind.NOTHING_DONE, Failed("drive no. Nothing was done.")),
        (FaultKind.SIGN_IN, Failed("drive no. Nothing was done.")),
        (FaultKind.NOT_SENT, NotSent("no")),
    ],
)
def test_what_proves_that_nothing_was_done(kind: FaultKind, means: object) -> None:
    assert outcome_of_fault(RequestFault(kind, "no"), AnswerContext("drive")) == means


def test_a_challenge_to_somebodys_account_is_a_sign_in() -> None:
    reading = AnswerContext("drive", owner="web:ana", connection="google")
    fault = RequestFault(FaultKind.SIGN_IN, "no", challenge="Bearer")
    assert outcome_of_fault(fault, reading) == AccountNeeded("google", "Bearer")


def test_everything_else_leaves_the_call_open_with_what_the_server_said_masked_and_bounded() -> None:
    said = "half done:\n order 17, token=abcdefghijkl " + "x" * 1_000
    fault = RequestFault(FaultKind.NO_ANSWER, "HTTP 422", said)
    got = outcome_of_fault(fault, AnswerContext("drive", owner="web:ana"))
    assert isinstance(got, OutcomeUnknown)
    assert "half done: order 17, token=[redacted] xxx" in got.text
    assert len(got.text) < 700
    assert got.owner == "web:ana"
    lost = outcome_of_fault(RequestFault(FaultKind.SESSION_ENDED, "HTTP 404", "no customer"), AnswerContext("drive"))
    assert isinstance(lost, SessionLost)
    assert "no customer" in lost.otherwise.text


def test_a_lost_connection_leaves_the_call_open() -> None:
    assert isinstance(outcome(-32000, "Connection closed"), OutcomeUnknown)


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
