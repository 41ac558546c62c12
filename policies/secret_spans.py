"""All that is looked for in a text, as it is written and as it reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence

from policies.secret_fields import fields
from policies.secret_keys import key_spans
from policies.secret_places import place_spans
from policies.secret_readings import place_in, readings
from policies.secret_rules import Span, looks_random, rule_spans
from policies.secret_shapes import SecretPattern


def secret_spans(text: bytes, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> Iterator[Span]:
    """What in the UTF-8 of a text is or may be a secret, in no order; spans may overlap. Linear in time.

    `patterns` are looked for beside what always is: tokens by the rules of services, private keys, fields and places of
    secrets. `values` are secrets that are known, in every spelling.
    """
    yield from _in_reading(text, patterns, values)
    for read, steps in readings(text):
        for span in _in_reading(read, patterns, values):
            start, end = place_in(text, steps, span.start, span.end)
            if start < end:
                yield span._replace(start=start, end=end)


def _in_reading(text: bytes, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> Iterator[Span]:
    shapes = sorted({*_known(text, values), *_of_patterns(text, patterns), *key_spans(text)})
    named = sorted({*shapes, *_beside(shapes, (Span(*span) for span in fields(text)))})
    yield from named
    yield from _beside(named, place_spans(text))
    yield from _beside(named, rule_spans(text))


def _known(text: bytes, values: Collection[bytes]) -> Iterator[Span]:
    for value in values:
        at = text.find(value)
        while at >= 0:
            yield Span(at, at + len(value), "known value", certain=True)
            at = text.find(value, at + len(value))


def _of_patterns(text: bytes, patterns: Sequence[SecretPattern]) -> Iterator[Span]:
    for pattern in patterns:
        for start, end, kind in pattern.spans(text):
            yield Span(start, end, kind, pattern.certain and (not pattern.random or looks_random(text[start:end])))


def _beside(own: Sequence[Span], others: Iterable[Span]) -> Iterator[Span]:
    """The others, without what our own patterns have found there too, which says its kind in fewer words."""
    starts = [span.start for span in own]
    for span in others:
        before = own[bisect_right(starts, span.start) - 1] if own and starts[0] <= span.start else None
        if before is None or before.end < span.end or (span.certain and not before.certain):
            yield span if before is None or before.end <= span.start else span._replace(kind=before.kind)
