"""Which workspaces we are in: found out at the start, and tried again for as long as Slack cannot be reached."""

from __future__ import annotations

import asyncio

import structlog

from adapters.slack.api import ApiFailed
from adapters.slack.web_api.workspaces import Bot, Workspaces
from bot.platform import NotConnected

log = structlog.get_logger(__name__)

START_SECONDS = 10.0
"""How long the start waits for Slack; after that it goes on without."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two tries to reach Slack."""


class Connecting:
    """Says in the log which workspaces we are connected to, or why not. `first_pause` is in seconds."""

    def __init__(self, workspaces: Workspaces, mode: str, *, first_pause: float = FIRST_PAUSE) -> None:
        self._workspaces = workspaces
        self._mode = mode
        self._pause = first_pause
        self._trying: asyncio.Task[None] | None = None
        self.bots: tuple[Bot, ...] | None = None
        """`None`: not known yet."""

    async def start(self) -> None:
        """Raises `NotConnected` when Slack refuses us."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._find_workspaces()
        except (ApiFailed, TimeoutError) as failure:
            log.warning("slack_unreachable", error=str(failure) or "timeout", note="trying again in the background")
            self._trying = asyncio.create_task(self._keep_trying(), name="slack connecting")

    async def close(self) -> None:
        """Give up."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    async def _find_workspaces(self) -> None:
        self.bots = await self._workspaces.connect()
        log.info("slack_connected", workspaces=[bot.name for bot in self.bots], mode=self._mode)

    async def _keep_trying(self) -> None:
        while self.bots is None:
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            try:
                await self._find_workspaces()
            except NotConnected as refusal:
                log.error("slack_not_connected", reason=refusal.sentence)  # noqa: TRY400  # the sentence says it all
                return
            except ApiFailed as failure:
                log.info("slack_still_unreachable", error=failure.error)
