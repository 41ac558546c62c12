"""Rule 13: nothing from outside holds the event loop. Secrets of long texts are looked for in a thread, but what is
done at once in C holds the interpreter for all threads; so nothing is done at once to everything that was found.
Rule 7: what is found is the same for it."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import masking, secret_fields, secret_shapes, secret_spans
from policies.masking import Masker
from policies.secret_shapes import EMAILS, GUIDS, TOKENS
from policies.secret_spans import Shapes, in_order
from tests.policies.test_masking_properties import words
from tests.support.examples import examples

MASKER = Masker((*TOKENS, GUIDS, EMAILS), ["nopqrstuv"])
HOSTILE = {
    "e-mail addresses": "a@b.co ",
    "addresses with passwords": "https://a:b@",
    "fields of JSON": '{"pwd": "abc"}',
    "in another alphabet": "ä a@b.co ",
}
MOST_AT_ONCE = 5_000

places = st.integers(0, 60)
placed = st.tuples(places, places, st.sampled_from(["token", "password"]), st.booleans())


@given(st.lists(placed, max_size=40), st.integers(1, 20))
def test_in_order_piece_by_piece_is_in_order(spans: list[tuple[Any, ...]], together: int) -> None:
    assert in_order(spans, together) == sorted(set(spans))


@given(words)
@settings(max_examples=examples(35))
def test_what_is_found_is_the_same_whichever_pieces_are_sorted_at_once(text: str) -> None:
    found, masked = MASKER.find(text), MASKER.mask(text)
    with pytest.MonkeyPatch.context() as patch:
        for module in (secret_spans, masking):
            patch.setattr(module, "in_order", partial(in_order, together=1))
        assert MASKER.find(text) == found
        assert MASKER.mask(text) == masked


@pytest.mark.parametrize("repeated", HOSTILE.values(), ids=HOSTILE)
def test_however_much_is_found_only_a_little_is_sorted_at_once(repeated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counting(what: Any, **order: Any) -> list[Any]:
        items = list(what)
        sizes.append(len(items))
        return sorted(items, **order)

    for module in (secret_spans, masking):
        monkeypatch.setattr(module, "sorted", counting, raising=False)
    repeats = 2 * MOST_AT_ONCE
    assert len(MASKER.find(repeated * repeats)) >= repeats - 1
    assert max(sizes) <= MOST_AT_ONCE


def test_what_is_found_is_not_walked_through_whenever_memory_is_collected() -> None:
    text = b'ana@corp.example password=hunter2abc {"api_key": "abcd1234"} https://a:secret1@host nopqrstuv'
    found = list(secret_spans.secret_spans(text, Shapes((*TOKENS, EMAILS), [b"nopqrstuv"])))
    gc.collect()
    assert len(found) >= 5
    assert not any(map(gc.is_tracked, found))


def test_nor_is_where_the_parts_of_a_disguised_text_stand() -> None:
    (_, (reading,)), *_ = secret_spans.readings("a\u200b".encode() * 100)
    parts = [getattr(reading, name) for name in vars(reading)]
    assert not any(isinstance(part, list) for part in parts)


class _Counted:
    """A regular expression that says how much it matched at once."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.longest = 0

    def match(self, *where: Any) -> re.Match[bytes] | None:
        found = self._pattern.match(*where)
        self.longest = max(self.longest, len(found[0]) if found else 0)
        return found


@pytest.mark.parametrize("shift", ["", "x"])
def test_a_long_value_without_quotes_is_read_step_by_step_to_its_end(
    shift: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = _Counted(secret_fields._BARE)
    monkeypatch.setattr(secret_fields, "_BARE", counted)
    value = shift + r"\-" * 40_000
    assert Masker().mask(f"password={value} and more") == "password=[secret: password] and more"
    assert 0 < counted.longest <= secret_fields.LONGEST_PASSWORD


@given(st.lists(st.sampled_from([b"\\", b"n", b"r", b" ", b"\n", b"\r", b"\x0b", b"A", b"="])).map(b"".join))
def test_breaks_in_a_key_are_taken_out_one_by_one_as_all_at_once(body: bytes) -> None:
    assert secret_shapes._without_breaks(body) == secret_shapes._BREAKS.sub(b"", body)


@pytest.mark.parametrize(
    "header", [b"Version: x\n", b"Version: x\\nComment: y\\\\n\n", b"  \nProc-Type: 4,ENCRYPTED\n"]
)
def test_what_has_headers_is_no_key_for_certain(header: bytes) -> None:
    body = b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    assert list(_certain(b"\n" + body + b"\n")) == [True]
    assert list(_certain(header + body + b"\n")) == [False]


def _certain(body: bytes) -> Iterator[bool]:
    text = b"-----BEGIN PRIVATE KEY-----" + body + b"-----END PRIVATE KEY-----"
    return (certain for *_, certain in secret_shapes.key_spans(text))
