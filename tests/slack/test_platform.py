"""The platform as a whole: starting, saying what it is connected to, two workspaces, and ending."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from structlog.testing import capture_logs

from adapters.slack.config import SlackConfig
from adapters.slack.sender import SlackSender
from adapters.slack.web_api.installing import Installations
from bot.crypto import Sealer
from bot.domain import Arrival, Introduction
from bot.platform import NotConnected, Platform
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.serving import SECRET, receiving, served, serving, stand_in_services
from tests.support.installations import address_for
from tests.support.slack_installs import installs, uninstalls
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport
from tests.support.waiting import at_most_waiting


def configured(slack: FakeSlack, token: str = "xoxb-1") -> SlackConfig:
    return SlackConfig(bot_token=token, signing_secret=SECRET, api_url=slack.api_url)


async def test_the_start_says_which_workspace_it_is_connected_to() -> None:
    with capture_logs() as lines:
        async with serving() as product:
            assert product.receiver.facts() == {"mode": "http", "connected": True, "workspaces": 1}
    assert {"event": "slack_connected", "workspaces": ["Acme"], "mode": "http", "log_level": "info"} in lines


async def test_a_token_that_slack_refuses_stops_the_start_with_a_sentence() -> None:
    async with fake_slack() as slack, receiving(configured(slack, "xoxb-wrong")) as receiver:
        with pytest.raises(NotConnected, match="invalid_auth") as refused:
            await receiver.start()
        assert "xoxb-wrong" not in str(refused.value)


@pytest.mark.waits
async def test_a_slack_that_cannot_be_reached_does_not_stop_the_start() -> None:
    async with fake_slack() as slack:
        slack.fail("auth.test", status=503, times=2)
        async with receiving(configured(slack)) as receiver:
            await receiver.start()
            assert not receiver.facts()["connected"]
            await slack.until(lambda: receiver.facts()["connected"], within=30)


async def test_an_event_that_comes_while_slack_cannot_be_reached_is_sent_again() -> None:
    async with serving() as product:
        product.slack.add_workspace(team="T2", name="Other", token="xoxb-2", bot_user="UBOT2", bot_id="BBOT2")
        product.sender.workspaces.refused("T1", "xoxb-1")  # what is known of the token is forgotten
        product.slack.fail("auth.test", status=503, times=100)
        said = await product.person().says("C1", "<@UBOT> hello")
        assert said.status == 503
        assert product.services.messages == []


async def test_a_message_is_introduced_when_its_turn_has_come() -> None:
    async with serving() as product:
        await product.person().says("C1", "<@UBOT> ask <@U2> please")
        introduction = await product.sender.introduce(Arrival(product.services.messages[0], None))
        assert isinstance(introduction, Introduction)
        assert introduction.author.name == "Ana"
        assert introduction.text == "ask @Ben please"


async def test_the_environment_does_not_get_into_bolt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-from-the-environment")
    monkeypatch.setenv("SLACK_SIGNING_SECRET", "from the environment")
    monkeypatch.setenv("SLACK_CLIENT_ID", "1.2")
    monkeypatch.setenv("SLACK_CLIENT_SECRET", "shh")
    async with serving() as product:
        assert (await product.person().says("C1", "<@UBOT> hello")).status == 200
        assert len(product.services.messages) == 1
        assert {call.token for call in product.slack.calls} == {"xoxb-1"}


async def test_acknowledging_is_quick() -> None:
    async with serving() as product:
        ana = product.person()
        await ana.says("C1", "<@UBOT> warm up")
        async with at_most_waiting(8):
            for number in range(40):
                await ana.says("C1", f"<@UBOT> {number}", first="message")  # two events each


async def test_two_workspaces_install_it_and_are_kept_apart(tmp_path: Path) -> None:
    async with fake_slack() as slack:
        for team, number in (("T2", 2), ("T3", 3)):
            slack.add_workspace(
                team=team, name=f"Team {number}", token="", bot_user=f"UBOT{number}", bot_id=f"B{number}"
            )
            slack.add_user("U1", team=team, name=f"Zoe {number}")
            slack.add_channel(f"C{number}0", team=team, members=["U1", f"UBOT{number}"])
        config = SlackConfig(
            signing_secret=SECRET,
            client_id=slack.world.client_id,
            client_secret=slack.world.client_secret,
            install_teams=frozenset("*"),
            api_url=slack.api_url,
        )
        kept = Installations(address_for(tmp_path / "records.db"), config, Sealer(Fernet.generate_key()))
        services = stand_in_services()
        async with receiving(config, services=services, installations=kept) as receiver, served(receiver) as url:
            await receiver.start()
            transport = HttpTransport(f"{url}/slack/events", SECRET)
            for team in ("T2", "T3"):
                _, done = await installs(slack, transport, team=team, user="U1")
                assert done.status == 200
            two, three = (SlackPerson(slack, team, "U1", transport) for team in ("T2", "T3"))
            assert (await two.says("C20", "<@UBOT2> hello")).status == 200
            assert (await three.says("C30", "<@UBOT3> hello")).status == 200
            assert [m.place.key.rsplit(":", 1)[0] for m in services.messages] == ["slack:T2:C20", "slack:T3:C30"]
            assert {m.author.person_id for m in services.messages} == {"slack:T2:U1", "slack:T3:U1"}
            await three.commands("ask hi", "C30")
            tokens = {call.token for call in slack.calls_of("chat.postMessage")}
            assert [slack.world.tokens[token].team for token in tokens] == ["T3"]
            assert {answer.status for answer in await uninstalls(slack, transport, team="T3", user="U1")} == {200}
            said = await three.says("C30", "<@UBOT3> still there?")
            assert said.status == 200
            assert len(services.messages) == 3


async def test_nothing_of_it_is_left_running_when_it_is_closed() -> None:
    before = asyncio.all_tasks()
    async with serving() as product:
        await product.person().says("C1", "<@UBOT> hello")
        await product.person().opens_home()
    assert asyncio.all_tasks() == before


def test_it_fills_in_the_port() -> None:
    platform: Platform = SlackSender(SlackConfig(bot_token="xoxb-1", app_token="xapp-1"), stand_in_services().link)
    assert platform.name == "slack"


def test_installs_need_somewhere_to_be_kept() -> None:
    with pytest.raises(ValueError, match="bot token"):
        SlackSender(SlackConfig(signing_secret=SECRET, client_id="1.2", client_secret="shh"), stand_in_services().link)
