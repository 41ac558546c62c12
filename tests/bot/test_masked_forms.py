"""A form shows masks where secrets are; a mask stands for exactly what it hides, in its own field, and nothing else.

Rule 12: what an approver sees is what runs.
"""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.forms.editing import edit_fields, not_a_mask, read_form
from bot.forms.values import FormErrors
from policies.masking import Masker
from tests.support.cpu import at_most_cpu

TOKEN = "ghp_" + "a1B2" * 9
OTHER = "ghp_" + "c3D4" * 9
MASKER = Masker(key=b"a key")
MASK, OTHER_MASK = MASKER.for_card(TOKEN).value, MASKER.for_card(OTHER).value
SCHEMA = {
    "type": "object",
    "properties": {
        "what": {"type": "string"},
        "pin_password": {"type": "integer"},
        "more": {"type": "object"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
ARGUMENTS: dict[str, Any] = {
    "what": f"use {TOKEN} and {OTHER}",
    "pin_password": 12345678,
    "more": {"note": TOKEN, "n": 1},
    "count": 1,
}
SHOWN = MASKER.for_card(ARGUMENTS)
FIELDS, VALUES = edit_fields(SCHEMA, ARGUMENTS, None, masked=SHOWN)


def read(**entries: Any) -> dict[str, Any] | FormErrors:
    return read_form(SCHEMA, ARGUMENTS, None, {**VALUES, **entries}, masked=SHOWN)


def test_the_form_shows_masks_where_secrets_are_and_all_else_as_it_is() -> None:
    assert VALUES["what"] == f"use {MASK} and {OTHER_MASK}"
    assert VALUES["pin_password"] == 12345678
    assert TOKEN not in str(FIELDS) + str(VALUES)


def test_what_is_not_touched_keeps_its_secret() -> None:
    assert read() == ARGUMENTS
    assert read(count="2") == {**ARGUMENTS, "count": 2}


@pytest.mark.parametrize("back", [5, "5", 5.0, "5.0"])
def test_a_number_that_a_client_writes_in_its_own_way_is_not_touched(back: Any) -> None:
    schema = {"type": "object", "properties": {"days": {"type": "number"}, "why": {"type": "string"}}}
    read_back = read_form(schema, {"days": 5.0, "why": "a"}, None, {"days": back, "why": "b"})
    assert repr(read_back) == repr({"days": 5.0, "why": "b"})


def test_a_number_beyond_what_can_be_typed_may_stay() -> None:
    """JavaScript writes 1e16 out, which is more than a whole number may be."""
    schema = {"type": "object", "properties": {"size": {"type": "number"}, "on": {"type": "boolean"}}}
    read_back = read_form(schema, {"size": 1e16, "on": True}, None, {"size": 10**16, "on": False})
    assert repr(read_back) == repr({"size": 1e16, "on": False})


@pytest.mark.parametrize(
    ("entry", "becomes"),
    [
        (f"please use {MASK}", f"please use {TOKEN}"),
        (f"{OTHER_MASK} and {MASK}", f"{OTHER} and {TOKEN}"),
        (f"{MASK}{MASK}", f"{TOKEN}{TOKEN}"),
        (OTHER_MASK, OTHER),
        ("use nothing", "use nothing"),
    ],
    ids=["left in place", "swapped", "duplicated", "one deleted", "all deleted"],
)
def test_a_mask_stands_for_its_own_secret_wherever_it_is_moved_within_its_field(entry: str, becomes: str) -> None:
    assert read(what=entry) == {**ARGUMENTS, "what": becomes}


def test_masks_within_json_stand_for_their_secrets_too() -> None:
    assert read(more=f'{{"note": "x {MASK}", "n": 2}}') == {**ARGUMENTS, "more": {"note": f"x {TOKEN}", "n": 2}}


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("what", "use [secret: github token]"),
        ("what", f"use {MASK[:-1]}"),
        ("what", MASK.replace("40", "41")),
        ("more", json.dumps({"note": OTHER_MASK})),
        ("tags", json.dumps([MASK])),
    ],
    ids=["not whole", "broken", "changed", "another field's", "another field's, where nothing is masked"],
)
def test_anything_else_that_is_written_like_a_mask_is_a_mistake(name: str, entry: str) -> None:
    assert read(**{name: entry}) == FormErrors({name: not_a_mask()})


def test_a_name_that_stands_twice_in_an_object_is_a_mistake() -> None:
    refused = read(more=f'{{"note": "{MASK}", "note": "x"}}')
    assert isinstance(refused, FormErrors)
    assert "twice" in refused.errors["more"]


def test_text_that_was_written_like_a_mask_when_it_was_asked_for_can_be_edited() -> None:
    asked = {"what": "write down [secret: github token]"}
    masked = MASKER.for_card(asked)
    _, values = edit_fields(SCHEMA, asked, None, masked=masked)
    assert values == {"what": "write down ⟨U+005B⟩secret: github token]"}
    read_back = read_form(SCHEMA, asked, None, {"what": "keep ⟨U+005B⟩secret: github token]"}, masked=masked)
    assert read_back == {"what": "keep [secret: github token]"}


def test_an_argument_whose_name_is_masked_stays_and_is_not_in_the_form() -> None:
    asked = {TOKEN: "x", "what": "y"}
    masked = MASKER.for_card(asked)
    fields, _ = edit_fields({"type": "object"}, asked, None, masked=masked)
    assert [field.name for field in fields] == ["what"]
    assert read_form({"type": "object"}, asked, None, {"what": "z"}, masked=masked) == {TOKEN: "x", "what": "z"}


def test_what_is_nested_too_deeply_never_becomes_text() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    asked = {"more": {"a": deep, "n": 1}}
    masked = MASKER.for_card(asked)
    (mask,) = masked.hidden
    refused = read_form(SCHEMA, asked, None, {"more": json.dumps({"a": mask})}, masked=masked)
    assert isinstance(refused, FormErrors)
    assert "nested too deeply" in refused.errors["more"]


pieces = st.sampled_from([TOKEN, OTHER, "a", " ", "[secret: x]", "⟨U+005B⟩"])


@given(st.lists(pieces, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_whatever_order_the_parts_of_a_text_are_put_in_each_stays_what_it_was(parts: list[str], chance: Any) -> None:
    asked = {"what": "|".join(parts), "count": 1}
    masked = MASKER.for_card(asked)
    shown = edit_fields(SCHEMA, asked, None, masked=masked)[1]["what"].split("|")
    order = list(range(len(parts)))
    chance.shuffle(order)
    entry = "|".join(shown[at] for at in order) + "!"
    read_back = read_form(SCHEMA, asked, None, {"what": entry}, masked=masked)
    if entry == "|".join(shown) + "!" or shown != parts:
        assert read_back == {"what": "|".join(parts[at] for at in order) + "!", "count": 1}


@pytest.mark.parametrize("before", range(200, 300, 9))
def test_a_mistake_that_repeats_a_value_tells_no_half_of_what_is_masked_in_it(before: int) -> None:
    schema = {"type": "object", "properties": {"what": {"not": {"type": "string"}}, "n": {"type": "integer"}}}
    arguments = {"what": "y " * (before // 2) + TOKEN, "n": 1}
    answer = read_form(schema, arguments, None, {"n": 2}, masked=MASKER.for_card(arguments))
    assert isinstance(answer, FormErrors)
    assert TOKEN[:12] not in MASKER.mask(str(dict(answer.errors)))


def test_reading_a_form_takes_no_longer_for_masks_in_other_fields() -> None:
    """Rule 13: each field has its own masks looked for, however many stand in all the others."""
    tokens = iter(f"ghp_{hashlib.sha256(str(number).encode()).hexdigest()[:36]}" for number in range(4_500))
    asked = {f"f{number}": " ".join(islice(tokens, 45)) for number in range(100)}
    masked = MASKER.for_card(asked)
    assert len(masked.hidden) == 4_500
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in asked}}
    read_form(schema, asked, None, {}, masked=masked)  # what checks is imported
    with at_most_cpu(0.1):  # 0.4 s before, now 10 ms
        assert read_form(schema, asked, None, dict.fromkeys(asked, "x"), masked=masked) == dict.fromkeys(asked, "x")
