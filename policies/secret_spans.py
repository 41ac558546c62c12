"""All that is looked for in a text, as it is written and as it reads."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from array import array
from base64 import b64encode
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from policies.patterns import Needles, compiled
from policies.secret_fields import fields, place_spans
from policies.secret_rules import Span, looks_random, rule_spans
from policies.secret_shapes import SecretPattern, key_spans

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
        each = [
            (pattern, (partial(_of_pattern, pattern), [needle.encode() for needle in pattern.needles]))
            for pattern in patterns
        ]
        self._all: Needles[_Look] = Needles([*known, keys, *(sought for _, sought in each)])
        self._certain: Needles[_Look] = Needles([*known, keys, *(sought for one, sought in each if one.certain)])

    def spans(self, text: bytes, *, certain: bool = False) -> list[Span]:
        """Where they are, in order, each once; some may overlap. Linear in time. `certain`: only those that may be
        secrets for certain."""
        sought = self._certain if certain else self._all
        return in_order(span for look in sought.whose_are_in(text) for span in look(text))


def secret_spans(text: bytes, shapes: Shapes, *, certain: bool = False) -> Iterator[Span]:
    """What in the UTF-8 of a text is or may be a secret, in no order; spans may overlap. Linear in time.

    Beside the `shapes` always: tokens by the rules of services, fields and places of secrets. `certain`: only what is
    a secret for certain, for much less.
    """
    for span in _in_all_readings(text, partial(_in_one_reading, shapes=shapes, certain=certain)):
        if span[3] or not certain:
            yield span


def _in_all_readings(text: bytes, look: _Look) -> Iterator[Span]:
    yield from look(text)
    for read, steps in readings(text):
        for first, last, kind, certain in look(read):
            start, end = place_in(text, steps, first, last)
            if start < end:
                # Between disguised characters anything invisible could be hidden with them.
                yield start, end, kind, certain and text[start:end] == read[first:last]


def _in_one_reading(text: bytes, shapes: Shapes, *, certain: bool) -> Iterator[Span]:
    found = shapes.spans(text, certain=certain)
    if not certain:
        found = in_order(chain(found, _beside(found, ((*span, False) for span in fields(text)))))
    yield from found
    if not certain:
        yield from _beside(found, place_spans(text))
    yield from _beside(found, rule_spans(text))


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


# ------------------------------------------------------------------------- decoded readings of a text
# Escapes of JSON, HTML and addresses are resolved, full-width letters become plain ones, and what has no width is
# dropped, controls too: a text in UTF-16 that was taken for UTF-8 has one between any two letters. What colours a text
# in a terminal ends a word at first, and is dropped in the next reading: it may stand between a word and a secret, or
# within one. The position of each part in the original text is kept.

_MOST = 3
"""How often escapes are resolved: JSON within JSON within JSON."""
_WITHOUT_WIDTH = (
    r"\x{AD}|\x{34F}|\x{61C}|\x{115F}|\x{1160}|\x{17B4}|\x{17B5}|[\x{180B}-\x{180F}]|[\x{200B}-\x{200F}]"
    r"|[\x{202A}-\x{202E}]|[\x{2060}-\x{206F}]|\x{3164}|[\x{FE00}-\x{FE0F}]|\x{FEFF}|\x{FFA0}|[\x{E0000}-\x{E0FFF}]"
    r"|[\x00-\x08\x0E-\x1A\x1C-\x1F\x7F]"
)
_OTHER_LETTERS = r"[\x{FF01}-\x{FF5E}]|[\x{1D400}-\x{1D7FF}]"
_ESCAPES = (
    r"\\u00[0-7][0-9A-Fa-f]|\\u200[b-fB-F]|\\u2060|\\u[fF][eE][fF][fF]|\\x[0-7][0-9A-Fa-f]|\\[\\nrt\"'/]"
    r"|&(?:quot|apos|amp|lt|gt|nbsp|#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5});|%[2-7][0-9A-Fa-f]"
)
_COLOURS = r"(?:\x1B{1,8}|\\033|\\e|\^\[)(?:\[[0-9;:?]{0,40}[A-Za-z]|\(B)|\x{9B}[0-9;:?]{0,40}[A-Za-z]"
"""https://www.ecma-international.org/publications-and-standards/standards/ecma-48/, as it is and as people write it."""
_LONE_ESC = r"\x1B+"
_BACKSLASHES = r"(?:\\\\){8,}"
"""So many that nobody wrote them as part of a secret: taken as one, since each alone would cost as much."""
_DISGUISE = compiled(f"{_BACKSLASHES}|{_COLOURS}|{_ESCAPES}|(?:{_WITHOUT_WIDTH})+|{_LONE_ESC}|{_OTHER_LETTERS}")
_LONGEST_LETTER = 4
"""Bytes of a character."""
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_BACKSLASH = ord("\\")
_ESC, _CSI = b"\x1b", "\x9b".encode()


class Reading:
    """One way to read a text."""

    def __init__(self, text: bytes, starts: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]) -> None:
        """`starts`: where a part begins in `text`; `firsts` and `lasts`: from where to where it stands in what was
        read, which is longer than the part where it was written in another way."""
        self.text = text
        self._starts = starts
        self._firsts = firsts
        self._lasts = lasts

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` stand in what was read; `start` is less than `end`."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        part = bisect_right(self._starts, at) - 1
        first, last = self._firsts[part], self._lasts[part]
        following = self._starts[part + 1] if part + 1 < len(self._starts) else len(self.text)
        if last - first != following - self._starts[part]:
            return first, last
        return first + at - self._starts[part], first + at - self._starts[part] + 1


def readings(text: bytes) -> Iterator[tuple[bytes, tuple[Reading, ...]]]:
    """The ways to read a text that differ from how it is written, each with the steps that led to it. Linear."""
    steps: tuple[Reading, ...] = ()
    for _ in range(_MOST):
        reading = _undisguised(text)
        if reading is None:
            return
        text, steps = reading.text, (*steps, reading)
        yield text, steps


def place_in(original: bytes, steps: tuple[Reading, ...], start: int, end: int) -> tuple[int, int]:
    """Where a part of a reading stands in the original. It ends before a quote that is not escaped there: such a quote
    ends a text of JSON, whatever an escape before it seems to begin."""
    for step in reversed(steps):
        start, end = step.place(start, end)
    at = original.find(b'"', start, end)
    while at >= 0:
        first = at
        while first > 0 and original[first - 1] == _BACKSLASH:
            first -= 1
        if (at - first) % 2 == 0:
            return start, at
        at = original.find(b'"', at + 1, end)
    return start, end


def _undisguised(text: bytes) -> Reading | None:
    # No objects of their own for each part: to free and to walk through half a million holds the interpreter.
    read = bytearray()
    starts, firsts, lasts = array("q"), array("q"), array("q")
    done = 0

    def add(part: bytes, first: int, last: int) -> None:
        nonlocal read
        if part:
            starts.append(len(read))
            firsts.append(first)
            lasts.append(last)
            read += part

    for found in _DISGUISE.finditer(text):
        first, last = found.span()
        plain = _plain(text[first:last])
        if plain is not None:
            add(text[done:first], done, first)
            add(plain, first, last)
            done = last
    if done == 0:
        return None
    add(text[done:], done, len(text))
    return Reading(bytes(read), starts, firsts, lasts) if read else None


def _plain(disguised: bytes) -> bytes | None:
    """What stands for it; nothing for what has no width; `None` when it stands for itself."""
    if len(disguised) == 1:  # a control character
        return b""
    sign = disguised[:1]
    if b"[" in disguised or b"(" in disguised or (len(disguised) > 1 and disguised.startswith(_CSI)):
        return _ESC
    if sign == b"\\":
        if disguised.startswith(b"\\\\\\"):
            return disguised[: len(disguised) // 2]
        return _SIGNS.get(disguised[1:], disguised[1:]) if len(disguised) == 2 else _shown(int(disguised[2:], 16))
    if sign == b"%":
        return _shown(int(disguised[1:], 16))
    if sign == b"&":
        plain = html.unescape(disguised.decode())
        return _shown(ord(plain)) if len(plain) == 1 else None
    if len(disguised) > _LONGEST_LETTER:
        return b""  # several without width
    letter = disguised.decode("utf-8", "replace")
    plain = unicodedata.normalize("NFKC", letter)
    return plain.encode() if plain != letter and plain.isascii() else b""


def _shown(code: int) -> bytes | None:
    if code < 0x80:
        return bytes([code])
    return b"" if unicodedata.category(chr(code)) == "Cf" else chr(code).encode("utf-8", "surrogatepass")


# ---------------------------- encodings of a known secret: JSON, addresses, HTML, base64, hexadecimal

_BITS = 6
"""Bits that one character of base64 carries."""
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def spellings(value: str) -> frozenset[bytes]:
    """The value in every way in which programs commonly write a text; the value itself is one of them."""
    written = {value, html.escape(value), *_in_json(value), *_in_address(value)}
    raw = value.encode("utf-8", "surrogatepass")
    return frozenset(
        {text.encode("utf-8", "surrogatepass") for text in written}
        | {raw.hex().encode(), raw.hex().upper().encode()}
        | _in_base64(raw)
    )


def _in_json(value: str) -> set[str]:
    plain = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return plain | {text.replace("/", "\\/") for text in plain}  # as PHP writes it


def _in_address(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    written = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    return written | {_PERCENT.sub(lambda escape: escape[0].lower(), text) for text in written}


def _in_base64(raw: bytes) -> set[bytes]:
    """What base64 of any text with the value in it holds: at each of three offsets, the digits that are the value's
    alone; in both alphabets."""
    found = set()
    for before in range(3):
        digits = b64encode(bytes(before) + raw)
        first = -(-8 * before // _BITS)
        digits = digits[first : 8 * (before + len(raw)) // _BITS]
        found |= {digits, digits.translate(bytes.maketrans(b"+/", b"-_"))}
    return found
