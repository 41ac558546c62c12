"""Rule 12: what a model wrote is what is shown and what runs, so what JSON cannot carry is refused when it is read."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.json_values import DEEPEST, LARGEST_INTEGER, MOST_VALUES, Unreadable
from graph.models.tool_calls import LONGEST_ARGUMENTS, read_arguments

INTEGERS = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int) -> str:
    return '{"a": ' + "[" * (levels - 1) + "1" + "]" * (levels - 1) + "}"


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_json_can_carry_comes_back_value_by_value(arguments: dict[str, Any]) -> None:
    assert repr(read_arguments(json.dumps(arguments))) == repr(arguments)


@given(st.text())
def test_any_text_is_an_object_or_refused(text: str) -> None:
    try:
        value = read_arguments(text)
    except Unreadable:
        return
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400 + ".5"])
def test_numbers_that_json_cannot_carry_are_refused(number: str) -> None:
    with pytest.raises(Unreadable, match="JSON"):
        read_arguments(f'{{"older_than_days": [{number}]}}')


@pytest.mark.parametrize("number", [str(LARGEST_INTEGER + 1), f"-{LARGEST_INTEGER + 1}", "9" * 5_000, "9" * 20])
def test_integers_that_another_parser_reads_as_others_are_refused(number: str) -> None:
    with pytest.raises(Unreadable, match="integer beyond"):
        read_arguments(f'{{"id": {number}}}')


def test_the_largest_integers_zeros_and_small_fractions_stand() -> None:
    text = f'{{"a": {LARGEST_INTEGER}, "b": -{LARGEST_INTEGER}, "c": -0.0, "d": 5e-324, "e": 1.0, "f": 1e300}}'
    value = read_arguments(text)
    assert (value["a"], value["b"], value["d"], value["f"]) == (LARGEST_INTEGER, -LARGEST_INTEGER, 5e-324, 1e300)
    assert math.copysign(1, value["c"]) == -1
    assert type(value["e"]) is float


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"b": [{"x": 1, "\\u0078": 2}]}',
        '{"a": 1, "a\\u0000": 2}',
        '{"a\\ud800": 1, "a\\udfff": 2}',
        '{"a\\ud800": 1, "a?": 2}',
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="twice"):
        read_arguments(text)


def test_what_cannot_be_checkpointed_or_looked_through_is_refused() -> None:
    assert read_arguments(nested(DEEPEST))
    for levels in (DEEPEST + 1, 300, 100_000):
        with pytest.raises(Unreadable, match=f"deeper than {DEEPEST}"):
            read_arguments(nested(levels))
    with pytest.raises(Unreadable, match="more than 10,000 values"):
        read_arguments(json.dumps({"a": [0] * MOST_VALUES}))
    with pytest.raises(Unreadable, match="longer than"):
        read_arguments(json.dumps({"a": "x" * LONGEST_ARGUMENTS}))
