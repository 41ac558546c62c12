"""Who is in a user group: what policies mean by `slack-group:T1:S1`."""

from __future__ import annotations

from adapters.slack.api import AT_ONCE, Api
from adapters.slack.web_api.remembered import Remembered
from bot.clock import Clock, system_clock

KEEP = 120.0
"""Seconds that we believe who is in a group; what is decided with it cannot be undone, so not for longer."""


class UserGroups:
    """The user groups of all workspaces. `close` in the end."""

    def __init__(self, api: Api, clock: Clock = system_clock) -> None:
        self._api = api
        self._members: Remembered[tuple[str, str], frozenset[str]] = Remembered(self._ask, keep=KEEP, clock=clock)

    async def has(self, team: str, group: str, user: str) -> bool:
        """Whether somebody is in a group. Raises `ApiFailed` when that cannot be found out: the group does not exist
        or is disabled, or the installation lacks `usergroups:read`."""
        return user in await self._members.get((team, group))

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._members.close()

    async def _ask(self, key: tuple[str, str]) -> frozenset[str]:
        team, group = key
        answer = await self._api.call(team, "usergroups.users.list", {"usergroup": group}, patience=AT_ONCE)
        return frozenset(map(str, answer.get("users") or ()))
