"""One-time codes as they are made and as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.accounts.codes import ALPHABET, code_in, codes_among, entered, new_code
from tests.support.examples import examples


def test_codes_are_readable_and_not_repeated() -> None:
    codes = {new_code() for _ in range(2000)}
    assert len(codes) == 2000
    assert {letter for code in codes for letter in code} == {*ALPHABET, "-"}
    assert not set(ALPHABET) & set("0O1IL2S5B8U")


@pytest.mark.parametrize(
    "text",
    [
        "K7QM-3DZP",
        "k7qm-3dzp",
        " K7QM - 3DZP\n",
        "`K7QM-3DZP`",
        "*K7QM–3DZP*",
        "K7QM—3DZP.",
        "“K7QM-3DZP”",
        "K7QM‑3DZP",
    ],
)
def test_a_code_is_recognised_as_people_type_it(text: str) -> None:
    assert code_in(text) == "K7QM-3DZP"


@pytest.mark.parametrize(
    "text", ["", "K7QM3DZP", "K7QM-3DZP please", "my code: K7QM-3DZP", "K7QM-3DZ", "K7QM-3DZPP", "O0IL-1111", "stop"]
)
def test_other_words_are_none(text: str) -> None:
    assert code_in(text) is None


@pytest.mark.parametrize(
    "text",
    ["it says K7QM-3DZP now", "code:k7qm–3dzp!", "K7QM 3DZP", "k7qm3dzp", "FFFF K7QM - 3DZP", "_K7QM-3DZP_, please"],
)
def test_a_code_amid_other_words_is_found(text: str) -> None:
    assert "K7QM-3DZP" in codes_among(text)


@pytest.mark.parametrize("text", ["", "AK7QM-3DZP", "K7QM-3DZPP", "K7QM, 3DZP", "K7QM-3DZ", "hello there"])
def test_what_is_part_of_something_else_is_none(text: str) -> None:
    assert codes_among(text) == frozenset()


@given(st.from_regex(r"[\s`*_(]{0,3}[CDFGcdfg3479]{4}\s?[-–]\s?[CDFGcdfg3479]{4}[\s`*_)!]{0,3}", fullmatch=True))
@settings(max_examples=examples(35))
def test_whatever_is_a_code_by_itself_is_found_among_words_too(text: str) -> None:
    assert code_in(text) in codes_among(f"I see {text} here")


@pytest.mark.parametrize("text", ["K7QM-3DZP", "k7qm3dzp", "K7QM 3DZP", "k7 qm 3d zp", " K7QM–3DZP "])
def test_a_form_takes_it_without_its_dash(text: str) -> None:
    assert entered(text) == "K7QM-3DZP"


@given(st.text(max_size=200))
@settings(max_examples=examples(65))
def test_no_text_breaks_it(text: str) -> None:
    code_in(text)
    codes_among(text)
    assert len(entered(text)) <= 61
