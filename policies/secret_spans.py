"""All that is looked for in a text, as it is written and as it reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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
    return _in_all_readings(text, lambda read: _whatever(read, patterns, values))


def certain_spans(text: bytes, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> Iterator[Span]:
    """Those of `secret_spans` that are certain, for much less."""
    found = _in_all_readings(text, lambda read: _tokens(read, patterns, values))
    return (span for span in found if span.certain)


def _in_all_readings(text: bytes, look: Callable[[bytes], Iterator[Span]]) -> Iterator[Span]:
    yield from look(text)
    for read, steps in readings(text):
        for span in look(read):
            start, end = place_in(text, steps, span.start, span.end)
            if start < end:
                # Between disguised characters anything invisible could be hidden with them.
                plain = text[start:end] == read[span.start : span.end]
                yield Span(start, end, span.kind, span.certain and plain)


def _whatever(text: bytes, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> Iterator[Span]:
    shapes = _shapes(text, patterns, values)
    named = sorted({*shapes, *_beside(shapes, (Span(*span) for span in fields(text)))})
    yield from named
    yield from _beside(named, place_spans(text))
    yield from _beside(named, rule_spans(text))


def _tokens(text: bytes, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> Iterator[Span]:
    shapes = _shapes(text, [pattern for pattern in patterns if pattern.certain], values)
    yield from shapes
    yield from _beside(shapes, rule_spans(text))


def _shapes(text: bytes, patterns: Sequence[SecretPattern], values: Collection[bytes]) -> list[Span]:
    return sorted({*_known(text, values), *_of_patterns(text, patterns), *key_spans(text)})


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
