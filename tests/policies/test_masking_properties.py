"""What holds for any text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policies.masking import Masker
from policies.secret_shapes import EMAILS, GUIDS, TOKENS
from tests.policies.test_masking import LONG, SHAPES
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples

MASKER = Masker(patterns=(*TOKENS, GUIDS, EMAILS), values=["nopqrstuv", 'qu"ote\\d', "\\\\\\\\\\\\\\\\", "x: [secret"])
secrets = st.sampled_from([secret for _, secret in SHAPES])
TRICKY = """
password token api_key secret pwd = : " ' ` \\ , { } -- [secret: password] [secret: ] hunter2 ://a: @b Bearer
Authorization -----BEGIN -----END PRIVATE KEY----- nopqrstuv qu"ote\\d eyJ ü 12345678 ana@corp.example
"""
fragments = st.sampled_from([*TRICKY.split(), ": ", " ", "\n", "[secret: ", "-----BEGIN PRIVATE KEY-----", LONG])
words = st.lists(fragments | secrets | st.text(max_size=4), max_size=12).map("".join)


@given(words)
@settings(max_examples=examples(65))
def test_doing_it_twice_is_doing_it_once(text: str) -> None:
    once = MASKER.mask(text)
    assert MASKER.mask(once) == once


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(max_value=9999) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@given(json_values, st.booleans(), st.sampled_from([None, 2]))
@settings(max_examples=examples(65))
def test_json_stays_json(value: Any, ascii_only: bool, indent: int | None) -> None:  # noqa: FBT001 - given by name
    masked = json.loads(MASKER.mask(json.dumps(value, ensure_ascii=ascii_only, indent=indent)))
    assert type(masked) is type(value)
    within = json.dumps({"text": json.dumps(value)})
    json.loads(MASKER.mask(within))


@given(words, secrets, words)
def test_no_planted_token_survives(before: str, secret: str, after: str) -> None:
    assume(secret not in before + after)
    masked = Masker().mask(f"{before} {secret} {after}")
    assert secret not in masked


lone_surrogates = st.text(st.characters(categories=["Cs"]), max_size=3)


@given(lone_surrogates, secrets)
def test_half_characters_are_no_hindrance(half: str, secret: str) -> None:
    assert Masker().mask(f"{half} {secret} {half}").startswith(f"{half} [secret: ")


names = st.sampled_from(["password", "client_secret", "api_key", "DB_PASSWORD", "accessToken"])
passwords = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=12).map(
    lambda text: f"q7{text}Zx9-abcdefgh"
)


@given(names, passwords, st.text(max_size=5))
def test_no_planted_password_survives_in_json(name: str, password: str, other: str) -> None:
    text = json.dumps({"x": other, name: password, "y": [json.dumps({name: password}), other]})
    masked = json.loads(Masker().mask(text))
    assert masked[name].startswith("[secret: ")
    assert password not in json.dumps(masked, ensure_ascii=False)
    assert json.loads(masked["y"][0])[name].startswith("[secret: ")


ordinary = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzäöüß    ,.;!?-()\n"), max_size=200)


@given(ordinary)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Masker().mask(text) == text


LOOPS = ["password=", 'password="', "pwd=`", "sk-", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaaa.", "a:b@c://", "\\"]
LOOPS += ['\\"password\\": \\"x', "password=$key_", "--password ", "Bearer a", "password=\\", "token:", "[secret: x]"]


@pytest.mark.parametrize("part", LOOPS)
def test_no_text_takes_more_than_its_length(part: str) -> None:
    """A quadratic search would take minutes here; what is linear takes a second."""
    masker = Masker(values=["nopqrstuv"])
    with at_most_cpu(3):
        masker.mask(part * (100_000 // len(part)))
