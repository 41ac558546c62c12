"""What Microsoft knows of somebody that policies ask for: their groups, their channels, their address."""

from __future__ import annotations

from asyncio import timeout as deadline
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

import structlog

from adapters.shared.untrusted_json import words
from adapters.teams.api import AT_ONCE, ConnectorFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.entra import Entra
from adapters.teams.connector.people import NO_COLLEAGUE, People, shown_name
from adapters.teams.connector.vouching import Vouching, is_outsider
from adapters.teams.ids import PLATFORM, TeamsLocation, location_of, named_place
from bot.clock import Clock, system_clock
from bot.domain import AccountFacts, Person, Unwelcome

log = structlog.get_logger(__name__)

Found = TypeVar("Found")

GROUP = "entra-group"
NAME_WITHIN = 0.6
"""Seconds, of the 5 that Teams waits for the answer to a dialog, for the name of whom it names."""
CONSENT = "an administrator has to grant the app permissions of Microsoft Graph: docs/teams.md"
_FORBIDDEN = frozenset({"Authorization_RequestDenied", "Forbidden", "AccessDenied"})


class Standing:
    """Answers of `bot.platform.Platform`: `None` is "could not find out", which refuses; nothing here raises. `close`
    in the end."""

    def __init__(
        self, people: People, config: TeamsConfig, *, clock: Clock = system_clock, within: float = AT_ONCE
    ) -> None:
        self._people = people
        self._entra = Entra(config, clock=clock)
        self._vouching = Vouching(config)
        self._within = within
        self._forbidden: set[str] = set()
        """What was asked for without permission."""

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in an Entra group (`entra-group:{tenant}:{id}`) of their own tenant."""
        person, named = _parts(person_id, PLATFORM), _parts(group, GROUP)
        if person is None or named is None or person[0] != named[0]:
            return None
        (tenant, user), (_, group_id) = person, named
        return await self._found(self._entra.is_in(tenant, user, group_id), "group")

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a conversation."""
        person, place = _parts(person_id, PLATFORM), named_place(channel)
        if person is None or place is None or place.direct:
            return None
        location = location_of(place)
        if person[0] != location.tenant:
            return None
        return await self._found(self._people.is_in(location, person[1], patience=self._within), "channel")

    async def account_of(self, person_id: str) -> AccountFacts:
        """Whose an account is, from a roster that was seen lately, else from Graph."""
        person = _parts(person_id, PLATFORM)
        if person is None:
            return AccountFacts()
        known = self._people.known_account(person_id)
        if known.email or known.is_member is False:
            return known
        tenant, user = person
        account = await self._found(self._entra.account(tenant, user), "account")
        return self._vouching.account(tenant, account) if account else known

    async def name_of(self, person_id: str) -> str | None:
        """The name of somebody of an allowed tenant, as Graph knows them."""
        person = _parts(person_id, PLATFORM)
        if person is None:
            return None
        account = await self._found(self._entra.account(*person), "name")
        return (shown_name(words(account, "displayName")) or None) if account else None

    async def colleague(self, location: TeamsLocation, user: str) -> Person | Unwelcome:
        """Somebody of the organisation whom another names: as the conversation's roster knows them, else Graph."""
        person = await self._people.colleague(location, user, patience=NAME_WITHIN)
        if isinstance(person, Unwelcome) or person.name:
            return person
        account = await self._found(self._entra.account(location.tenant, user), "name", NAME_WITHIN) or {}
        if is_outsider(account):
            return Unwelcome(NO_COLLEAGUE)
        return replace(person, name=shown_name(words(account, "displayName")))

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._entra.close()

    async def _found(self, asking: Awaitable[Found], what: str, within: float | None = None) -> Found | None:
        try:
            async with deadline(within or self._within):
                return await asking
        except ConnectorFailed as failure:
            self._not_found(what, str(failure), forbidden=failure.error in _FORBIDDEN)
        except TimeoutError:
            self._not_found(what, "timeout", forbidden=False)
        return None

    def _not_found(self, what: str, error: str, *, forbidden: bool) -> None:
        """In the log; what stays so until an administrator consents, once."""
        if forbidden and what in self._forbidden:
            return
        if forbidden:
            self._forbidden.add(what)
        hint = {"hint": CONSENT} if forbidden else {}
        log.warning("teams_not_found_out", what=what, error=error, **hint)


def _parts(reference: str, kind: str) -> tuple[str, str] | None:
    """Tenant and id of `{kind}:{tenant}:{id}`, in lower case; `None`: it is none."""
    match reference.lower().split(":"):
        case [begin, tenant, name] if begin == kind and tenant and name:
            return tenant, name
    return None
