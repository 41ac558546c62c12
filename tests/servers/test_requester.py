from __future__ import annotations

from typing import Any

import pytest

from adapters.tool_servers.requester import KEY, told_requester
from servers.requester import Requester, Requesters, RequesterUnknown

SECRET = "one that a program made, and 32 characters long"
NOW = 1_795_000_000
ARGUMENTS: dict[str, Any] = {"title": "Käse 🧀", "due": None, "more": [1, 2.5, True]}


def told(person: str = "slack:T1:U2", server: str = "tasks", secret: str = SECRET, at: int = NOW) -> dict[str, Any]:
    """What a host says of a call of `add_task` with these arguments."""
    said: dict[str, Any] = told_requester(person, server, "add_task", ARGUMENTS, secret=secret, at=at)[KEY]
    return said


def asked(said: Any, tool: str = "add_task", arguments: dict[str, Any] = ARGUMENTS) -> str:
    """Who asks, as a server understands it."""
    return Requesters("tasks", SECRET, now=lambda: NOW).requester_of(said, tool, arguments).person


def test_what_the_host_has_signed_is_believed_for_five_minutes() -> None:
    assert [asked(told(at=NOW + seconds)) for seconds in (-300, 0, 300)] == ["slack:T1:U2"] * 3
    assert asked(told(), arguments=dict(reversed(ARGUMENTS.items()))) == "slack:T1:U2"


FORGED: dict[str, tuple[Any, str]] = {
    "nothing": (None, "does not say who asks"),
    "another secret": (told(secret=SECRET + "!"), "is not signed"),
    "another person": ({**told(), "person": "slack:T1:U3"}, "is not signed"),
    "nobody": (told(person=""), "is not signed"),
    "another time": ({**told(), "at": NOW + 1}, "is not signed"),
    "another server that the same secret was given to": (told(server="documents"), "was said to another server"),
    "another server's name only": ({**told(server="documents"), "server": "tasks"}, "is not signed"),
    "no signature": ({**told(), "signature": ""}, "is not signed"),
    "a signature of other letters": ({**told(), "signature": "ü" * 64}, "is not signed"),
    "long ago": (told(at=NOW - 301), "more than 5 minutes from now"),
    "long from now": (told(at=NOW + 301), "more than 5 minutes from now"),
    "a text": ("slack:T1:U2", "not of the kind"),
    "a signature left out": ({"person": "slack:T1:U2"}, "not of the kind"),
    "a time that is none": ({**told(), "at": str(NOW)}, "not of the kind"),
    "more than is signed": ({**told(), "admin": True}, "not of the kind"),
}


@pytest.mark.parametrize(("said", "sentence"), FORGED.values(), ids=FORGED.keys())
def test_whatever_else_is_refused_in_a_sentence(said: Any, sentence: str) -> None:
    with pytest.raises(RequesterUnknown, match=sentence):
        asked(said)


def test_what_was_said_of_one_call_holds_for_no_other() -> None:
    with pytest.raises(RequesterUnknown, match="not for this call"):
        asked(told(), tool="delete_task")
    for other in ({}, {**ARGUMENTS, "due": ""}, {**ARGUMENTS, "more": [True, 2.5, 1]}):
        with pytest.raises(RequesterUnknown, match="not for this call"):
            asked(told(), arguments=other)


def test_a_server_without_a_secret_serves_whoever_it_is_and_nobody_by_hearsay() -> None:
    assert Requesters("tasks").requester_of(None, "add_task", ARGUMENTS).person == ""
    with pytest.raises(RequesterUnknown, match="started without COUNTERSIGN_REQUESTER_SECRET"):
        Requesters("tasks").requester_of(told(), "add_task", ARGUMENTS)


@pytest.mark.parametrize("secret", ["", "x" * 31])
def test_a_secret_that_can_be_guessed_is_none(secret: str) -> None:
    with pytest.raises(ValueError, match="too short"):
        Requesters("tasks", secret)


FILES = {"file_1": {"name": "a.txt", "mediaType": "text/plain", "text": "words"}}


def placed(channel: str | None = "slack:T1:C1", files: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a host says of a call in a channel, with files."""
    made = told_requester(
        "slack:T1:U2", "tasks", "add_task", ARGUMENTS, secret=SECRET, at=NOW, channel=channel, files=files
    )
    said: dict[str, Any] = made[KEY]
    return said


def understood(said: Any, files: dict[str, Any] | None = None) -> Requester:
    return Requesters("tasks", SECRET, now=lambda: NOW).requester_of(said, "add_task", ARGUMENTS, files)


def test_in_which_channel_they_ask_is_signed_too() -> None:
    assert understood(placed()) == Requester("slack:T1:U2", "slack:T1:C1")
    assert understood(placed("")) == Requester("slack:T1:U2", "")
    assert understood(placed(None)) == Requester("slack:T1:U2", None)
    without = {name: value for name, value in placed().items() if name != "channel"}
    elsewhere, nowhere = {**placed(), "channel": "slack:T1:C2"}, {**placed(), "channel": ""}
    for forged in (elsewhere, nowhere, without, {**told(), "channel": ""}):
        with pytest.raises(RequesterUnknown, match="is not signed"):
            understood(forged)


def test_files_are_those_that_the_host_handed_over() -> None:
    assert understood(placed(files=FILES), FILES).person == "slack:T1:U2"
    other = {"file_1": {**FILES["file_1"], "text": "other words"}}
    for said, files in ((placed(files=FILES), other), (placed(files=FILES), None), (placed(), FILES)):
        with pytest.raises(RequesterUnknown, match="is not signed"):
            understood(said, files)
    with pytest.raises(RequesterUnknown, match="was started without"):
        Requesters("tasks").requester_of(None, "add_task", ARGUMENTS, FILES)
