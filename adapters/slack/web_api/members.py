"""Who is in a channel: what is asked there is not for the eyes of everybody else."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Roster:
    users: frozenset[str]
    cut: bool = False
    """There are more of them."""


class Members:
    """The members of channels. `close` in the end."""

    def __init__(self, api: Api, clock: Clock = system_clock) -> None:
        self._api = api
        self._members: Remembered[tuple[str, str], _Roster] = Remembered(self._ask, keep=KEEP, clock=clock)

    async def has(self, team: str, channel: str, user: str) -> bool:
        """Whether somebody is in a channel. No, where that cannot be found out."""
        try:
            return user in (await self._members.get((team, channel))).users
        except ApiFailed as failure:
            log.info("slack_members_not_found", team=team, channel=channel, error=failure.error)
            return False

    async def is_in(self, team: str, channel: str, user: str) -> bool | None:
        """The same, but `None` where there are more members than are asked for. Raises `ApiFailed` when it cannot be
        found out."""
        found = await self._members.get((team, channel))
        return user in found.users or (None if found.cut else False)

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._members.close()

    async def _ask(self, key: tuple[str, str]) -> _Roster:
        team, channel = key
        asked: dict[str, Any] = {"channel": channel, "limit": PAGE}
        found: set[str] = set()
        for _ in range(MOST_PAGES):
            page = await self._api.call(team, "conversations.members", asked)
            found.update(map(str, page.get("members") or ()))
            cursor = words(page, "response_metadata", "next_cursor")
            if not cursor:
                return _Roster(frozenset(found))
            asked["cursor"] = cursor
        log.warning("slack_members_cut", team=team, channel=channel, members=len(found))
        return _Roster(frozenset(found), cut=True)
