"""What our HTTP clients take from services outside, whichever library speaks: short heads, no cookies, and bodies piece
by piece (rule 13 in docs/architecture.md)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from http.cookiejar import CookieJar
from typing import Any

LONGEST_HEAD = 16 * 1024
"""Bytes of an answer's head that are always taken; those of large services have up to 8,000. As many lines of a few
characters take 10 ms to be read, and every header may cost as much again where it is looked at."""
READ = 8 * 1024
"""Bytes that are read from a connection at a time, which a head may be longer."""
PIECE = 4_096
"""Bytes that are handed on, or looked through, before others have their turn."""
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_EACH = 80
"""Bytes that passing on a piece counts as, however small it is."""


def take_short_heads(connection: type[Any]) -> None:
    """Make connections break off at a head (or the trailers of a body) beyond `LONGEST_HEAD`, with the error of a
    server that does not speak HTTP.

    `connection`: `AsyncHTTP11Connection` of httpcore. It takes 100 kB, as 24,000 lines a quarter of a second of the
    event loop, and has no other setting than these attributes of the class: for the whole process.
    """
    connection.MAX_INCOMPLETE_EVENT_SIZE = LONGEST_HEAD
    connection.READ_NUM_BYTES = READ


class NoCookies(CookieJar):
    """Takes no cookie: 4,500 in one head held the event loop for 0.1 s, and a jar has no limit. Nothing that we speak
    to needs any."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Leave them where they are."""


def pieces(chunk: bytes) -> Iterator[bytes]:
    """Yields the same bytes, at most `PIECE` at a time."""
    for start in range(0, len(chunk), PIECE):
        yield chunk[start : start + PIECE]


async def in_pieces(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yields the same bytes, at most `PIECE` at a time; others get their turn in between, also when each byte comes as
    a chunk of its own, thousands of which may have arrived at once."""
    weight = 0
    async for chunk in chunks:
        for piece in pieces(chunk):
            yield piece
            weight += len(piece) + _EACH
            if weight >= PIECE:
                weight = 0
                await asyncio.sleep(0)


class OutsideStrings:
    """What of a JSON text stands outside of its strings: the signs there say what reading it costs. A megabyte of text
    takes 3 ms, a megabyte of `[],` a hundred times as long. Linear in time, whatever the text is."""

    def __init__(self) -> None:
        self._in_string = self._escaped = False

    def feed(self, piece: bytes) -> bytes:
        """Take the next piece of the text; returns what of it stands outside, and the ends of strings."""
        if self._escaped and piece:
            piece, self._escaped = piece[1:], False
        if self._in_string:
            piece = b'"' + piece
        bare, strings = _STRINGS.subn(rb"\1", piece)
        self._in_string = strings > bare.count(b'"')
        self._escaped = self._in_string and bare.endswith(b"\\")
        return bare


def is_encoded(encoding: str | None) -> bool:
    """Whether a body with this `Content-Encoding` would have to be decompressed. Nobody asks for that: a kilobyte may
    become a gigabyte."""
    return (encoding or "identity").strip().lower() not in {"", "identity"}
