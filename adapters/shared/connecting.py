"""Whether a chat service lets us in: found out at the start, and tried again while it cannot be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from adapters.shared.calls import CallFailed
from bot.platform import NotConnected

log = structlog.get_logger(__name__)

START_SECONDS = 10.0
"""How long the start waits for the service; after that it goes on without."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two tries to reach it."""


class ConnectionCheck:
    """Calls `connect` until it succeeds; that raises `NotConnected` when the service refuses us, and `CallFailed` when
    it cannot be reached. `service` is for the log; `first_pause` is in seconds."""

    def __init__(
        self, service: str, connect: Callable[[], Awaitable[object]], *, first_pause: float = FIRST_PAUSE
    ) -> None:
        self._service = service
        self._connect = connect
        self._pause = first_pause
        self._unreachable = f"{service}_unreachable"
        self._trying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Try for `START_SECONDS`, and go on in the background. Raises `NotConnected`."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._connect()
        except (CallFailed, TimeoutError) as failure:
            error = str(failure) or "timeout"
            log.warning(self._unreachable, error=error, note="trying again in the background")
            self._trying = asyncio.create_task(self._keep_trying(), name=f"{self._service} connecting")

    async def close(self) -> None:
        """Give up."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    async def _keep_trying(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            try:
                await self._connect()
            except NotConnected as refusal:
                log.error("not_connected", service=self._service, reason=refusal.sentence)  # noqa: TRY400  # it says it all
                return
            except CallFailed as failure:
                log.info("still_unreachable", service=self._service, error=failure.error)
            else:
                return
