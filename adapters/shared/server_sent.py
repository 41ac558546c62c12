"""Streams of events: written while something happens, for clients that may go away at any moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from adapters.shared.live.hub import Reader
from adapters.shared.long_answers import LongAnswers
from adapters.shared.program_access import ProgramAccess
from adapters.shared.requests import is_there
from adapters.shared.token_watch import TokenWatch
from bot.identity.principal import Principal
from bot.records.database import is_outage

WRITE_SECONDS = 10.0
"""A client that takes nothing for so long has gone away."""
HEARTBEAT = b": still here\n\n"
EVENT_STREAM = "text/event-stream"
EVENTS: Mapping[str, str] = {"Content-Type": f"{EVENT_STREAM}; charset=utf-8"}
"""Of a stream of events."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class ClientGone(Exception):  # noqa: N818  # what has happened
    """Nobody reads the stream any more."""


class OpenStreams:
    """The streams that are open here, by whose they are.

    Args:
        watch: ends them with their tokens.
        open_: counts them.
    """

    def __init__(self, access: ProgramAccess, watch: TokenWatch, open_: LongAnswers) -> None:
        self._access = access
        self._watch = watch
        self._open = open_

    @contextmanager
    def opened(
        self, request: web.Request, principal: Principal, headers: Mapping[str, str] = EVENTS
    ) -> Iterator[EventStream]:
        """A stream for whoever asks. What fails once it has begun ends it in the middle. Raises `Problem` (429).

        Args:
            headers: that say what it is a stream of.
        """
        stream = EventStream(request, {**self._access.answer_headers(request), **headers})
        try:
            with self._open.one_more(principal), self._watch.watched(principal, stream.cut):
                yield stream
        except Exception as error:
            if stream.response.prepared:
                stream.abort()
            if not stream.response.prepared or not is_outage(error):
                raise


class EventStream:
    """An answer that is a stream: of events, where `headers` say nothing else."""

    def __init__(self, request: web.Request, headers: Mapping[str, str]) -> None:
        self.reader: Reader | None = None
        """Hears for it what happens, if anything does."""
        self._request = request
        self._is_cut = False
        self.response = web.StreamResponse(headers={**EVENTS, **headers, **_HEADERS})

    @property
    def is_read(self) -> bool:
        """Whether the client is still connected, as far as is known."""
        return not self._is_cut and is_there(self._request)

    async def begin(self) -> None:
        """Send the headers. Raises `ClientGone`."""
        await self._unless_gone(self.response.prepare(self._request))

    async def send(self, event: bytes) -> None:
        """Send an event. Raises `ClientGone`."""
        await self._unless_gone(self.response.write(event))

    async def beat(self) -> None:
        """Keep the connection open while nothing happens. Raises `ClientGone`."""
        await self.send(HEARTBEAT)

    async def end(self) -> web.StreamResponse:
        """Nothing more comes. Raises `ClientGone`."""
        await self._unless_gone(self.response.write_eof())
        return self.response

    async def _unless_gone(self, writing: Any) -> None:
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await writing
        except (ConnectionError, TimeoutError):
            self.abort()
            raise ClientGone from None
        if self._is_cut:
            raise ClientGone

    def cut(self) -> None:
        """End it, whatever is being done for it: its token does not count any more."""
        self._is_cut = True
        self.abort()
        if self.reader is not None:
            self.reader.end()

    def abort(self) -> None:
        """End it in the middle."""
        if self._request.transport is not None:
            self._request.transport.abort()


def named_event(name: str, data: Mapping[str, Any], event_id: str = "") -> bytes:
    """Returns an event with a name and JSON, which has no raw line breaks, and perhaps an id."""
    identified = f"id: {event_id}\n" if event_id else ""
    return f"{identified}event: {name}\ndata: {json.dumps(data)}\n\n".encode()
