"""What Slack knows of somebody that policies ask for: their groups, their channels, their address."""

from __future__ import annotations

from asyncio import timeout as deadline
from collections.abc import Awaitable
from typing import TypeVar

import structlog

from adapters.slack.api import AT_ONCE, ApiFailed
from adapters.slack.ids import PLATFORM
from adapters.slack.web_api.members import Members
from adapters.slack.web_api.people import People
from adapters.slack.web_api.user_groups import UserGroups
from bot.domain import AccountFacts, Person

log = structlog.get_logger(__name__)

Found = TypeVar("Found")

GROUP = f"{PLATFORM}-group"
REINSTALL = "the app was installed before its manifest asked for that scope: reinstall it (docs/slack.md)"


class Standing:
    """Answers of `bot.platform.Platform`: `None` is "could not find out", which refuses; nothing here raises."""

    def __init__(self, people: People, members: Members, groups: UserGroups, *, within: float = AT_ONCE) -> None:
        self._people = people
        self._members = members
        self._groups = groups
        self._within = within
        self._forbidden: set[tuple[str, str]] = set()
        """What was asked for, of which workspace, without its scope."""

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in a user group of their own workspace."""
        person, named = _parts(person_id, PLATFORM), _parts(group, GROUP)
        if person is None or named is None or person[0] != named[0]:
            return None
        (team, user), (_, group_id) = person, named
        return await self._found(self._groups.has(team, group_id, user), "usergroup", team)

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel of their own workspace."""
        person, place = _parts(person_id, PLATFORM), _parts(channel, PLATFORM)
        if person is None or place is None or person[0] != place[0]:
            return None
        (team, user), (_, channel_id) = person, place
        return await self._found(self._members.is_in(team, channel_id, user), "channel", team)

    async def account_of(self, person_id: str) -> AccountFacts:
        """Whose an account is. Where that cannot be looked up and only members may use the bot, it is a member's."""
        person = _parts(person_id, PLATFORM)
        if person is None:
            return AccountFacts()
        found = await self._found(self._people.account(*person), "account", person[0])
        return found or AccountFacts(is_member=True if self._people.only_members else None)

    async def name_of(self, person_id: str) -> str | None:
        """The name of somebody who may use the bot."""
        found = await self._person(person_id, "name")
        return found.name if found else None

    async def _person(self, person_id: str, what: str) -> Person | None:
        person = _parts(person_id, PLATFORM)
        if person is None:
            return None
        team, user = person
        found = await self._found(self._people.admitted(team, user), what, team)
        return found if isinstance(found, Person) else None

    async def _found(self, asking: Awaitable[Found], what: str, team: str) -> Found | None:
        try:
            async with deadline(self._within):
                return await asking
        except ApiFailed as failure:
            self._not_found(what, team, str(failure), forbidden=failure.error == "missing_scope")
        except TimeoutError:
            self._not_found(what, team, "timeout", forbidden=False)
        return None

    def _not_found(self, what: str, team: str, error: str, *, forbidden: bool) -> None:
        """In the log; what stays so until the app is installed anew, once per workspace."""
        if forbidden and (what, team) in self._forbidden:
            return
        if forbidden:
            self._forbidden.add((what, team))
        hint = {"hint": REINSTALL} if forbidden else {}
        log.warning("slack_not_found_out", what=what, team=team, error=error, **hint)


def _parts(reference: str, kind: str) -> tuple[str, str] | None:
    """Workspace and id of `{kind}:{team}:{id}`; `None`: it is none."""
    match reference.split(":"):
        case [begin, team, name] if begin == kind and team and name:
            return team, name
    return None
