"""Entries as events of OCSF, held against the published schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bot.audit.entries import BEGINNING, CallEnd, Link, VoteCast, hash_of
from bot.audit.ocsf import LogSource, event_of
from tests.audit.calls import NOON, READING, chain, ended, judged, tool

SOURCE = LogSource("0.1.0", "https://bot.example.com")
SCHEMA = Draft202012Validator(json.loads(Path(__file__).with_name("ocsf_1_8_0.json").read_text()))
VOTE = VoteCast(1, "web:ben", "Ben", "approve", "any", "", NOON)
UNMADE: dict[str, Any] = {"attempt": None, "output": None, "duration": None}
OLGA = "Olga <web:olga> (operator)"
OPERATORS: dict[str, Any] = {"call_id": "", "server": "", "tool": "", "arguments": {}, "judged": None, **UNMADE}


def event(end: CallEnd, source: LogSource = SOURCE) -> dict[str, Any]:
    """The event of a call, by way of JSON."""
    sent: dict[str, Any] = json.loads(json.dumps(event_of(chain(end)[0], source, NOON)))
    return sent


ENDS = [
    ended(votes=[VOTE]),
    ended(about=READING),
    ended(judged=judged(tool(), {}, client="Some program", agent="")),
    *(ended(status=status, **UNMADE, note="no") for status in ("denied", "rejected", "expired", "superseded")),
    *(ended(status=status, **UNMADE) for status in ("withdrawn", "limited", "skipped", "failed")),
    ended(status="failed"),
    ended(status="unknown", output=None),
    ended(status="done", settled={"choice": "it_was_done", "by": "Ana <web:ana>"}),
    ended(judged=None, server="", tool="nothing_there", status="failed", **UNMADE),
    ended(status="looked up", attempt=None),
    ended(status="looked", settled={"choice": "looked at what is hidden", "by": "Ben <web:ben>"}, **UNMADE),
    ended(
        status="read", settled={"choice": "looked at the audit log", "by": "Olga <web:olga> (operator)"}, **OPERATORS
    ),
    ended(status="acted", settled={"choice": "stopped everything", "by": "Olga <web:olga> (operator)"}, **OPERATORS),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.status)
@pytest.mark.parametrize("source", [SOURCE, LogSource("", None)], ids=["known", "unknown"])
def test_every_kind_of_entry_is_an_event_of_the_published_schema(end: CallEnd, source: LogSource) -> None:
    assert [error.message for error in SCHEMA.iter_errors(event(end, source))] == []


def test_the_schema_finds_an_event_that_is_none() -> None:
    wrong = {**event(ended()), "severity_id": 12, "actor": {}, "surprise": 1}
    del wrong["time"]
    assert len(list(SCHEMA.iter_errors(wrong))) == 4


def test_an_event_has_the_entry_letter_by_letter_and_its_place_in_the_chain() -> None:
    first, second = chain(ended(1), ended(2, arguments={"what": "Lämpchen 💡"}))
    sent = json.loads(json.dumps(event_of(second, SOURCE, NOON)))
    assert sent["raw_data"] == second.entry
    assert sent["unmapped"]["chain"] == {"seq": 2, "previous": first.hash, "hash": second.hash}
    assert hash_of(first.hash, 2, sent["raw_data"]) == sent["metadata"]["uid"]


def test_an_event_says_who_called_what_by_which_rule_and_how_it_ended() -> None:
    sent = event(ended(status="rejected", votes=[replace(VOTE, verb="reject")], **UNMADE))
    assert sent["actor"]["user"]["uid"] == "web:ana"
    assert (sent["api"]["service"]["name"], sent["api"]["operation"]) == ("workshop", "make")
    assert (sent["status_code"], sent["action"], sent["disposition"]) == ("rejected", "Denied", "Rejected")
    assert sent["authorizations"][0]["decision"] == "ask"
    assert sent["unmapped"]["entry"]["votes"][0]["person"] == "web:ben"
    assert sent["time"] == round((NOON + 1) * 1000)


def test_who_looked_at_what_is_hidden_is_who_did_it() -> None:
    (looked,) = (end for end in ENDS if end.status == "looked")
    assert event(looked)["actor"]["user"]["uid"] == "web:ben"


def test_what_only_reads_is_an_activity_of_reading() -> None:
    assert (event(ended(about=READING))["type_uid"], event(ended())["type_uid"]) == (600302, 600399)


@pytest.mark.parametrize("text", ['{"status":"done"}', "no JSON", ""])
def test_an_entry_that_was_changed_is_passed_on_as_it_is_and_raises_an_alert(text: str) -> None:
    touched = replace(chain(ended())[0], entry=text)
    sent = event_of(touched, SOURCE, NOON)
    assert (sent["severity"], sent["is_alert"], sent["raw_data"]) == ("High", True, text)
    assert sent["unmapped"]["chain"]["hash"] == touched.hash
    assert [error.message for error in SCHEMA.iter_errors(sent)] == []


def test_what_a_database_file_holds_instead_of_text_is_passed_on_as_text() -> None:
    blob: Any = b"\xff\x00"
    sent = json.loads(json.dumps(event_of(replace(chain(ended())[0], entry=blob, hash=blob), SOURCE, NOON)))
    assert [error.message for error in SCHEMA.iter_errors(sent)] == []


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", "[" * 100_000, '{"status":[]}'])
def test_what_is_no_entry_although_its_hash_fits_is_passed_on_too(text: str) -> None:
    forged = Link(1, "", text, BEGINNING, hash_of(BEGINNING, 1, text))
    sent = event_of(forged, SOURCE, NOON)
    assert (sent["is_alert"], sent["raw_data"]) == (True, text)
