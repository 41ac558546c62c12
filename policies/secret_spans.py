"""All that is looked for in a text, as it is written and as it reads."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from policies.needles import Needles
from policies.secret_fields import fields
from policies.secret_keys import key_spans
from policies.secret_places import place_spans
from policies.secret_readings import place_in, readings
from policies.secret_rules import Span, looks_random, rule_spans
from policies.secret_shapes import SecretPattern

_Look = Callable[[bytes], Iterator[Span]]
_Placed = TypeVar("_Placed", bound=tuple[Any, ...])

SORTED_AT_ONCE = 4 * 1024
"""Spans that are sorted at once, and of more the bytes of a text whose spans are. Sorting holds the interpreter, and
with it the event loop, even in a thread: some 80,000 spans of 1 MB took up to 0.2 s."""


class Shapes:
    """What gives itself away: tokens of certain shapes, private keys, and values that are known."""

    def __init__(self, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> None:
        """`patterns` are looked for beside private keys; `values` are known secrets, in every spelling."""
        known = [(partial(_known, value), (value,)) for value in values]
        keys = (key_spans, (b"PRIVATE KEY",))
        each = [(pattern, (partial(_of_pattern, pattern), _needles_of(pattern))) for pattern in patterns]
        self._all: Needles[_Look] = Needles([*known, keys, *(sought for _, sought in each)])
        self._certain: Needles[_Look] = Needles([*known, keys, *(sought for one, sought in each if one.certain)])

    def spans(self, text: bytes) -> list[Span]:
        """Where they are, in order, each once; some may overlap. Linear in time."""
        return _sorted_spans(self._all, text)

    def certain_spans(self, text: bytes) -> list[Span]:
        """Those of them that may be secrets for certain."""
        return _sorted_spans(self._certain, text)


def secret_spans(text: bytes, shapes: Shapes) -> Iterator[Span]:
    """What in the UTF-8 of a text is or may be a secret, in no order; spans may overlap. Linear in time.

    Beside the `shapes` always: tokens by the rules of services, fields and places of secrets.
    """
    return _in_all_readings(text, lambda read: _whatever(read, shapes))


def certain_spans(text: bytes, shapes: Shapes) -> Iterator[Span]:
    """Those of `secret_spans` that are certain, for much less."""
    found = _in_all_readings(text, lambda read: _tokens(read, shapes))
    return (span for span in found if span[3])


def _in_all_readings(text: bytes, look: _Look) -> Iterator[Span]:
    yield from look(text)
    for read, steps in readings(text):
        for first, last, kind, certain in look(read):
            start, end = place_in(text, steps, first, last)
            if start < end:
                # Between disguised characters anything invisible could be hidden with them.
                yield start, end, kind, certain and text[start:end] == read[first:last]


def _whatever(text: bytes, shapes: Shapes) -> Iterator[Span]:
    own = shapes.spans(text)
    named = in_order(chain(own, _beside(own, ((*span, False) for span in fields(text)))))
    yield from named
    yield from _beside(named, place_spans(text))
    yield from _beside(named, rule_spans(text))


def _tokens(text: bytes, shapes: Shapes) -> Iterator[Span]:
    own = shapes.certain_spans(text)
    yield from own
    yield from _beside(own, rule_spans(text))


def _sorted_spans(sought: Needles[_Look], text: bytes) -> list[Span]:
    return in_order(span for look in sought.whose_are_in(text) for span in look(text))


def in_order(placed: Iterable[_Placed], together: int = SORTED_AT_ONCE) -> list[_Placed]:
    """What `sorted(set(placed))` is, for tuples that begin with where they stand in a text (from 0 on).

    Of more than `together` it sorts only those at once that begin within the same `together` places, so that other
    threads run in between.
    """
    each_once = set(placed)
    if len(each_once) <= together:
        return sorted(each_once)
    pieces: defaultdict[int, list[_Placed]] = defaultdict(list)
    for each in each_once:
        pieces[each[0] // together].append(each)
    return [each for piece in sorted(pieces) for each in sorted(pieces.pop(piece))]


def _needles_of(pattern: SecretPattern) -> Sequence[bytes]:
    return [needle.encode() for needle in pattern.needles]


def _known(value: bytes, text: bytes) -> Iterator[Span]:
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value), "known value", True
        at = text.find(value, at + len(value))


def _of_pattern(pattern: SecretPattern, text: bytes) -> Iterator[Span]:
    for start, end, kind in pattern.spans(text):
        yield start, end, kind, pattern.certain and (not pattern.random or looks_random(text[start:end]))


def _beside(own: Sequence[Span], others: Iterable[Span]) -> Iterator[Span]:
    """The others, without what our own patterns have found there too, which says its kind in fewer words."""
    starts = [start for start, *_ in own]
    for span in others:
        start, end, _, certain = span
        if not own or start < starts[0]:
            yield span
            continue
        _, own_end, own_kind, own_certain = own[bisect_right(starts, start) - 1]
        if own_end < end or (certain and not own_certain):
            yield span if own_end <= start else (start, end, own_kind, certain)
