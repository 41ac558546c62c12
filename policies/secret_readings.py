"""A text as it reads when its disguises are taken off: escapes of JSON, HTML and addresses are resolved, full-width
letters are plain ones, and characters without width are gone. Where each part stands in the text itself is kept."""

from __future__ import annotations

import html
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from policies.patterns import compiled

_MOST = 3
"""How often escapes are resolved: JSON within JSON within JSON."""

_WITHOUT_WIDTH = (
    r"\x{AD}|\x{34F}|\x{61C}|\x{115F}|\x{1160}|\x{17B4}|\x{17B5}|[\x{180B}-\x{180F}]|[\x{200B}-\x{200F}]"
    r"|[\x{202A}-\x{202E}]|[\x{2060}-\x{206F}]|\x{3164}|[\x{FE00}-\x{FE0F}]|\x{FEFF}|\x{FFA0}|[\x{E0000}-\x{E0FFF}]"
)
_OTHER_LETTERS = r"[\x{FF01}-\x{FF5E}]|[\x{1D400}-\x{1D7FF}]"
_ESCAPES = (
    r"\\u00[0-7][0-9A-Fa-f]|\\u200[b-fB-F]|\\u2060|\\u[fF][eE][fF][fF]|\\x[0-7][0-9A-Fa-f]|\\[\\nrt\"'/]"
    r"|&(?:quot|apos|amp|lt|gt|nbsp|#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5});|%[2-7][0-9A-Fa-f]"
)
_BACKSLASHES = r"(?:\\\\){8,}"
"""So many that nobody wrote them as part of a secret: taken as one, since each alone would cost as much."""
_DISGUISE = compiled(f"{_BACKSLASHES}|{_ESCAPES}|(?:{_WITHOUT_WIDTH})+|{_OTHER_LETTERS}")
_LONGEST_LETTER = 4
"""Bytes of a character."""
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_BACKSLASH = ord("\\")


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
    sign = disguised[:1]
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
