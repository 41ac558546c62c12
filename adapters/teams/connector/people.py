"""Who somebody is in Teams: profile, whether they may use the bot, conversations, Entra groups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from adapters.shared.caches import Remembered
from adapters.shared.calls import CallFailed, PauseExchange, failures_logged_as
from adapters.shared.http import Http, HttpAnswer, retry_after
from adapters.shared.people import EMAIL, Lookups, not_a_person, parts_of_id, shown_name, user_of
from adapters.shared.people_changes import PeopleChanges
from adapters.shared.untrusted_json import words
from adapters.teams.config import TeamsConfig, is_local
from adapters.teams.connector.client import AT_ONCE, BotConnector
from adapters.teams.connector.tokens import BotTokens, tokens_for
from adapters.teams.connector.wire import refusal_of
from adapters.teams.ids import (
    PLATFORM,
    TeamsCaller,
    TeamsLocation,
    channel_of,
    is_object_id,
    location_of,
    named_place,
    person_id,
    within_tenant,
)
from bot.domain import AccountFacts, Clock, Person, Unwelcome, system_clock
from translations import gettext as _

log = structlog.get_logger(__name__)
KEEP = 600.0
"""Seconds that we believe what Teams said of somebody."""
KEEP_REFUSED = 60.0
"""Seconds that we believe it of somebody whom that shuts out: they may have been made a member meanwhile."""
KEEP_MET = 24 * 3600.0
"""Seconds that an address is remembered, which stays the same for as long as the app is the same, and whether somebody
is a guest: whoever asked for something may have to be told from others hours later."""
MOST_MEMBERS = 500
"""Members read at once for their addresses."""
_ONE_BY_ONE = 3
"""Addresses that are asked for one by one; for more of them a page of the roster is cheaper."""
_AT_A_TIME = 5
_MOST_ASKED = 60
"""Addresses looked up for one card: Teams shows user-specific views to as many."""
_NOBODY = frozenset({"MemberNotFoundInConversation"})
_MACHINE = "28:"
"""What addresses of bots begin with; people's begin with `29:`."""
Refusal = Literal["", "guest", "stranger"]
_Key = tuple[str, str, str]
"""Tenant, conversation (a channel without its thread), user."""


@dataclass(frozen=True, slots=True)
class _RosterEntry:
    """What the roster of a conversation says of somebody."""

    address: str
    name: str
    refusal: Refusal
    """Why they may not use the bot; empty: they may."""
    email: str = ""
    """The address, where their own tenant vouches for it."""


def refused(why: Literal["guest", "stranger"]) -> str:
    """Returns what somebody is told who may not use the bot."""
    if why == "guest":
        return _("Guests can’t use me here. Ask a colleague who is a full member to ask me for you.")
    return _("I only work for the organization that installed me.")


def no_colleague() -> str:
    """Returns why somebody cannot be asked to decide."""
    return _("Only full members of the organization can approve here, not guests.")


class TeamsPeople:
    """The people of all conversations. `close` in the end."""

    def __init__(
        self,
        connector: BotConnector,
        config: TeamsConfig,
        *,
        clock: Clock = system_clock,
        changes: PeopleChanges | None = None,
    ) -> None:
        """`changes`: lets other processes know of them; `None`: there are none."""
        self._connector = connector
        self._config = config
        self._allowed = {tenant.lower() for tenant in config.allowed_tenants}
        self._profiles: Remembered[_Key, _RosterEntry] = Remembered(keep=_keep, clock=clock)
        self._accounts: Remembered[str, AccountFacts] = Remembered(keep=KEEP, clock=clock)
        self._were: Remembered[str, AccountFacts] = Remembered(keep=KEEP_MET, clock=clock)
        self._met: Remembered[str, TeamsCaller] = Remembered(keep=KEEP_MET, clock=clock)
        self._changes = changes
        if changes is not None:
            changes.hears(PLATFORM, self._forget, self._forget_everybody)

    async def admitted(
        self, location: TeamsLocation, caller: TeamsCaller, *, patience: float = AT_ONCE
    ) -> Person | Unwelcome:
        """The person, when they may use the bot in this conversation; their time zone and language are the activity's.

        Judged are their role in the conversation and their own tenant: guests and people of other organisations are
        let in where `allow_guests` says so, those whom nobody knows (anonymous) never. Raises `CallFailed` when
        it cannot be found out within `patience` seconds: who cannot be judged is not let in.
        """
        self.met(caller)
        if not caller.user or caller.address.startswith(_MACHINE):
            return Unwelcome(not_a_person())
        if self._config.local_unauthenticated and is_local(location.service_url):
            return _person(caller)  # local clients have no rosters
        profile = await self._profile(location, caller.tenant, caller.user, patience)
        return Unwelcome(refused(profile.refusal)) if profile.refusal else _person(caller, profile.name, profile.email)

    async def is_in(self, location: TeamsLocation, user: str, *, patience: float = AT_ONCE) -> bool | None:
        """Whether somebody is in a conversation (in a channel: in its team); `None` in local clients, which have no
        rosters. Raises `CallFailed` when it cannot be found out within `patience` seconds."""
        if self._config.local_unauthenticated and is_local(location.service_url or self._config.cloud.service_url):
            return None
        return bool((await self._profile(location, location.tenant, user, patience)).address)

    async def colleague(self, location: TeamsLocation, user: str, *, patience: float = AT_ONCE) -> Person | Unwelcome:
        """Somebody of the organisation whom another names. Raises nothing: where it is not known who they are they have
        no name, and once they click themselves they are judged."""
        person, profile = person_id(location.tenant, user), None
        if not (self._config.local_unauthenticated and is_local(location.service_url)):
            with failures_logged_as("teams_colleague_not_known"):
                profile = await self._profile(location, location.tenant, user, patience)
        if profile and profile.refusal == "guest":
            return Unwelcome(no_colleague())
        met = self._met.known(person)
        return Person(person, (profile.name if profile else "") or (shown_name(met.name) if met else ""))

    def known_account(self, person: str) -> AccountFacts:
        """Returns whose the account is of somebody whom a roster has shown lately. Of a roster seen in the last day:
        whether it is a member's, and its addresses, vouched for no more. Where none was seen and only members may use
        the bot, it is one."""
        known = self._accounts.known(person.lower()) or self._were.known(person.lower())
        return known or AccountFacts(is_member=None if self._config.allow_guests else True)

    async def addresses(self, location: TeamsLocation, person_ids: Collection[str]) -> Mapping[str, str]:
        """The addresses (`29:…`) of those who could be found, by person id. Raises nothing. Of people in local clients
        there are none: those clients ask for nobody what they are to see."""
        if self._config.local_unauthenticated and is_local(location.service_url):
            return {}
        wanted = [person for person in sorted(person_ids) if person.startswith(within_tenant(location.tenant))]
        found = self._known_addresses(location, wanted)
        if len(wanted) - len(found) > _ONE_BY_ONE:
            await self._read_roster(location)
            found = self._known_addresses(location, wanted)
        gate = asyncio.Semaphore(_AT_A_TIME)

        async def address(person: str) -> str:
            with failures_logged_as("teams_address_not_found"):
                async with gate:
                    return (await self._profile(location, location.tenant, user_of(person), AT_ONCE)).address
            return ""

        unknown = [person for person in wanted if person not in found][:_MOST_ASKED]
        asked = await asyncio.gather(*map(address, unknown))
        return found | {person: known for person, known in zip(unknown, asked, strict=True) if known}

    def known_name(self, location: TeamsLocation, person: str) -> str:
        """The name of somebody whose address was found; empty when Teams gives none."""
        return self._known(location, person)[1]

    def met(self, caller: TeamsCaller) -> None:
        """Remember what an activity says of its sender."""
        if caller.user and caller.address:
            self._met.put(person_id(caller.tenant, caller.user), caller)

    async def changed(self, conversation: str, tenant: str = "") -> None:
        """The bot has left a conversation, or its members have changed: what we know of them counts no more, in no
        process. `tenant`: the members are a team's; which channels are that team's is not known here."""
        self._forget(conversation, tenant)
        if self._changes is not None:
            await self._changes.tell(PLATFORM, conversation, tenant)

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._profiles.close()

    def _forget(self, conversation: str, tenant: str) -> None:
        channel = channel_of(conversation)
        self._profiles.forget_where(lambda key: key[1] == channel or (tenant != "" and key[0] == tenant))

    def _forget_everybody(self) -> None:
        self._profiles.forget_where(lambda _key: True)

    async def _profile(self, location: TeamsLocation, tenant: str, user: str, patience: float) -> _RosterEntry:
        key = _key(location, tenant, user)
        # The roster is the channel's; its threads have none.
        whole = replace(location, conversation=channel_of(location.conversation))
        try:
            # Who asks for the same thing may have more patience than we.
            async with asyncio.timeout(patience):
                return await self._profiles.get(key, lambda _key: self._ask(whole, tenant, user, patience))
        except TimeoutError:
            raise CallFailed("member", "timeout") from None

    async def _ask(self, location: TeamsLocation, tenant: str, user: str, patience: float) -> _RosterEntry:
        try:
            member = await self._connector.member(location, user, patience=patience)
        except CallFailed as failure:
            if failure.error in _NOBODY:
                return _RosterEntry("", "", "stranger")
            raise
        if words(member, "aadObjectId").lower() != user.lower():
            # Not who was asked for, or somebody without an account.
            return _RosterEntry("", "", "stranger")
        return self._remembered(member, tenant)

    async def _read_roster(self, location: TeamsLocation) -> None:
        """Remember the first members of a conversation."""
        members: Sequence[Mapping[str, Any]] = ()
        with failures_logged_as("teams_roster_not_read"):
            whole = replace(location, conversation=channel_of(location.conversation))
            members = await self._connector.members(whole, MOST_MEMBERS, patience=AT_ONCE)
        for member in members:
            if user := words(member, "aadObjectId"):
                self._profiles.put(_key(location, location.tenant, user), self._remembered(member, location.tenant))

    def _known_addresses(self, location: TeamsLocation, wanted: Collection[str]) -> dict[str, str]:
        return {person: address for person in wanted if (address := self._known(location, person)[0])}

    def _known(self, location: TeamsLocation, person: str) -> tuple[str, str]:
        """Address and name of somebody, as far as they are known without asking."""
        if profile := self._profiles.known(_key(location, location.tenant, user_of(person))):
            return profile.address, profile.name
        met = self._met.known(person)
        return (met.address, shown_name(met.name)) if met else ("", "")

    def _remembered(self, member: Mapping[str, Any], tenant: str) -> _RosterEntry:
        facts = account_facts(self._config, tenant, member)
        user, email = words(member, "aadObjectId"), facts.email
        if user:
            self._accounts.put(person_id(tenant, user).lower(), facts)
            # An address that was theirs hours ago may be enough to doubt that two accounts are two people's.
            addresses = (*([email] if email else []), *facts.claimed)
            self._were.put(person_id(tenant, user).lower(), AccountFacts("", addresses, facts.is_member is True))
        return _RosterEntry(
            words(member, "id"), shown_name(words(member, "name")), self._refusal(member, tenant), email
        )

    def _refusal(self, member: Mapping[str, Any], tenant: str) -> Refusal:
        role = words(member, "userRole").lower()
        own = words(member, "tenantId") or tenant
        if role == "anonymous":
            return "stranger"
        if self._config.allow_guests:
            return ""
        if role == "guest" or "#ext#" in words(member, "userPrincipalName").lower():
            return "guest"
        return "" if own.lower() in self._allowed else "stranger"


def _key(location: TeamsLocation, tenant: str, user: str) -> _Key:
    return tenant, channel_of(location.conversation), user.lower()


def _keep(profile: _RosterEntry) -> float:
    return KEEP_REFUSED if profile.refusal else KEEP


def _person(caller: TeamsCaller, name: str = "", email: str = "") -> Person:
    shown = name or shown_name(caller.name) or caller.user
    return Person(person_id(caller.tenant, caller.user), shown, caller.time_zone, caller.locale, email)


# ----------------------------------------------------------------------------- whose address counts
# Who has the same one in Teams and in Slack is taken for one human, so nobody may choose it.

_OUTSIDERS = frozenset({"guest", "anonymous"})


def account_facts(config: TeamsConfig, tenant: str, account: Mapping[str, Any]) -> AccountFacts:
    """Returns whose an account is, from a roster (`email`) or of Graph (`mail`), with all addresses that stand with it.

    A tenant's administrators may write any address into an account. In one tenant they are the company's own; where
    several tenants are allowed, an address counts only in the domain of the account's name (`userPrincipalName`), which
    Entra has verified for that tenant.
    """
    allowed = {each.lower() for each in config.allowed_tenants}
    address = (words(account, "email") or words(account, "mail")).strip().lower()
    name = words(account, "userPrincipalName").lower()
    own = (words(account, "tenantId") or tenant).lower()
    is_member = not is_outsider(account) and own == tenant.lower()
    same_domain = name.rpartition("@")[2] == address.rpartition("@")[2]
    counts = EMAIL.fullmatch(address) and is_member and own in allowed and (len(allowed) == 1 or same_domain)
    vouched = address if counts else ""
    # A guest's name is the address of their own account: `ana_corp.com#ext#@here`.
    guest, sign, _ = name.partition("#ext#")
    said = dict.fromkeys((address, "@".join(guest.rsplit("_", 1)) if sign else name))
    return AccountFacts(vouched, tuple(each for each in said if EMAIL.fullmatch(each) and each != vouched), is_member)


def is_outsider(account: Mapping[str, Any]) -> bool:
    """Whether an account, of a roster or of Graph, is a guest's."""
    role = (words(account, "userRole") or words(account, "userType")).lower()
    return role in _OUTSIDERS or "#ext#" in words(account, "userPrincipalName").lower()


# --------------------------------------------- groups, channels and address of a person, for policies

GROUP = "entra-group"
NAME_WITHIN = 0.6
"""Seconds, of the 5 that Teams waits for the answer to a dialog, for the name of whom it names."""
CONSENT = "an administrator has to grant the app permissions of Microsoft Graph: docs/teams.md"
_FORBIDDEN = frozenset({"Authorization_RequestDenied", "Forbidden", "AccessDenied"})


class TeamsPersonFacts:
    """Answers of `bot.platform.Platform`: `None` is "could not find out", which refuses; nothing here raises. `close`
    in the end."""

    def __init__(
        self,
        people: TeamsPeople,
        config: TeamsConfig,
        *,
        exchange: PauseExchange | None = None,
        clock: Clock = system_clock,
        within: float = AT_ONCE,
    ) -> None:
        self._people = people
        self.entra = Entra(config, exchange=exchange, clock=clock)
        self._config = config
        self._lookups = Lookups(PLATFORM, within, _FORBIDDEN, CONSENT)

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in an Entra group (`entra-group:{tenant}:{id}`) of their own tenant."""
        person, named = parts_of_id(person_id.lower(), PLATFORM), parts_of_id(group.lower(), GROUP)
        if person is None or named is None or person[0] != named[0]:
            return None
        (tenant, user), (_, group_id) = person, named
        return await self._lookups.found(self.entra.is_in(tenant, user, group_id), "group")

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a conversation."""
        person, place = parts_of_id(person_id.lower(), PLATFORM), named_place(channel)
        if person is None or place is None or place.direct:
            return None
        location = location_of(place)
        if person[0] != location.tenant:
            return None
        return await self._lookups.found(
            self._people.is_in(location, person[1], patience=self._lookups.within), "channel"
        )

    async def account_of(self, person_id: str) -> AccountFacts:
        """Returns whose an account is, from a roster that was seen lately, else from Graph."""
        person = parts_of_id(person_id.lower(), PLATFORM)
        if person is None:
            return AccountFacts()
        known = self._people.known_account(person_id)
        if known.email or known.is_member is False:
            return known
        tenant, user = person
        account = await self._lookups.found(self.entra.account(tenant, user), "account")
        return account_facts(self._config, tenant, account) if account else known

    async def name_of(self, person_id: str) -> str | None:
        """The name of somebody of an allowed tenant, as Graph knows them."""
        person = parts_of_id(person_id.lower(), PLATFORM)
        if person is None:
            return None
        account = await self._lookups.found(self.entra.account(*person), "name")
        return (shown_name(words(account, "displayName")) or None) if account else None

    async def colleague(self, location: TeamsLocation, user: str) -> Person | Unwelcome:
        """Somebody of the organisation whom another names: as the conversation's roster knows them, else Graph."""
        person = await self._people.colleague(location, user, patience=NAME_WITHIN)
        if isinstance(person, Unwelcome) or person.name:
            return person
        account = await self._lookups.found(self.entra.account(location.tenant, user), "name", within=NAME_WITHIN) or {}
        if is_outsider(account):
            return Unwelcome(no_colleague())
        return replace(person, name=shown_name(words(account, "displayName")))

    async def close(self) -> None:
        """End the questions that are under way."""
        await self.entra.close()


# ------------------------------------------ Microsoft Graph: members of groups, addresses of accounts

KEEP_GROUPS = 120.0
"""Seconds that we believe who is in a group; what is decided with it cannot be undone, so not for longer."""
KEEP_ACCOUNT = 600.0
FILE_SECONDS = 10.0
"""What a request for a file may take: nobody waits for the answer to a click then."""
VERB = "graph"
_Member = tuple[str, str, str]
"""Tenant, user, group."""


class Entra:
    """Asks as the app, with application permissions that the operator has granted (docs/teams.md). `close` in the
    end.

    Every method raises `CallFailed` when the answer cannot be found out: no permission, no such group, no answer
    in time, a tenant that is not allowed.

    Args:
        exchange: is told that Graph asks to wait, which counts it. Nobody waits for that: Graph limits each kind of
            question on its own.
    """

    def __init__(
        self, config: TeamsConfig, *, exchange: PauseExchange | None = None, clock: Clock = system_clock
    ) -> None:
        self._config = config
        self._exchange = exchange
        self._clock = clock
        self._http = Http()
        self._allowed = {tenant.lower() for tenant in config.allowed_tenants}
        self._tokens: dict[str, BotTokens] = {}
        self._groups: Remembered[_Member, bool] = Remembered(keep=KEEP_GROUPS, clock=clock)
        self._accounts: Remembered[tuple[str, str], Mapping[str, Any]] = Remembered(keep=KEEP_ACCOUNT, clock=clock)

    async def is_in(self, tenant: str, user: str, group: str) -> bool:
        """Whether an account is in a group, or in one that this group contains."""
        return await self._groups.get((tenant, user, group), self._ask_group)

    async def account(self, tenant: str, user: str) -> Mapping[str, Any]:
        """`displayName`, `mail`, `userPrincipalName` and `userType` of an account."""
        return await self._accounts.get((tenant, user), self._ask_account)

    async def read(self, tenant: str, path: str) -> Mapping[str, Any]:
        """What Graph says of a message (https://learn.microsoft.com/graph/api/resources/chatmessage), or of a file
        (https://learn.microsoft.com/graph/api/resources/driveitem)."""
        answer = await self._answer(tenant, "GET", path, seconds=FILE_SECONDS)
        if answer.status != 200:
            raise refusal_of(VERB, answer)
        return answer.object()

    async def file_link(self, tenant: str, path: str) -> str:
        """A link that opens the content of a file, where Graph sends whoever asks for it."""
        answer = await self._answer(tenant, "GET", path, seconds=FILE_SECONDS)
        location = answer.headers.get("Location", "")
        if answer.status != 302 or not location:
            raise refusal_of(VERB, answer)
        return location

    async def close(self) -> None:
        """End what is under way, and close the connections."""
        await self._groups.close()
        await self._accounts.close()
        for tokens in self._tokens.values():
            await tokens.close()
        await self._http.close()

    async def _ask_group(self, member: _Member) -> bool:
        """https://learn.microsoft.com/graph/api/directoryobject-checkmembergroups"""
        tenant, user, group = member
        _check(user, group)
        answer = await self._call(tenant, "POST", f"/v1.0/users/{user}/checkMemberGroups", {"groupIds": [group]})
        found = answer.object().get("value")
        if not isinstance(found, list):
            raise CallFailed(VERB, "bad_answer")
        return group.lower() in {str(each).lower() for each in found}

    async def _ask_account(self, account: tuple[str, str]) -> Mapping[str, Any]:
        """https://learn.microsoft.com/graph/api/user-get"""
        tenant, user = account
        _check(user)
        fields = "displayName,mail,userPrincipalName,userType"
        return (await self._call(tenant, "GET", f"/v1.0/users/{user}?$select={fields}")).object()

    async def _call(self, tenant: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> HttpAnswer:
        answer = await self._answer(tenant, method, path, body)
        if answer.status != 200:
            raise refusal_of(VERB, answer)
        return answer

    async def _answer(
        self, tenant: str, method: str, path: str, body: Mapping[str, Any] | None = None, *, seconds: float = AT_ONCE
    ) -> HttpAnswer:
        tokens = self._tokens_of(tenant)
        token = await tokens.token()
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        url = f"{self._config.cloud.graph_url.rstrip('/')}{path}"
        data = json.dumps(body).encode() if body is not None else None
        answer = await self._http.request(VERB, method, url, seconds=seconds, headers=headers, data=data)
        if answer.status == 401:
            tokens.refused(token)
        if answer.status == 429 and self._exchange is not None:
            self._exchange.asked(VERB, json.dumps(tenant), retry_after(answer.headers) or 0.0)
        return answer

    def _tokens_of(self, tenant: str) -> BotTokens:
        if not self._config.app_id or tenant.lower() not in self._allowed:
            raise CallFailed(VERB, "not_our_tenant")
        if tenant not in self._tokens:
            resource = self._config.cloud.graph_url
            self._tokens[tenant] = tokens_for(self._config, tenant=tenant, resource=resource, clock=self._clock)
        return self._tokens[tenant]


def _check(*ids: str) -> None:
    """Checks ids that become part of an address."""
    if not all(map(is_object_id, ids)):
        raise CallFailed(VERB, "no_object_id")
