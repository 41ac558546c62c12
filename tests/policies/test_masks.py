"""Masks on cards and in the audit log.

Rule 12: a mask hides a secret's own characters and says how many; two calls that differ look different.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.masking import Masker, fingerprint_key, unmasked
from policies.secret_shapes import EMAILS, TOKENS
from tests.policies.test_masking import KEY, LONG

TOKEN = "ghp_" + LONG[:36]
OTHER = "ghp_" + LONG[1:37]
KEYED = Masker((*TOKENS, EMAILS), ["known-to-us"], key=b"a key")
MASK = r"\[secret: github token, 40 characters, #[0-9a-f]{8}\]"


def card(value: Any) -> Any:
    return KEYED.for_card(value).value


@pytest.mark.parametrize(
    "arguments",
    [
        {"sql": "DROP TABLE customers; -- password=abc123"},
        {"token": "drop-every-table-of-2026", "secret": "the customers table", "password": 12345678},
        {"text": "-----BEGIN PRIVATE KEY----- DROP TABLE customers -----END PRIVATE KEY-----"},
        {"url": "postgres://app:DROP-TABLE-customers@db/x"},
        {"header": "Authorization: Bearer drop-every-table-2026"},
        {"pin": [1, 2.5, None, True, 10**5000]},
    ],
)
def test_what_cannot_be_told_apart_from_ordinary_text_is_not_masked_on_a_card(arguments: dict[str, Any]) -> None:
    assert card(arguments) == arguments
    assert KEYED.for_card(arguments).hidden == {}


def test_a_mask_covers_the_secret_alone_and_says_how_long_it_is() -> None:
    shown = card({"sql": f"DROP TABLE customers; -- {TOKEN}, ana@corp.example", "more": [{"key": KEY}]})
    assert re.fullmatch(
        rf"DROP TABLE customers; -- {MASK}, \[secret: e-mail address, 16 characters, #[0-9a-f]{{8}}\]", shown["sql"]
    )
    assert f"[secret: private key, {len(KEY)} characters, #" in shown["more"][0]["key"]


def test_equal_secrets_look_equal_and_different_ones_differ() -> None:
    one, two, same = card([TOKEN, OTHER, TOKEN])
    assert one == same != two
    assert Masker(key=b"a key").for_card(TOKEN).value == one
    assert Masker(key=b"another").for_card(TOKEN).value != one
    assert Masker().for_card(TOKEN).value != Masker().for_card(TOKEN).value


def test_recipients_are_told_apart_where_addresses_are_masked() -> None:
    assert card({"to": "ana@corp.example"}) != card({"to": "eve@evil.example"})


def test_keys_are_never_merged() -> None:
    arguments = {TOKEN: 1, OTHER: 2, "api_key=abcdefgh1": 3, "api_key=abcdefgh2": 4}
    for masked in (KEYED.for_card(arguments), KEYED.for_audit(arguments)):
        assert list(masked.value.values()) == [1, 2, 3, 4]
        assert TOKEN not in str(masked.value)


@pytest.mark.parametrize(
    "fake", ["[secret: password]", "[Secret: x", "[ secret : x]", "［secret: x]", "[not shown: x]", "⟨U+202E⟩"]
)
def test_text_that_is_written_like_a_mask_is_not_taken_for_one(fake: str) -> None:
    shown = card({"a": f"x {fake} y", fake: 1})
    assert fake not in str(shown)
    assert "⟨U+" in shown["a"]
    assert KEYED.for_card({"a": fake}).hidden == {}
    assert unmasked(shown, {}) == {"a": f"x {fake} y", fake: 1}


def test_the_mask_of_a_secret_written_as_text_is_not_the_mask() -> None:
    mask = card(TOKEN)
    assert card(mask) != mask


def test_what_is_nested_too_deeply_is_counted_and_told_apart() -> None:
    def nested(inside: str) -> Any:
        deep: Any = inside
        for _ in range(10_000):
            deep = [deep]
        return deep

    for mask in (KEYED.for_card, KEYED.for_audit):
        one, two = repr(mask(nested(TOKEN)).value), repr(mask(nested("abc")).value)
        assert one != two
        assert TOKEN not in one
        assert re.search(r"\[not shown: nested too deeply, 19,\d{3} characters, #[0-9a-f]{8}\]", two)


def test_the_audit_log_masks_the_doubtful_by_content_and_by_name() -> None:
    result = {
        "password": "hunter2",
        "pin": [1, 2.5, None, True],
        "user": {"apiKey": "abcdefgh1", "name": "known-to-us"},
        "log": [TOKEN, "fine", "password=hunter2"],
        "password_hint": "dog",
        "token": 1234567890123456,
        "secret": 10**5000,
    }
    masked = KEYED.for_audit(result)
    plain = re.sub(r", [0-9]+ characters?, #[0-9a-f]{8}\]", "]", json.dumps({**masked.value, "secret": 0}))
    assert json.loads(plain) == {
        "password": "[secret: password]",
        "pin": [1, 2.5, None, True],
        "user": {"apiKey": "[secret: key]", "name": "[secret: known value]"},
        "log": ["[secret: github token]", "fine", "password=[secret: password]"],
        "password_hint": "dog",
        "token": "[secret: token]",
        "secret": 0,
    }
    assert set(masked.hidden.values()) >= {"hunter2", "abcdefgh1", TOKEN}


def test_the_key_of_fingerprints_is_of_the_first_key_and_is_none_of_them() -> None:
    assert fingerprint_key(b"first, second") == fingerprint_key(b"first")
    assert fingerprint_key(b"first") != fingerprint_key(b"second")


texts = st.lists(
    st.sampled_from(
        [TOKEN, OTHER, "[secret: ", "]", "⟨U+005B⟩", "⟨U+", "[not shown: ", "known-to-us", "password=", " "]
    )
    | st.text(max_size=3),
    max_size=6,
).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_what_is_masked_can_be_had_back_exactly(value: Any) -> None:
    """So no two values look alike: what is shown, with what its masks stand for, is the value."""
    masked = KEYED.for_card(value)
    assert unmasked(masked.value, masked.hidden) == value


@given(values, values)
def test_two_values_that_differ_look_different_and_have_different_fingerprints(one: Any, two: Any) -> None:
    same = repr(one) == repr(two)
    assert (repr(card(one)) == repr(card(two))) is same
    prints = [KEYED.fingerprint_of_call("s", "t", {"a": value}) for value in (one, two)]
    if json.dumps(one, sort_keys=True) != json.dumps(two, sort_keys=True):
        assert prints[0] != prints[1]
    elif same:
        assert prints[0] == prints[1]


@pytest.mark.parametrize("mask", [["[secret: github token, 40 characters, #00000000]"], ["[secret: ", "[Secret: x]"]])
def test_what_only_looks_like_a_mask_stands_for_nothing(mask: list[str]) -> None:
    with pytest.raises(ValueError, match="mask"):
        unmasked(mask, KEYED.for_card(TOKEN).hidden)
