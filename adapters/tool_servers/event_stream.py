"""The event streams in which a server answers and speaks: bounded, and each answer comes in the end.

A stream that answers one request always ends with an answer, and what the server asks in the meantime is known to
belong to that request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import httpx
import structlog

from adapters.tool_servers.message_sizes import EVENT, Intake, Weight
from adapters.tool_servers.replies import RequestId

log = structlog.get_logger(__name__)

ASKING = "elicitation/create"
"""Method of a server's question to a person (MCP 2025-11-25)."""

LONGEST_QUESTION = 256 * 1024
"""Bytes. Longer events are not looked into."""

PIECE = 4_096
"""Bytes that are looked through before others have their turn."""


class Events:
    """Follows an event stream that comes in pieces: how large its events are, and which questions are in it. Pure,
    whatever comes."""

    def __init__(self) -> None:
        self._weight = Weight()
        self._line = b""
        self._data: list[bytes] = []
        self._size = 0
        self.ended = 0
        """How many events have ended, empty ones not counted."""
        self.too_large = False
        """Whether an event is larger than is parsed."""

    def feed(self, piece: bytes) -> list[RequestId]:
        """Ids of the questions whose events end in this piece."""
        *lines, rest = piece.split(b"\n")
        asked = []
        for line in lines:
            self._weigh(line)
            whole, self._line = self._line + line, b""
            question = self._ended(whole.removesuffix(b"\r"))
            if question is not None:
                asked.append(question)
        self._weigh(rest)
        self._line += rest[: max(LONGEST_QUESTION - len(self._line), 0)]
        return asked

    def _weigh(self, line: bytes) -> None:
        if line:
            self._weight.feed(line)
            self.too_large = self.too_large or self._weight.too_large

    def _ended(self, line: bytes) -> RequestId | None:
        if line.startswith(b"data:"):
            self._size += len(line)
            if self._size < LONGEST_QUESTION:
                self._data.append(line.removeprefix(b"data:").removeprefix(b" "))
            return None
        if line:
            return None
        if self._weight.total:
            self.ended += 1
            self._weight = Weight()
        data, size = self._data, self._size
        self._data, self._size = [], 0
        return _question_in(b"\n".join(data)) if data and size < LONGEST_QUESTION else None


def _question_in(data: bytes) -> RequestId | None:
    if ASKING.encode() not in data:
        return None
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("method") != ASKING:
        return None
    asked = message.get("id")
    return asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None


@dataclass(frozen=True, slots=True)
class LastWords:
    """What makes the events with which a stream ends where its answer is missing; `None`: none."""

    broken: Callable[[], bytes] | None = None
    """When it breaks off, or ends without an answer."""
    too_large: Callable[[], bytes] | None = None
    """When the server sends more than is read."""


class BoundedStream(httpx.AsyncByteStream):
    """An event stream, read no faster than `intake` says, and ended at an event that is too large.

    One that answers a request ends with an answer: with the `last_words`, if there are any, when the real one is
    missing. Once the real answer has come the SDK reads no further, so the one added here is seen only where it is
    missing. A stream whose events have ids is left alone when it breaks: the SDK takes it up again where it broke off.
    `asked` is told the id of each question before anybody can read it. `silence`: seconds without a word after which
    the stream is given up (`None`: it may be silent for ever); `patience`: the same once the server has asked a person
    something.
    """

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        intake: Intake,
        last_words: LastWords,
        asked: Callable[[RequestId], None],
        *,
        silence: float | None,
        patience: float,
    ) -> None:
        self._stream = stream
        self._intake = intake
        self._last_words = last_words
        self._asked = asked
        self._silence = silence
        self._patience = patience

    async def __aiter__(self) -> AsyncIterator[bytes]:
        resumable = False
        tail = b"\n"
        events = Events()
        limit = self._silence
        chunks = aiter(self._stream)
        try:
            while True:
                async with asyncio.timeout(limit):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                ended_before = events.ended
                for piece in pieces(chunk):
                    for question in events.feed(piece):
                        limit = self._patience
                        self._asked(question)
                    if events.too_large:
                        log.warning("tool_server_event_too_large")
                        await self._stream.aclose()
                        if self._last_words.too_large:
                            yield self._last_words.too_large()
                        return
                    resumable = resumable or b"\nid:" in tail + piece
                    tail = (tail + piece)[-3:]
                    yield piece
                    await asyncio.sleep(0)  # 600 events that say nothing fit into a piece
                await asyncio.sleep(self._intake.pause(len(chunk) + EVENT * (events.ended - ended_before)))
        except (httpx.TransportError, TimeoutError) as error:
            if resumable and isinstance(error, httpx.TransportError):
                raise
            log.debug("tool_server_stream_broke", error=type(error).__name__)
        if self._last_words.broken and not resumable:
            yield self._last_words.broken()

    async def aclose(self) -> None:
        """As httpx wants it."""
        await self._stream.aclose()


def pieces(chunk: bytes) -> Iterator[bytes]:
    """A chunk as it is looked through."""
    for start in range(0, len(chunk), PIECE):
        yield chunk[start : start + PIECE]


def as_event(message: object) -> bytes:
    """A message as an event of its own, whatever stood before it in the stream."""
    return b"\n\nevent: message\ndata: " + json.dumps(message).encode() + b"\n\n"
