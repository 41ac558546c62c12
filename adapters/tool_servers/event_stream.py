"""The event stream in which a server answers one request: it always ends with an answer, and what the server asks in
the meantime is known to belong to that request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import httpx
import structlog

log = structlog.get_logger(__name__)

RequestId = str | int

ASKING = "elicitation/create"
"""Method of a server's question to a person (MCP 2025-11-25)."""

LONGEST_EVENT = 4 * 1024 * 1024
"""Bytes. Longer events are not looked into."""


class Questions:
    """Finds the ids of the questions in an event stream that comes in pieces. Pure, whatever comes."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[RequestId]:
        """Ids of the questions whose events end in this piece."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST_EVENT:
            self._rest = b""
        return [asked for line in lines if (asked := self._line(line.removesuffix(b"\r"))) is not None]

    def _line(self, line: bytes) -> RequestId | None:
        if line.startswith(b"data:"):
            self._size += len(line)
            if self._size <= LONGEST_EVENT:
                self._data.append(line.removeprefix(b"data:").removeprefix(b" "))
            return None
        if line:
            return None
        data, self._data, self._size = b"\n".join(self._data), [], 0
        return _question_in(data)


def _question_in(data: bytes) -> RequestId | None:
    try:
        message = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("method") != ASKING:
        return None
    asked = message.get("id")
    return asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None


class AnswerStream(httpx.AsyncByteStream):
    """An event stream that ends with an answer, `last_words` (if there are any) when the real one is missing.

    Once the real answer has come the SDK reads no further, so the one added here is seen only where it is missing.
    A stream whose events have ids is left alone: the SDK takes it up again where it broke off. `asked` is told the id
    of each question before anybody can read it. `silence`: seconds without a word after which the stream is given up;
    `patience`: the same once the server has asked a person something.
    """

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        last_words: bytes,
        asked: Callable[[RequestId], None],
        *,
        silence: float,
        patience: float,
    ) -> None:
        self._stream = stream
        self._last_words = last_words
        self._asked = asked
        self._silence = silence
        self._patience = patience

    async def __aiter__(self) -> AsyncIterator[bytes]:
        resumable = False
        tail = b"\n"
        questions = Questions()
        limit = self._silence
        chunks = aiter(self._stream)
        try:
            while True:
                async with asyncio.timeout(limit):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                for question in questions.feed(chunk):
                    limit = self._patience
                    self._asked(question)
                resumable = resumable or b"\nid:" in tail + chunk
                tail = (tail + chunk)[-3:]
                yield chunk
        except (httpx.TransportError, TimeoutError) as error:
            if resumable and isinstance(error, httpx.TransportError):
                raise
            log.debug("tool_server_stream_broke", error=type(error).__name__)
        if self._last_words and not resumable:
            yield b"\n\nevent: message\ndata: " + self._last_words + b"\n\n"

    async def aclose(self) -> None:
        """As httpx wants it."""
        await self._stream.aclose()
