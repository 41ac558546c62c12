"""Who is in a channel: what is asked there is not for the eyes of everybody else."""

from __future__ import annotations

from typing import Any

import structlog

from adapters.slack.api import Api, ApiFailed
from adapters.slack.reading import words
from adapters.slack.web_api.remembered import Remembered
from bot.clock import Clock, system_clock

log = structlog.get_logger(__name__)

KEEP = 300.0
"""Seconds that we believe who is in a channel."""
PAGE = 999
"""Members asked for at once (Slack: "under 1000")."""
MOST_PAGES = 10


class Members:
    """The members of channels. `close` in the end."""

    def __init__(self, api: Api, clock: Clock = system_clock) -> None:
        self._api = api
        self._members: Remembered[tuple[str, str], frozenset[str]] = Remembered(self._ask, keep=KEEP, clock=clock)

    async def has(self, team: str, channel: str, user: str) -> bool:
        """Whether somebody is in a channel. No, where that cannot be found out."""
        try:
            return user in await self._members.get((team, channel))
        except ApiFailed as failure:
            log.info("slack_members_not_found", team=team, channel=channel, error=failure.error)
            return False

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._members.close()

    async def _ask(self, key: tuple[str, str]) -> frozenset[str]:
        team, channel = key
        asked: dict[str, Any] = {"channel": channel, "limit": PAGE}
        found: set[str] = set()
        for _ in range(MOST_PAGES):
            page = await self._api.call(team, "conversations.members", asked)
            found.update(map(str, page.get("members") or ()))
            cursor = words(page, "response_metadata", "next_cursor")
            if not cursor:
                break
            asked["cursor"] = cursor
        else:
            log.warning("slack_members_cut", team=team, channel=channel, members=len(found))
        return frozenset(found)
