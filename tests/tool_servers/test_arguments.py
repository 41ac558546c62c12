"""Arguments are checked before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.sessions import complaint_about
from bot.schemas.measuring import problem_of
from policies.masking import Masker

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"$ref": "#/$defs/Count"},
        "who": {"type": "array", "items": {"type": "object", "required": ["name"]}},
        "day": {"type": "string", "format": "date-time"},
    },
    "required": ["title"],
    "additionalProperties": False,
    "$defs": {"Count": {"type": "integer", "minimum": 1}},
}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, '"title" is missing'),
        ({"title": 7}, "\"title\": 7 is not of type 'string'"),
        ({"title": "a", "count": 0}, '"count": 0 is less than the minimum of 1'),
        ({"title": "a", "who": [{"name": "x"}, {}]}, '"who[1].name" is missing'),
        ({"title": "a", "colour": 1}, "Additional properties are not allowed ('colour' was unexpected)"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], complaint: str) -> None:
    assert complaint_about(arguments, SCHEMA) == complaint


def test_right_arguments_are_right() -> None:
    assert complaint_about({"title": "a", "count": 2, "who": [{"name": "b"}]}, SCHEMA) is None


def test_formats_are_left_to_the_server() -> None:
    assert complaint_about({"title": "a", "day": "2026-11-21T09:00"}, SCHEMA) is None


def test_a_complaint_is_bounded() -> None:
    many = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(9)}}
    complaint = complaint_about({f"p{i}": "x" * 5_000 for i in range(9)}, many)
    assert complaint is not None
    assert complaint.endswith("; and 6 more")
    assert len(complaint) < 1_200


@pytest.mark.parametrize("part", [{"$ref": "http://127.0.0.1:9/schema"}, {"pattern": r"^\p{L}+$"}])
def test_what_cannot_be_checked_here_is_left_to_the_server(part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": part}}
    assert problem_of(schema) is None
    assert complaint_about({"a": "b"}, schema) is None


def test_a_schema_that_goes_round_in_circles_is_refused() -> None:
    circular = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}
    assert complaint_about({"a": 1}, circular) == "they are nested too deeply"


@pytest.mark.parametrize("schema", [{"type": "colour"}, {"properties": 1}, {"required": "a"}, {"$schema": []}])
def test_a_schema_that_is_none_is_found_out(schema: dict[str, Any]) -> None:
    assert problem_of(schema)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["title", "count", "who", "x"]), inner),
)


@settings(deadline=None)  # a busy machine is no mistake
@given(st.dictionaries(st.sampled_from(["title", "count", "who", "x"]), VALUES))
def test_any_arguments_get_an_answer(arguments: dict[str, Any]) -> None:
    complaint = complaint_about(arguments, SCHEMA)
    assert complaint is None or complaint.isprintable()


@pytest.mark.parametrize("before", range(200, 300, 7))
def test_a_secret_that_a_complaint_repeats_is_masked_before_the_complaint_is_cut(before: int) -> None:
    """Rule 12: the card of the call shows its arguments masked, and why it was not made."""
    token = "ghp_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
    complaint = complaint_about({"title": "a", "count": " " + "y " * (before // 2) + token}, SCHEMA, Masker().mask)
    assert complaint is not None
    assert token[:12] not in complaint
    complaint = complaint_about({"title": "a", "count": "y " * 2_000 + token}, SCHEMA, Masker().mask)
    assert complaint == '"count": it does not fit “type”'
