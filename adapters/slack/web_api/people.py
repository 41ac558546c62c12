"""Who somebody is in Slack: profile, whether they may use the bot, channels, user groups."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from adapters.shared.caches import Remembered
from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.shared.people import EMAIL, Lookups, locale_of, not_a_person, parts_of_id, shown_name, time_zone_of
from adapters.shared.people_changes import PeopleChanges
from adapters.shared.untrusted_json import words
from adapters.slack.config import SlackConfig
from adapters.slack.ids import PLATFORM, person_id
from adapters.slack.web_api.client import AT_ONCE, WebApi
from bot.domain import AccountFacts, Clock, Person, Unwelcome, system_clock
from translations import choose, in_language
from translations import gettext as _

log = structlog.get_logger(__name__)
KEEP = 3600.0
"""Seconds that we believe what Slack said of somebody, unless it tells us of a change."""
_SLACKBOT = "USLACKBOT"
_AT_A_TIME = 5
"""Names looked up at the same time."""
_MOST_NAMES = 100
"""Names looked up for one message."""
_NOBODY_WE_SEE = frozenset({"user_not_found", "user_not_visible"})


def no_guests() -> str:
    """Returns what a guest is told where guests may not use us."""
    return _("Guests can’t use Countersign in this workspace. Ask a full member to do this for you.")


def no_strangers() -> str:
    """Returns what somebody of another company is told."""
    return _("Only members of the workspace that installed Countersign can use it.")


def account_gone() -> str:
    """Returns what somebody is told whose account is deactivated."""
    return _("This account is deactivated.")


class SlackPeople:
    """The users of all workspaces. `close` in the end."""

    def __init__(
        self, api: WebApi, config: SlackConfig, clock: Clock = system_clock, changes: PeopleChanges | None = None
    ) -> None:
        """`changes`: lets other processes know of them; `None`: there are none."""
        self._api = api
        self._config = config
        self._profiles: Remembered[tuple[str, str], _UserInfo] = Remembered(keep=KEEP, clock=clock)
        self._organisations: Remembered[str, str] = Remembered(keep=KEEP, clock=clock)
        self._changes = changes
        if changes is not None:
            changes.hears(PLATFORM, self._forget, self._forget_all)

    async def admitted(self, team: str, user: str, home_team: str = "") -> Person | Unwelcome:
        """The person, when they may use the bot in this workspace.

        `home_team`: the workspace or organisation they come from, where the event says so. Raises `CallFailed` when it
        cannot be found out: who cannot be judged is not let in. Slack says by their address who they are, which
        counts only where the workspace's own company gives out the accounts.
        """
        if user == _SLACKBOT:
            return Unwelcome(not_a_person())
        try:
            profile = await self._profiles.get((team, user), self._ask)
        except CallFailed as failure:
            if failure.error in _NOBODY_WE_SEE:
                return Unwelcome(no_strangers())
            raise
        with in_language(choose(profile.locale)):
            refusal = await self._refusal(profile, team, home_team)
        if refusal:
            return Unwelcome(refusal)
        email = profile.email if await self._is_member(profile, team) else ""
        return Person(person_id(team, user), profile.name or user, profile.time_zone, profile.locale, email)

    async def account(self, team: str, user: str) -> AccountFacts:
        """Returns whose an account is, also of somebody who may not use the bot (any more). Raises `CallFailed`."""
        profile = await self._profiles.get((team, user), self._ask)
        is_member = await self._is_member(profile, team)
        vouched = profile.email if is_member and not profile.gone and not profile.machine else ""
        claimed = tuple(address for address in (profile.email, profile.unconfirmed) if address and address != vouched)
        return AccountFacts(vouched, claimed, is_member)

    @property
    def only_members(self) -> bool:
        """Whether nobody but full members of a workspace may use the bot in it."""
        return not self._config.allow_guests and not self._config.allowed_teams

    def known_name(self, team: str, user: str) -> str | None:
        """The name, if we know it without asking."""
        profile = self._profiles.known((team, user), stale=True)
        return profile.name or None if profile else None

    async def names(self, team: str, users: Collection[str]) -> Mapping[str, str]:
        """The names of those who have one, by user id. Raises nothing: who cannot be found out is left out."""
        gate = asyncio.Semaphore(_AT_A_TIME)

        async def name(user: str) -> str:
            with failures_logged_as("slack_name_not_found", team=team, user=user):
                async with gate:
                    return (await self._profiles.get((team, user), self._ask)).name
            return ""

        asked = sorted(users)[:_MOST_NAMES]
        found = await asyncio.gather(*map(name, asked))
        return {user: shown for user, shown in zip(asked, found, strict=True) if shown}

    async def changed(self, team: str, user: Mapping[str, Any]) -> None:
        """Slack says that somebody has changed (the `user_change` event): what we know of them counts no more, in no
        process."""
        user_id = str(user.get("id", ""))
        self._forget(team, user_id)
        if self._changes is not None:
            await self._changes.tell(PLATFORM, team, user_id)

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._profiles.close()
        await self._organisations.close()

    def _forget(self, team: str, user_id: str) -> None:
        self._profiles.forget((team, user_id))

    def _forget_all(self) -> None:
        self._profiles.forget_where(lambda _key: True)

    async def _ask(self, key: tuple[str, str]) -> _UserInfo:
        team, user = key
        answer = await self._api.call(team, "users.info", {"user": user, "include_locale": True})
        return _profile(answer.get("user") or {})

    async def _ask_organisation(self, team: str) -> str:
        return str((await self._api.call(team, "auth.test")).get("enterprise_id") or "")

    async def _refusal(self, profile: _UserInfo, team: str, home_team: str) -> str:
        if profile.machine:
            return not_a_person()
        if profile.gone:
            return account_gone()
        if not await self._is_one_of_us(profile, team, home_team):
            return no_strangers()
        return no_guests() if profile.guest and not self._config.allow_guests else ""

    async def _is_one_of_us(self, profile: _UserInfo, team: str, home_team: str) -> bool:
        elsewhere = {home for home in (profile.team, home_team) if home not in ("", team)}
        allowed = self._config.allowed_teams
        if profile.organisation in allowed or (elsewhere and elsewhere <= allowed):
            return True
        if profile.stranger:
            return False
        if not elsewhere:
            return True
        return await self._same_company(profile, team)

    async def _is_member(self, profile: _UserInfo, team: str) -> bool:
        """Whether the workspace's own company gave out the account, to one of its own people."""
        if profile.guest or profile.stranger:
            return False
        return profile.team in ("", team) or await self._same_company(profile, team)

    async def _same_company(self, profile: _UserInfo, team: str) -> bool:
        """A workspace of the same organisation is not another company."""
        if not profile.organisation or profile.stranger:
            return False
        return team in profile.teams or profile.organisation == await self._organisations.get(
            team, self._ask_organisation
        )


@dataclass(frozen=True, slots=True)
class _UserInfo:
    """What we need of `users.info`."""

    name: str
    time_zone: str
    locale: str
    team: str
    organisation: str
    teams: frozenset[str]
    """The workspaces of the organisation that this person is a member of."""
    machine: bool
    gone: bool
    guest: bool
    stranger: bool
    email: str
    """Confirmed, in lower case; empty: none, or the installation lacks `users:read.email`."""
    unconfirmed: str
    """Whatever else stands there."""


def _profile(user: Mapping[str, Any]) -> _UserInfo:
    shown = user.get("profile") or {}
    organisation = user.get("enterprise_user") or {}
    names = (shown.get("display_name"), shown.get("real_name"), user.get("real_name"), user.get("name"))
    return _UserInfo(
        name=next((name for name in (shown_name(str(each or "")) for each in names) if name), ""),
        time_zone=time_zone_of(str(user.get("tz"))),
        locale=locale_of(str(user.get("locale") or "")),
        team=str(user.get("team_id") or ""),
        organisation=str(organisation.get("enterprise_id") or ""),
        teams=frozenset(map(str, organisation.get("teams") or ())),
        machine=bool(user.get("is_bot") or user.get("is_workflow_bot") or user.get("is_connector_bot")),
        gone=bool(user.get("deleted")),
        guest=bool(user.get("is_restricted") or user.get("is_ultra_restricted")),
        stranger=bool(user.get("is_stranger")),
        email="" if user.get("is_email_confirmed") is False else _address(shown.get("email")),
        unconfirmed=_address(shown.get("email")) if user.get("is_email_confirmed") is False else "",
    )


def _address(email: object) -> str:
    found = email.strip().lower() if isinstance(email, str) else ""
    return found if EMAIL.fullmatch(found) else ""


# -------------------------------------------------------------------------------- members of channels

KEEP_MEMBERS = 300.0
"""Seconds that we believe who is in a channel."""
PAGE = 999
"""Members asked for at once (Slack: "under 1000")."""
MOST_PAGES = 10


@dataclass(frozen=True, slots=True)
class _Roster:
    users: frozenset[str]
    cut: bool = False
    """There are more of them."""


# --------------------------------------------- groups, channels and address of a person, for policies

KEEP_GROUPS = 120.0
"""Seconds that we believe who is in a group; what is decided with it cannot be undone, so not for longer."""
GROUP = f"{PLATFORM}-group"
REINSTALL = "the app was installed before its manifest asked for that scope: reinstall it (docs/slack.md)"


class SlackPersonFacts:
    """Answers of `bot.platform.Platform`: `None` is "could not find out", which refuses; nothing here raises. `close`
    in the end."""

    def __init__(
        self, api: WebApi, people: SlackPeople, *, clock: Clock = system_clock, within: float = AT_ONCE
    ) -> None:
        self._api = api
        self._people = people
        self._members: Remembered[tuple[str, str], _Roster] = Remembered(keep=KEEP_MEMBERS, clock=clock)
        self._groups: Remembered[tuple[str, str], frozenset[str]] = Remembered(keep=KEEP_GROUPS, clock=clock)
        self._lookups = Lookups(PLATFORM, within, frozenset({"missing_scope"}), REINSTALL)

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in a user group (`slack-group:T1:S1`) of their own workspace."""
        person, named = parts_of_id(person_id, PLATFORM), parts_of_id(group, GROUP)
        if person is None or named is None or person[0] != named[0]:
            return None
        team, user = person
        users = await self._lookups.found(self._groups.get(named, self._ask_group), "usergroup", team)
        return None if users is None else user in users

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel of their own workspace."""
        person, place = parts_of_id(person_id, PLATFORM), parts_of_id(channel, PLATFORM)
        if person is None or place is None or person[0] != place[0]:
            return None
        team, user = person
        found = await self._lookups.found(self._members.get(place, self._ask_members), "channel", team)
        if found is None or (found.cut and user not in found.users):
            return None
        return user in found.users

    async def shares_channel(self, team: str, channel: str, user: str) -> bool:
        """Whether somebody is in a channel, for what is shown to them. No, where that cannot be found out."""
        with failures_logged_as("slack_members_not_found", team=team, channel=channel):
            return user in (await self._members.get((team, channel), self._ask_members)).users
        return False

    async def account_of(self, person_id: str) -> AccountFacts:
        """Returns whose an account is. Where that cannot be looked up and only members may use the bot, it is a
        member's."""
        person = parts_of_id(person_id, PLATFORM)
        if person is None:
            return AccountFacts()
        found = await self._lookups.found(self._people.account(*person), "account", person[0])
        return found or AccountFacts(is_member=True if self._people.only_members else None)

    async def name_of(self, person_id: str) -> str | None:
        """The name of somebody who may use the bot."""
        person = parts_of_id(person_id, PLATFORM)
        if person is None:
            return None
        found = await self._lookups.found(self._people.admitted(*person), "name", person[0])
        return found.name if isinstance(found, Person) else None

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._groups.close()
        await self._members.close()

    async def _ask_group(self, key: tuple[str, str]) -> frozenset[str]:
        """Raises `CallFailed` also where the group does not exist or is disabled, and without `usergroups:read`."""
        team, group = key
        answer = await self._api.call(team, "usergroups.users.list", {"usergroup": group}, patience=AT_ONCE)
        return frozenset(map(str, answer.get("users") or ()))

    async def _ask_members(self, key: tuple[str, str]) -> _Roster:
        team, channel = key
        asked: dict[str, Any] = {"channel": channel, "limit": PAGE}
        found: set[str] = set()
        for _page in range(MOST_PAGES):
            page = await self._api.call(team, "conversations.members", asked)
            found.update(map(str, page.get("members") or ()))
            cursor = words(page, "response_metadata", "next_cursor")
            if not cursor:
                return _Roster(frozenset(found))
            asked["cursor"] = cursor
        log.warning("slack_members_cut", team=team, channel=channel, members=len(found))
        return _Roster(frozenset(found), cut=True)
