"""The platform as `app.py` uses it: starting, stopping, what it says of itself, and the port it fills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from adapters.shared.connecting import ConnectionCheck
from adapters.teams.config import Cloud, TeamsConfig
from adapters.teams.connector.tokens import connect, tokens_of
from adapters.teams.ids import person_id
from adapters.teams.receiver import TeamsReceiver
from adapters.teams.sender import TeamsSender
from bot.domain import Arrival, Introduction, Message, Notice, Post, Unwelcome
from bot.platform import NotConnected, Platform, PostFailed
from tests.fakes.teams.server import ANA, BEN, GUS, TENANT, FakeTeams, fake_teams
from tests.support.stand_in_services import StandInServices
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import LocalTransport
from tests.support.views import NOW
from tests.teams.serving import Served, serving, stand_in_services, text_in


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as teams:
        yield teams


# ------------------------------------------------------------------------------------------------ starting


@asynccontextmanager
async def receiving(config: TeamsConfig) -> AsyncIterator[TeamsReceiver]:
    services = stand_in_services()
    sender = TeamsSender(config, services.link)
    receiver = TeamsReceiver(sender, services.services)
    try:
        yield receiver
    finally:
        await receiver.stop()
        await sender.close()


async def test_it_says_that_it_is_connected(teams: FakeTeams) -> None:
    async with receiving(teams.config()) as receiver:
        with capture_logs() as logs:
            await receiver.start()
        assert [entry["app_id"] for entry in logs if entry["event"] == "teams_connected"] == [teams.app_id]
        assert receiver.facts()["connected"] is True
        assert len(teams.calls_of("token")) == 1


async def test_a_wrong_secret_stops_the_start(teams: FakeTeams) -> None:
    async with receiving(replace(teams.config(), app_password="wrong")) as receiver:
        with pytest.raises(NotConnected) as refusal:
            await receiver.start()
        assert "MICROSOFT_APP_PASSWORD" in refusal.value.sentence
        assert "AADSTS7000215" in refusal.value.sentence
        assert "wrong" not in refusal.value.sentence
        assert receiver.facts()["connected"] is False


async def test_when_microsoft_cannot_be_reached_it_starts_and_goes_on_trying(teams: FakeTeams) -> None:
    now = [1000.0]
    tokens = tokens_of(teams.config(), clock=lambda: now[0])
    connecting = ConnectionCheck("teams", lambda: connect(teams.config(), tokens), first_pause=0.01)
    teams.fail("token", status=503, times=1)
    try:
        with capture_logs() as logs:
            await connecting.start()
            assert [entry["event"] for entry in logs if "unreachable" in entry["event"]] == ["teams_unreachable"]
            now[0] += 60
            await teams.until(lambda: any(entry["event"] == "teams_connected" for entry in logs))
        assert tokens.connected
    finally:
        await connecting.close()
        await tokens.close()


async def test_a_stop_ends_the_trying(teams: FakeTeams) -> None:
    teams.fail("token", status=503, times=99)
    async with receiving(teams.config()) as receiver:
        await receiver.start()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("teams")]


def test_a_configuration_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="MICROSOFT_APP_ID"):
        TeamsSender(TeamsConfig(), stand_in_services().link)
    with pytest.raises(ValueError, match="MICROSOFT_APP_PASSWORD"):
        TeamsSender(TeamsConfig(app_id="11111111-2222-3333-4444-555555555555"), stand_in_services().link)


async def test_it_fills_in_the_port(teams: FakeTeams) -> None:
    sender = TeamsSender(teams.config(), stand_in_services().link)
    platform: Platform = sender
    assert platform.name == "teams"
    await sender.close()


async def test_what_is_being_answered_is_finished_before_it_stops(product: Served) -> None:
    await product.person(BEN).says(product.teams.personal(BEN), "help")
    await product.receiver.stop()
    assert len(product.chat(BEN)) == 1


# ------------------------------------------------------------------------------------------------ the port


async def test_a_post_is_shown_and_changed(product: Served) -> None:
    place = product.place(product.teams.personal(ANA))
    post = Post("p1", "thread-1", place, 1, NOW, Notice("One moment."))
    reference = await product.sender.send(post)
    await product.sender.update(replace(post, revision=2, content=Notice("Done.")), reference)
    assert ["Done." in text_in(message) for message in product.chat()] == [True]
    assert await product.sender.find(replace(post, post_id="p2")) is None


async def test_policies_name_conversations_and_people(product: Served) -> None:
    thread = product.sender.named_place(f"teams:{TENANT}:{product.teams.channel}")
    assert thread is not None
    assert thread.address["kind"] == "channel"
    chat = product.sender.named_place(person_id(TENANT, ANA))
    assert chat is not None
    assert (chat.direct, chat.address["user"]) == (True, ANA)
    assert product.sender.named_place("slack:T1:C1") is None


async def heard(product: Served, user: str = ANA, text: str = "delete it", quoting: str = "") -> Message:
    await product.person(user).says(product.teams.group, text, quoting=quoting)
    return product.services.messages[-1]


async def test_authors_are_introduced(product: Served) -> None:
    found = await product.sender.introduce(Arrival(await heard(product), None))
    assert isinstance(found, Introduction)
    assert (found.author.person_id, found.author.name) == (person_id(TENANT, ANA), "Ana Alvarez")
    assert (found.author.time_zone, found.author.locale) == ("Europe/Berlin", "en-US")
    assert (found.text, found.background) == ("delete it", ())


async def test_what_they_quote_is_background(product: Served) -> None:
    product.teams.rsc = True
    quoted = await product.person(BEN).says(product.teams.group, "the stand-up is on Monday", mention=False)
    found = await product.sender.introduce(Arrival(await heard(product, quoting=quoted.id), None))
    assert isinstance(found, Introduction)
    assert found.text == "delete it"
    (quote,) = found.background
    assert (quote.author, quote.text) == ("Ben Baker", "the stand-up is on Monday")
    assert quote.at == int(quoted.id) / 1000


async def test_guests_are_unwelcome(product: Served) -> None:
    found = await product.sender.introduce(Arrival(await heard(product, GUS), None))
    assert isinstance(found, Unwelcome)


async def test_whoever_cannot_be_found_out_now_is_asked_for_again(product: Served) -> None:
    message = await heard(product)
    product.teams.fail("member", status=429, retry_after=60)
    with pytest.raises(PostFailed) as failure:
        await product.sender.introduce(Arrival(message, None))
    assert not failure.value.permanent


# ------------------------------------------------------------------------------------------------ local clients


async def test_local_clients_need_no_token() -> None:
    async with serving(app_id="", app_password=None, tenant="", local_unauthenticated=True) as product:
        local = TeamsPerson(product.teams, ANA, LocalTransport(product.url))
        assert (await local.says(product.teams.personal(ANA), "hello")).status == 200
        assert [message.text for message in product.services.messages] == ["hello"]
        assert isinstance(product.services, StandInServices)


async def test_local_clients_do_not_open_the_door_to_strangers_with_a_token() -> None:
    async with serving(local_unauthenticated=True) as product:
        stranger = {"id": "29:skype", "name": "Somebody on Skype"}
        said = await product.person().says(product.teams.personal(ANA), "hello")
        await product.transport.activity({**said.activity, "id": "2", "from": stranger})
        assert [message.author.name for message in product.services.messages] == ["Ana Alvarez"]


async def test_without_that_setting_they_do(product: Served) -> None:
    local = TeamsPerson(product.teams, ANA, LocalTransport(product.url))
    assert (await local.says(product.teams.personal(ANA), "hello")).status == 401


def test_the_public_cloud_is_the_default() -> None:
    assert Cloud().service_url.startswith("https://smba.trafficmanager.net/")
