"""Secrets out of texts, before a model, a card, a log or a trace sees them.

What is masked keeps its kind: `[secret: github token]`. Names stay (`password=[secret: password]`), JSON stays JSON,
and what is no secret stays as it was, byte for byte.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from policies.secret_fields import fields, kind_of_field
from policies.secret_shapes import EMAILS, GUIDS, TOKENS, SecretPattern, Span
from policies.secret_spellings import spellings

__all__ = ["EMAILS", "GUIDS", "SHORTEST_VALUE", "TOKENS", "Redactor", "SecretPattern", "holds_a_mask"]

SHORTEST_VALUE = 8
"""Characters of a known value that is masked; a shorter one stands in ordinary words."""

DEEPEST = 50
"""Levels of a JSON value that are looked into; what is deeper is masked as a whole."""

_LARGEST = 1e30
"""What is larger is no number that somebody would keep secret."""
_MOST_PASSES = 8
_MASK = re.compile(rb"\[secret: [a-z][a-z0-9 -]{0,39}\]")
_HALF_ESCAPE = re.compile(rb"(\\+)(?:u[0-9A-Fa-f]{0,3})?\Z")
_ESCAPE = re.compile(rb"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LONGEST_RUN = 64
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_QUOTED_KEY = re.compile(rb"(\\*[\"'])\s*:\s*\Z")


class Redactor:
    """Masks what it was told to look for. Holds nothing but that; may be used from any thread."""

    def __init__(self, patterns: Sequence[SecretPattern] = TOKENS, values: Collection[str] = ()) -> None:
        """`patterns` are looked for beside fields that are called like secrets (`TOKENS`, perhaps `GUIDS`, `EMAILS`
        and the operator's own); `values` are secrets of this process, from eight characters on."""
        self._patterns = tuple(patterns)
        self._values = _all_spellings(values)

    def redact(self, text: str) -> str:
        """The text without secrets. Linear in time, and doing it twice is doing it once."""
        masked = text.encode("utf-8", "surrogatepass")
        for _ in range(_MOST_PASSES):
            spans = _outside_masks(sorted(self._spans(masked)), masked)
            if not spans:
                break
            masked = _masked(masked, spans)
        return masked.decode("utf-8", "surrogatepass")

    def redact_json(self, value: Any) -> Any:
        """A JSON value without secrets, in its keys, its texts, and its fields that are called like secrets."""
        return self._within(value, DEEPEST)

    def _within(self, value: Any, levels: int) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if not isinstance(value, Mapping | list | tuple):
            return value
        if levels == 0:
            return "[secret: nested too deeply to look into]"
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self._field(str(key), item, levels - 1) for key, item in value.items()}
        return [self._within(item, levels - 1) for item in value]

    def _field(self, name: str, value: Any, levels: int) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
        kind = kind_of_field(name, str(value)) if is_number or isinstance(value, str) else None
        return self._within(value, levels) if kind is None else f"[secret: {kind}]"

    def _spans(self, text: bytes) -> Iterator[Span]:
        for value in self._values:
            yield from _occurrences(value, text)
        for pattern in self._patterns:
            yield from pattern.spans(text)
        yield from fields(text)


def _all_spellings(values: Collection[str]) -> tuple[bytes, ...]:
    long_enough = {value for value in values if len(value) >= SHORTEST_VALUE and not value.isspace()}
    return tuple(sorted({spelling for value in long_enough for spelling in spellings(value)}))


def holds_a_mask(text: str) -> bool:
    """Whether something in a text was masked (or is written as if it had been)."""
    return _MASK.search(text.encode("utf-8", "surrogatepass")) is not None


def _occurrences(value: bytes, text: bytes) -> Iterator[Span]:
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value), "known value"
        at = text.find(value, at + len(value))


def _outside_masks(spans: list[Span], text: bytes) -> list[Span]:
    """The spans, in order and without overlaps, as far as they are not masks already."""
    masks = [mask.span() for mask in _MASK.finditer(text)] if spans else []
    merged: list[Span] = []
    for start, end, kind in (piece for span in spans for piece in _pieces(_with_whole_escapes(span, text), masks)):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged


def _with_whole_escapes(span: Span, text: bytes) -> Span:
    """A span that begins or ends within one of JSON's escapes takes in all of it: half of it would be none."""
    start, end, kind = span
    before = _HALF_ESCAPE.search(text, max(0, start - _LONGEST_RUN), start)
    if before and len(before[1]) % 2:
        start = before.end(1) - 1
    within = _HALF_ESCAPE.search(text, max(start, end - _LONGEST_RUN), end)
    if within and len(within[1]) % 2:
        whole = _ESCAPE.match(text, within.end(1) - 1)
        end = whole.end() if whole else end
    return start, end, kind


def _pieces(span: Span, masks: Sequence[tuple[int, int]]) -> Iterator[Span]:
    start, end, kind = span
    at = bisect_right(masks, start, key=lambda mask: mask[1])
    while at < len(masks) and masks[at][0] < end:
        if start < masks[at][0]:
            yield start, masks[at][0], kind
        start, at = masks[at][1], at + 1
    if start < end:
        yield start, end, kind


def _masked(text: bytes, spans: Sequence[Span]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, kind in spans:
        around = _quotes_for(text, start, end)
        pieces += [text[done:start], around, b"[secret: ", kind.encode(), b"]", around]
        done = end
    return b"".join([*pieces, text[done:]])


def _quotes_for(text: bytes, start: int, end: int) -> bytes:
    """A number behind a quoted name becomes a text, quoted like its name."""
    if not _NUMBER.fullmatch(text, start, end):
        return b""
    key = _QUOTED_KEY.search(text, max(0, start - 32), start)
    return key[1] if key else b""
