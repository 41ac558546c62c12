"""Answers of models' services as server-sent events that hold JSON, and their text as it is passed on."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import anyio
import httpx2

from graph.http_bounds import OutsideStrings
from graph.models.problems import ModelProblem, Trouble

MOST_VALUES = 50_000
"""Lists, objects, and elements and members of them, of one event. The events in which OpenAI repeats all tools that it
was given have half as many at most; this many take 30 ms."""
BROKEN = (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream)
"""What the HTTP client raises where a connection fails; some failures of TLS go past its own errors."""
NOTHING = object()
"""What `read` returns of an event that only keeps the connection alive."""
_LONG = 64 * 1024
"""Bytes of an event from which on it is looked through before it is parsed; at a time."""
_MANY_DIGITS = re.compile(rb"(?<![0-9])[0-9]{100}")
"""Part of a number that nobody needs: reading one of 4,000 digits takes 35 µs, and writing it three times as long."""
_AT_ONCE = 50
"""Events that are read one after the other before others get their turn, some 5 ms: they may all be there already."""
_REST_SECONDS = 0.1
"""What is waited for the end of a body after its last event, so that its connection can be used again."""
_ONE_BY_ONE = 1_000
"""Pieces of an answer that are shown as they come: more than most answers have."""
_LUMP = 200
"""Characters of a longer answer that are shown at a time."""


async def json_events(
    response: httpx2.Response,
    seconds: float | None,
    read: Callable[[str], Any] = json.loads,
    failing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> AsyncGenerator[Any]:
    """Yields what each event says, until the body ends or the service says `[DONE]`; closes the answer.

    Args:
        response: Its body is bounded already, also within an event.
        seconds: The longest wait for an event; comments, and what `read` takes for `NOTHING`, do not count.
        read: What an event says, of its data.
        failing: Around each wait, for the failures of a connection to be another library's.

    Raises what the connection and `read` raise; `TimeoutError`; `ModelProblem` for an event that takes too long to be
    parsed; `ValueError` for one that is no JSON.
    """
    pieces, events, count, loop = response.aiter_raw(), _EventsInTheMaking(), 0, asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    try:
        while True:
            with failing():
                async with asyncio.timeout_at(until):
                    piece = await anext(pieces, None)
            if piece is None:
                return
            for said in events.feed(piece):
                if said.startswith("[DONE]"):
                    await _read_rest(pieces)
                    return
                if await takes_long(said):
                    raise ModelProblem(Trouble.TOO_MUCH)
                count += 1
                if count % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                if (event := read(said)) is NOTHING:
                    continue
                yield event
                until = None if seconds is None else loop.time() + seconds
    finally:
        await response.aclose()


async def _read_rest(pieces: AsyncIterator[bytes]) -> None:
    """What becomes of it is no failure of the answer, which is whole."""
    with suppress(*BROKEN, httpx2.StreamError, TimeoutError):
        async with asyncio.timeout(_REST_SECONDS):
            async for _ in pieces:
                pass


class _EventsInTheMaking:
    """Events in the making (https://html.spec.whatwg.org/multipage/server-sent-events.html). Their names, ids and
    pauses say nothing that their data does not. Linear in time, however the pieces are cut."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._after_return = False
        """Whether the last piece ended in a carriage return, to which a line feed may belong."""

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yields the data of the events that end in this piece. Raises `ValueError` at what is not UTF-8."""
        if self._after_return:
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r") or (self._after_return and not piece)
        for line in piece.splitlines(keepends=True):
            self._line.append(line)
            if not line.endswith((b"\n", b"\r")):
                return
            whole, self._line = b"".join(self._line).rstrip(b"\r\n").decode(), []
            name, _, value = whole.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif not whole and self._data:
                yield "\n".join(self._data)
                self._data = []


async def takes_long(said: str) -> bool:
    """Whether parsing an event would: with too many values, or a number of too many digits."""
    if len(said) <= _LONG:
        return False
    data, outside, values = said.encode(), OutsideStrings(), 0
    for start in range(0, len(data), _LONG):
        bare = outside.feed(data[start : start + _LONG])
        values += bare.count(b"[") + bare.count(b"{") + bare.count(b",")
        if values > MOST_VALUES or _MANY_DIGITS.search(bare):
            return True
        await asyncio.sleep(0)
    return False


class Lumps:
    """Passes text on: each piece as it comes, in a long answer `_LUMP` characters at a time."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.began = False
        """Whether there was any piece, which may be empty."""
        self._on_text = on_text
        self._passed = self._characters = 0
        self._gathered: list[str] = []

    def add(self, text: str) -> None:
        """More text."""
        self.began = True
        if not text:
            return
        self._gathered.append(text)
        self._characters += len(text)
        if self._passed < _ONE_BY_ONE or self._characters >= _LUMP:
            self.end()

    def end(self) -> None:
        """Pass on what is there."""
        if self._gathered:
            self._on_text("".join(self._gathered))
            self._passed, self._characters, self._gathered = self._passed + 1, 0, []
