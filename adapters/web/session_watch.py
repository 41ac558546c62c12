"""Ends the event streams of sessions that are over: somebody was removed, or signed out elsewhere, or it was a week.

Every request asks the records whose it is, but a stream is one request for as long as a page is open.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import structlog
from aiohttp import web

from adapters.web.access import Greeting, PageVisitor
from bot.identity.sessions import PageSessions
from bot.repeated_failures import RepeatedFailure

log = structlog.get_logger(__name__)
LOOK_SECONDS = 1.0
"""Seconds between two looks, while there are streams."""


class SessionWatch:
    """Looks after the sessions with open streams.

    Args:
        end: ends the streams of a session, by its id.
    """

    def __init__(self, kept: PageSessions, end: Callable[[str], None], *, every: float = LOOK_SECONDS) -> None:
        self._kept = kept
        self._end = end
        self._every = every
        self._open: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._failure = RepeatedFailure("sessions_not_looked_after")

    def watched(self, streams: Greeting) -> Greeting:
        """The handler of streams, each of which is looked after."""

        async def stream(request: web.Request, visitor: PageVisitor) -> web.StreamResponse:
            session_id = visitor.session.session_id
            self._open[session_id] += 1
            if self._task is None:
                self._task = asyncio.create_task(self._look(), name="page sessions")
            try:
                return await streams(request, visitor)
            finally:
                self._open[session_id] -= 1
                if not self._open[session_id]:
                    del self._open[session_id]

        return stream

    async def stop(self) -> None:
        """Look after nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(self._every)
            known = set(self._open)
            try:
                left = await self._kept.those_left(known)
            except Exception as error:  # noqa: BLE001  # while the records are away, nothing is shown either
                self._failure.failed(error)
                continue
            self._failure.worked()
            for session_id in known - left:
                self._end(session_id)
        self._task = None
