from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.shared.calls import CallFailed
from adapters.shared.people import not_a_person
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.people import KEEP, KEEP_REFUSED, TeamsPeople, refused
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.ids import TeamsCaller, TeamsLocation, person_id
from bot.domain import Person, Unwelcome
from tests.fakes.teams.server import ANA, BEN, CHLOE, GUS, OTHER_TENANT, TENANT, FakeTeams, fake_teams
from tests.support.moments import Moments

DAN = "e0000000-0000-4000-8000-00000000000e"


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


@asynccontextmanager
async def people_of(teams: FakeTeams, moments: Moments | None = None, **config: Any) -> AsyncIterator[TeamsPeople]:
    moments = moments or Moments()
    settings = teams.config(**config)
    tokens = tokens_of(settings, environ={}, clock=moments.clock)
    connector = BotConnector(settings, tokens, sleep=moments.sleep)
    people = TeamsPeople(connector, settings, clock=moments.clock)
    try:
        yield people
    finally:
        await people.close()
        await connector.close()
        await tokens.close()


def group(teams: FakeTeams) -> TeamsLocation:
    return TeamsLocation(TENANT, teams.group, "groupChat", teams.service_url)


def caller(teams: FakeTeams, user: str = ANA, **changes: Any) -> TeamsCaller:
    usual = {"name": "as the activity says", "time_zone": "Asia/Tokyo", "locale": "ja-JP"}
    return TeamsCaller(TENANT, user, teams.address(user), **{**usual, **changes})


# -------------------------------------------------------------------------------------------------- who may


async def test_a_colleague_is_welcome_by_name_time_zone_and_language(teams: FakeTeams) -> None:
    async with people_of(teams) as people:
        ana = Person(f"teams:{TENANT}:{ANA}", "Ana Alvarez", "Asia/Tokyo", "ja-JP", "ana.alvarez@example.com")
        assert await people.admitted(group(teams), caller(teams)) == ana


async def test_in_a_thread_the_channels_roster_counts(teams: FakeTeams) -> None:
    thread = TeamsLocation(TENANT, f"{teams.channel};messageid=1700000000000", "channel", teams.service_url)
    async with people_of(teams) as people:
        assert isinstance(await people.admitted(thread, caller(teams)), Person)
    assert teams.calls_of("member")[0].conversation == teams.channel


async def test_names_are_shown_on_one_line_with_nothing_hidden(teams: FakeTeams) -> None:
    teams.world.users[ANA].name = "Ana\n\u202eadmin" + "x" * 200
    async with people_of(teams) as people:
        ana = await people.admitted(group(teams), caller(teams))
    assert isinstance(ana, Person)
    assert ana.name.startswith("Ana ⟨U+202E⟩admin")
    assert len(ana.name) <= 80


async def test_who_has_no_name_in_the_roster_is_called_as_the_activity_says(teams: FakeTeams) -> None:
    teams.world.users[ANA].name = ""
    async with people_of(teams) as people:
        ana = await people.admitted(group(teams), caller(teams))
    assert isinstance(ana, Person)
    assert ana.name == "as the activity says"


UNWELCOME: dict[str, tuple[dict[str, Any], str]] = {
    "a guest": ({"role": "guest"}, refused("guest")),
    "a guest of another tenant": ({"role": "guest", "tenant": OTHER_TENANT}, refused("guest")),
    "somebody of another tenant": ({"tenant": OTHER_TENANT}, refused("stranger")),
    "somebody without an account": ({"role": "anonymous"}, refused("stranger")),
}


@pytest.mark.parametrize(("facts", "why"), UNWELCOME.values(), ids=UNWELCOME)
async def test_who_is_not_one_of_us_is_told_why(teams: FakeTeams, facts: dict[str, Any], why: str) -> None:
    teams.add_user(DAN, **facts)
    teams.world.conversations[teams.group].members.add(DAN)
    async with people_of(teams) as people:
        assert await people.admitted(group(teams), caller(teams, DAN)) == Unwelcome(why)


async def test_a_guest_is_known_by_the_name_of_their_account_too(teams: FakeTeams) -> None:
    class Roster:
        async def member(self, _location: TeamsLocation, user: str, *, patience: float) -> dict[str, Any]:
            name = "gus_example.com#EXT#@acme.onmicrosoft.com"
            return {"id": "29:x", "aadObjectId": user.upper(), "tenantId": TENANT, "userPrincipalName": name}

    people = TeamsPeople(Roster(), teams.config())  # type: ignore[arg-type]  # nothing else of it is needed
    assert await people.admitted(group(teams), caller(teams)) == Unwelcome(refused("guest"))
    await people.close()


async def test_an_answer_about_somebody_else_admits_nobody(teams: FakeTeams) -> None:
    class Roster:
        async def member(self, _location: TeamsLocation, _user: str, *, patience: float) -> dict[str, Any]:
            return {"id": "29:x", "aadObjectId": BEN, "tenantId": TENANT, "userRole": "user"}

    people = TeamsPeople(Roster(), teams.config())  # type: ignore[arg-type]  # nothing else of it is needed
    assert await people.admitted(group(teams), caller(teams)) == Unwelcome(refused("stranger"))
    await people.close()


async def test_who_is_not_in_the_conversation_is_a_stranger(teams: FakeTeams) -> None:
    teams.add_user(DAN)
    async with people_of(teams) as people:
        assert await people.admitted(group(teams), caller(teams, DAN)) == Unwelcome(refused("stranger"))


async def test_guests_and_other_tenants_are_welcome_where_that_is_wanted_and_nobodies_never(teams: FakeTeams) -> None:
    teams.add_user(DAN, role="anonymous", tenant=OTHER_TENANT)
    teams.world.conversations[teams.group].members.add(DAN)
    async with people_of(teams, allow_guests=True) as people:
        assert isinstance(await people.admitted(group(teams), caller(teams, GUS)), Person)
        assert await people.admitted(group(teams), caller(teams, DAN)) == Unwelcome(refused("stranger"))


async def test_a_colleague_of_another_tenant_that_is_allowed_is_one_of_us(teams: FakeTeams) -> None:
    teams.add_user(DAN, tenant=OTHER_TENANT.upper())
    teams.world.conversations[teams.group].members.add(DAN)
    async with people_of(teams, allowed_tenants=frozenset({TENANT, OTHER_TENANT})) as people:
        assert isinstance(await people.admitted(group(teams), caller(teams, DAN)), Person)


async def test_bots_are_turned_away_without_asking(teams: FakeTeams) -> None:
    async with people_of(teams) as people:
        for machine in (TeamsCaller(TENANT, "", "29:x"), TeamsCaller(TENANT, ANA, "28:another-bot")):
            assert await people.admitted(group(teams), machine) == Unwelcome(not_a_person())
    assert teams.calls == []


async def test_a_local_client_is_believed_since_it_has_no_roster(teams: FakeTeams) -> None:
    async with people_of(teams, local_unauthenticated=True) as people:
        location = TeamsLocation("local", "a:1", "personal", "http://localhost:9/")
        somebody = TeamsCaller("local", "user-1", "user-1", "Somebody")
        assert await people.admitted(location, somebody) == Person("teams:local:user-1", "Somebody")
    assert teams.calls == []


# -------------------------------------------------------------------------------------------------- remembering


async def test_teams_is_asked_once_in_ten_minutes_however_many_ask(teams: FakeTeams) -> None:
    moments = Moments()
    async with people_of(teams, moments) as people:
        await asyncio.gather(*(people.admitted(group(teams), caller(teams)) for _ in range(20)))
        moments.now += KEEP - 1
        await people.admitted(group(teams), caller(teams))
        assert len(teams.calls_of("member")) == 1
        moments.now += 1
        await people.admitted(group(teams), caller(teams))
    assert len(teams.calls_of("member")) == 2


async def test_who_was_turned_away_is_looked_up_again_sooner(teams: FakeTeams) -> None:
    moments = Moments()
    async with people_of(teams, moments) as people:
        assert await people.admitted(group(teams), caller(teams, GUS)) == Unwelcome(refused("guest"))
        teams.world.users[GUS].role = "user"
        teams.world.users[GUS].tenant = TENANT
        assert await people.admitted(group(teams), caller(teams, GUS)) == Unwelcome(refused("guest"))
        moments.now += KEEP_REFUSED
        assert isinstance(await people.admitted(group(teams), caller(teams, GUS)), Person)


async def test_what_holds_in_one_conversation_is_not_taken_for_another(teams: FakeTeams) -> None:
    teams.add_group("19:elsewhere@thread.v2", members=[BEN])
    elsewhere = TeamsLocation(TENANT, "19:elsewhere@thread.v2", "groupChat", teams.service_url)
    async with people_of(teams) as people:
        assert isinstance(await people.admitted(group(teams), caller(teams)), Person)
        assert await people.admitted(elsewhere, caller(teams)) == Unwelcome(refused("stranger"))


async def test_what_is_known_of_a_conversation_can_be_forgotten(teams: FakeTeams) -> None:
    async with people_of(teams) as people:
        await people.admitted(group(teams), caller(teams))
        teams.world.conversations[teams.group].members.remove(ANA)
        await people.changed(f"{teams.group};messageid=1")
        assert await people.admitted(group(teams), caller(teams)) == Unwelcome(refused("stranger"))


async def test_an_answer_that_was_on_its_way_when_it_was_forgotten_is_not_kept(teams: FakeTeams) -> None:
    held = teams.hold("member")
    async with people_of(teams) as people:
        asked = asyncio.create_task(people.admitted(group(teams), caller(teams)))
        await held.reached()
        await people.changed(teams.group)
        held.release()
        await asked
        await people.admitted(group(teams), caller(teams))
    assert len(teams.calls_of("member")) == 2


async def test_who_cannot_be_found_out_is_not_let_in_and_asked_for_again(teams: FakeTeams) -> None:
    async with people_of(teams) as people:
        teams.fail("member", status=403, code="BotNotInConversationRoster")
        with pytest.raises(CallFailed):
            await people.admitted(group(teams), caller(teams))
        assert isinstance(await people.admitted(group(teams), caller(teams)), Person)


async def test_nobody_waits_longer_than_they_may_for_anothers_question(teams: FakeTeams) -> None:
    held = teams.hold("member")
    async with people_of(teams) as people:
        patient = asyncio.create_task(people.admitted(group(teams), caller(teams), patience=30))
        await held.reached()
        with pytest.raises(CallFailed) as failed:
            await people.admitted(group(teams), caller(teams), patience=0.05)
        held.release()
        assert isinstance(await patient, Person)
    assert failed.value.error == "timeout"
    assert len(teams.calls_of("member")) == 1


# -------------------------------------------------------------------------------------------------- addresses


def persons(*users: str) -> list[str]:
    return [person_id(TENANT, user) for user in users]


async def test_addresses_of_those_who_can_be_found(teams: FakeTeams) -> None:
    teams.add_user(DAN)
    async with people_of(teams) as people:
        wanted = [*persons(ANA, BEN, DAN), "slack:T1:U1", f"teams:{OTHER_TENANT}:{GUS}"]
        found = await people.addresses(group(teams), wanted)
    assert found == {person_id(TENANT, user): teams.address(user) for user in (ANA, BEN)}


async def test_many_addresses_are_read_from_the_roster_at_once(teams: FakeTeams) -> None:
    crowd = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(60)]
    for user in crowd:
        teams.add_user(user)
    teams.add_group("19:crowd@thread.v2", members=crowd)
    location = TeamsLocation(TENANT, "19:crowd@thread.v2", "groupChat", teams.service_url)
    async with people_of(teams) as people:
        assert len(await people.addresses(location, persons(*crowd))) == 60
        assert len(await people.addresses(location, persons(*crowd))) == 60
    assert (len(teams.calls_of("members")), len(teams.calls_of("member"))) == (1, 0)


async def test_who_has_written_needs_no_looking_up(teams: FakeTeams) -> None:
    async with people_of(teams) as people:
        people.met(caller(teams))
        assert await people.addresses(group(teams), persons(ANA)) == {persons(ANA)[0]: teams.address(ANA)}
    assert teams.calls == []


@pytest.mark.parametrize("users", [(ANA, BEN), (ANA, BEN, CHLOE, GUS)])
async def test_addresses_that_cannot_be_found_out_are_left_out(teams: FakeTeams, users: tuple[str, ...]) -> None:
    teams.fail("member", code="BotNotInConversationRoster", times=math.inf)
    teams.fail("members", code="BotNotInConversationRoster", times=math.inf)
    async with people_of(teams) as people:
        assert await people.addresses(group(teams), persons(*users)) == {}
        assert await people.addresses(group(teams), []) == {}
