"""Rule 13: a body that would take long to read is not read."""

from __future__ import annotations

import json

import pytest

from adapters.shared.untrusted_json import MOST_VALUES, MalformedBodyError, has_too_many_values
from adapters.slack.inbound import requests as of_slack
from adapters.slack.inbound.payloads import origin_of_view
from adapters.teams.ids import TeamsCaller, TeamsLocation
from adapters.teams.inbound import activities as of_teams
from adapters.teams.inbound.visitors import TeamsVisitor
from tests.support.cpu import at_most_cpu
from tests.support.parsing import parsed_as_json

INSIDE = {
    "lists": "[" + "[]," * 300_000 + "[]]",
    "texts": "[" + '"",' * 300_000 + '""]',
    "numbers": "[" + "1," * 480_000 + "1]",
    "nested lists": "[" + ("[" * 50 + "]" * 50 + ",") * 9_000 + "[]]",
    "members": json.dumps({str(number): 0 for number in range(80_000)}),
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_a_body_of_a_hundred_thousand_values_is_refused_at_once(inside: str) -> None:
    activity = f'{{"type": "message", "value": {inside}}}'.encode()
    event = f'{{"type": "event_callback", "event": {{"type": "message", "it": {inside}}}}}'.encode()
    with at_most_cpu(0.2), parsed_as_json() as parsed:
        with pytest.raises(MalformedBodyError, match="too many values"):
            of_teams.decode(activity)
        with pytest.raises(MalformedBodyError, match="too many values"):
            of_slack.decode(event, "application/json")
    assert parsed == []


def test_a_form_of_a_hundred_thousand_fields_is_refused_at_once() -> None:
    with at_most_cpu(0.1), pytest.raises(MalformedBodyError):  # 0.5 s where all of it is read, now 1 ms
        of_slack.decode(b"command=/x&user_id=U&channel_id=C" + b"&a=" * 900_000, "application/x-www-form-urlencoded")


def test_what_is_written_as_json_within_a_text_is_bounded_too() -> None:
    """Of a text's own values nobody counts any: a megabyte of them took 0.2 s."""
    inside = INSIDE["lists"]
    visitor = TeamsVisitor(TeamsCaller("t", "u", "29:u"), TeamsLocation("t", "19:c", "channel"), message="1")
    value = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": inside}}
    with parsed_as_json() as parsed:
        feedback = of_teams.read_feedback({"value": value}, visitor)
        assert origin_of_view({"private_metadata": inside}) is None
    assert parsed == []
    assert feedback is not None
    assert feedback.comment.startswith("[[],[],")


@pytest.mark.parametrize("text", ["a, [b], {c} " * 40_000, '\\", [' * 40_000, '"' * 100_000])
def test_a_text_is_one_value_whatever_signs_are_in_it(text: str) -> None:
    assert not has_too_many_values(json.dumps({"text": text}).encode())


def test_unfinished_texts_take_no_longer() -> None:
    with at_most_cpu(0.2):  # hours where each mark is tried as an end, now 10 ms
        has_too_many_values(b'"' + rb"\"," * 300_000)


def test_as_many_values_as_may_be_are_read() -> None:
    assert not has_too_many_values(json.dumps([1] * MOST_VALUES).encode())
    assert has_too_many_values(json.dumps([1] * (MOST_VALUES + 1)).encode())
