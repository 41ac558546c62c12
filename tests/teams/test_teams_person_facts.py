"""What Microsoft knows of somebody that policies ask for: found out, or not found out, never guessed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.shared.calls import PauseExchange
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.people import CONSENT, KEEP_GROUPS, TeamsPeople, TeamsPersonFacts
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.ids import TeamsCaller, TeamsLocation
from bot.domain import AccountFacts, Person
from tests.fakes.teams.server import ANA, BEN, CHLOE, GUS, OTHER_TENANT, TENANT, FakeTeams, fake_teams
from tests.support.moments import Moments

DBAS = "e1000000-0000-4000-8000-0000000000e1"
GROUP = f"entra-group:{TENANT}:{DBAS}"
MAIL = "ana.alvarez@example.com"


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        running.world.entra_groups[DBAS] = {ANA}
        yield running


@asynccontextmanager
async def parts_of(
    teams: FakeTeams, moments: Moments | None = None, exchange: PauseExchange | None = None, **config: Any
) -> AsyncIterator[tuple[TeamsPeople, TeamsPersonFacts]]:
    moments = moments or Moments()
    settings = teams.config(**config)
    tokens = tokens_of(settings, environ={}, clock=moments.clock)
    connector = BotConnector(settings, tokens)
    people = TeamsPeople(connector, settings, clock=moments.clock)
    facts = TeamsPersonFacts(people, settings, exchange=exchange, clock=moments.clock, within=0.5)
    try:
        yield people, facts
    finally:
        for each in (facts, people, connector, tokens):
            await each.close()


@asynccontextmanager
async def facts_of(teams: FakeTeams, moments: Moments | None = None, **config: Any) -> AsyncIterator[TeamsPersonFacts]:
    async with parts_of(teams, moments, **config) as (_, facts):
        yield facts


def person(user: str, tenant: str = TENANT) -> str:
    return f"teams:{tenant}:{user}"


async def test_who_is_in_an_entra_group_is_and_who_is_not_is_not(teams: FakeTeams) -> None:
    async with facts_of(teams) as facts:
        assert await facts.in_group(person(ANA), GROUP) is True
        assert await facts.in_group(person(BEN), GROUP) is False


async def test_a_group_is_asked_for_once_in_a_while(teams: FakeTeams) -> None:
    moments = Moments()
    async with facts_of(teams, moments) as facts:
        await asyncio.gather(*(facts.in_group(person(ANA), GROUP) for _ in range(5)))
        assert len(teams.calls_of("member_groups")) == 1
        teams.world.entra_groups[DBAS].clear()
        moments.now += KEEP_GROUPS + 1
        assert await facts.in_group(person(ANA), GROUP) is False


NOT_OURS = [
    (person(ANA, OTHER_TENANT), GROUP),
    (person(ANA), f"entra-group:{OTHER_TENANT}:{DBAS}"),
    (person(ANA, OTHER_TENANT), f"entra-group:{OTHER_TENANT}:{DBAS}"),
    (f"slack:{TENANT}:{ANA}", GROUP),
    (person(ANA), f"slack-group:{TENANT}:{DBAS}"),
    (person(ANA), f"entra-group:{DBAS}"),
    (person(ANA), f"entra-group:{TENANT}:../users"),
    (person("../users"), GROUP),
]


@pytest.mark.parametrize(("somebody", "group"), NOT_OURS)
async def test_what_is_not_of_this_persons_tenant_could_not_be_found_out(
    teams: FakeTeams, somebody: str, group: str
) -> None:
    async with facts_of(teams) as facts:
        assert await facts.in_group(somebody, group) is None
    assert teams.calls_of("member_groups") == []


async def test_without_the_permission_nothing_could_be_found_out(teams: FakeTeams) -> None:
    teams.world.graph_permissions.clear()
    async with facts_of(teams) as facts:
        assert await facts.in_group(person(ANA), GROUP) is None
        assert (await facts.account_of(person(ANA))).email == ""


async def test_a_group_that_does_not_exist_could_not_be_found_out(teams: FakeTeams) -> None:
    async with facts_of(teams) as facts:
        assert await facts.in_group(person(ANA), f"entra-group:{TENANT}:{BEN}") is None


async def test_while_microsoft_does_not_answer_nothing_could_be_found_out(teams: FakeTeams) -> None:
    for verb in ("member_groups", "account", "member"):
        teams.fail(verb, status=503, times=math.inf)
    async with facts_of(teams) as facts:
        assert await facts.in_group(person(ANA), GROUP) is None
        assert await facts.in_channel(person(ANA), f"teams:{TENANT}:{teams.channel}") is None
        assert (await facts.account_of(person(ANA))).email == ""


class Asked:
    """A `PauseExchange` that keeps what it is told."""

    def __init__(self) -> None:
        self.by: list[tuple[str, float]] = []

    def asked(self, service: str, line: str, seconds: float) -> None:
        assert line
        self.by.append((service, seconds))

    def hears(self, service: str, paused: Callable[[str, float], None]) -> None:
        raise AssertionError("nobody waits for what Graph asks another process")


async def test_that_graph_is_asked_too_often_is_told_each_time(teams: FakeTeams) -> None:
    teams.fail("member_groups", status=429, retry_after=3)
    teams.fail("account", status=429)
    asked = Asked()
    async with parts_of(teams, exchange=asked) as (_, facts):
        assert await facts.in_group(person(ANA), GROUP) is None
        assert (await facts.account_of(person(ANA))).email == ""
    assert asked.by == [("graph", 3.0), ("graph", 0.0)]


async def test_a_token_that_graph_does_not_take_is_renewed(teams: FakeTeams) -> None:
    async with facts_of(teams) as facts:
        assert await facts.in_group(person(ANA), GROUP) is True
        teams.revoke_tokens()
        assert await facts.in_group(person(BEN), GROUP) is None
        assert await facts.in_group(person(BEN), GROUP) is False


async def test_nobody_waits_longer_than_a_click_may_take(teams: FakeTeams) -> None:
    held = teams.hold("member_groups")
    async with facts_of(teams) as facts, asyncio.timeout(5):
        assert await facts.in_group(person(ANA), GROUP) is None
        held.release()


async def test_members_of_a_conversation_are_in_it_and_others_are_not(teams: FakeTeams) -> None:
    teams.add_channel("19:few@thread.tacv2", members=[ANA])
    async with facts_of(teams) as facts:
        few = f"teams:{TENANT}:19:few@thread.tacv2"
        assert await facts.in_channel(person(ANA), few) is True
        assert await facts.in_channel(person(BEN), few) is False
        assert await facts.in_channel(person(BEN, OTHER_TENANT), few) is None
        assert await facts.in_channel(person(ANA), "slack:T1:C1") is None
        assert await facts.in_channel(person(ANA), f"teams:{TENANT}:19:none@thread.tacv2") is None


async def test_the_address_is_asked_of_graph_and_in_lower_case(teams: FakeTeams) -> None:
    teams.world.users[ANA].mail = "Ana.Alvarez@Example.com"
    async with facts_of(teams) as facts:
        assert (await facts.account_of(person(ANA))).email == MAIL


async def test_whom_a_roster_has_shown_is_known_without_graph(teams: FakeTeams) -> None:
    teams.world.graph_permissions.clear()
    async with parts_of(teams) as (people, facts):
        location = TeamsLocation(TENANT, teams.group, "groupChat", teams.service_url)
        ana = await people.admitted(location, TeamsCaller(TENANT, ANA, teams.address(ANA)))
        assert isinstance(ana, Person)
        assert ana.email == MAIL
        assert (await facts.account_of(person(ANA))).email == MAIL
    assert teams.calls_of("account") == []


async def test_guests_are_not_vouched_for_even_where_they_are_welcome(teams: FakeTeams) -> None:
    async with parts_of(teams, allow_guests=True) as (people, facts):
        location = TeamsLocation(TENANT, teams.group, "groupChat", teams.service_url)
        gus = await people.admitted(location, TeamsCaller(TENANT, GUS, teams.address(GUS)))
        assert isinstance(gus, Person)
        assert gus.email == ""
        claimed = ("gus.guest@example.com",)
        assert await facts.account_of(person(GUS)) == AccountFacts("", claimed, is_member=False)
        teams.world.graph_permissions.clear()
        assert await facts.account_of(person(CHLOE)) == AccountFacts(is_member=None)  # whom no roster has shown


async def test_whoever_was_a_member_hours_ago_still_is_where_graph_may_not_be_asked(teams: FakeTeams) -> None:
    """Rule 9: an approver is somebody else than a member; where guests are welcome, of the others nobody knows."""
    teams.world.graph_permissions.clear()
    moments = Moments()
    async with parts_of(teams, moments, allow_guests=True) as (people, facts):
        location = TeamsLocation(TENANT, teams.group, "groupChat", teams.service_url)
        for user in (ANA, GUS):
            await people.admitted(location, TeamsCaller(TENANT, user, teams.address(user)))
        moments.now += 3_600
        assert (await facts.account_of(person(ANA))).is_member is True
        assert (await facts.account_of(person(GUS))).is_member is False


async def test_an_address_of_hours_ago_is_enough_to_doubt_and_vouches_for_nobody(teams: FakeTeams) -> None:
    """Rule 9: a member's second account with the same address is nobody's second pair of eyes an hour later either."""
    teams.world.graph_permissions.clear()
    moments = Moments()
    async with parts_of(teams, moments) as (people, facts):
        location = TeamsLocation(TENANT, teams.group, "groupChat", teams.service_url)
        await people.admitted(location, TeamsCaller(TENANT, ANA, teams.address(ANA)))
        moments.now += 3_600
        assert await facts.account_of(person(ANA)) == AccountFacts("", (MAIL,), is_member=True)


async def test_the_name_of_an_account_is_an_address_that_it_claims(teams: FakeTeams) -> None:
    """Rule 9: another platform may know somebody by the name of their account here."""
    teams.world.users[ANA].mail = "aa@example.com"
    async with facts_of(teams) as facts:
        assert await facts.account_of(person(ANA)) == AccountFacts("aa@example.com", (MAIL,), is_member=True)


async def test_of_several_tenants_each_vouches_for_its_own_domains_only(teams: FakeTeams) -> None:
    both = frozenset({TENANT, OTHER_TENANT})
    async with facts_of(teams, allowed_tenants=both) as facts:
        assert (await facts.account_of(person(ANA))).email == MAIL
        teams.world.users[BEN].mail = "boss@acme.example"
        assert (await facts.account_of(person(BEN))).email == ""


async def test_local_clients_say_nothing_of_anybody(teams: FakeTeams) -> None:
    local: dict[str, Any] = {
        "app_id": "",
        "app_password": None,
        "local_unauthenticated": True,
        "allowed_tenants": frozenset({TENANT}),
    }
    async with facts_of(teams, **local) as facts:
        assert await facts.in_group(person(ANA), GROUP) is None
        assert await facts.in_channel(person(ANA), f"teams:{TENANT}:{teams.channel}") is None
        assert (await facts.account_of(person(ANA))).email == ""


async def test_what_stays_so_until_an_administrator_consents_is_in_the_log_once(teams: FakeTeams) -> None:
    teams.world.graph_permissions.clear()
    async with facts_of(teams) as facts:
        with capture_logs() as logs:
            for user in (ANA, BEN, ANA):
                assert await facts.in_group(person(user), GROUP) is None
    told = [entry for entry in logs if entry["event"] == "teams_not_found_out"]
    assert [(entry["log_level"], entry["hint"]) for entry in told] == [("warning", CONSENT)]
