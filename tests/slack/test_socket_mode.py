"""Socket Mode: the same people and the same handlers, through a WebSocket that we open."""

from __future__ import annotations

import asyncio

import pytest

from adapters.slack.config import SlackConfig
from bot.platform import NotConnected
from tests.fakes.slack.server import fake_slack
from tests.slack.serving import receiving, serving
from tests.slack.shown import an_approval
from tests.support.slack_transports import SocketTransport


async def test_the_same_handlers_hear_what_comes() -> None:
    async with serving(transport=SocketTransport) as product:
        assert product.receiver.facts() == {"mode": "socket", "connected": True, "workspaces": 1}
        said = await product.person().says("C1", "<@UBOT> hello")
        assert said.status == 200
        assert [m.text for m in product.services.messages] == ["hello"]


async def test_clicks_modals_and_commands_are_answered_through_it() -> None:
    async with serving(transport=SocketTransport) as product:
        product.services.approvals["call-1.1"] = an_approval()
        card = await product.card(an_approval())
        await product.person().clicks(card, "reject")
        modal = await product.modal()
        product.services.mistakes = {"reason": "Say more."}
        submitted = await product.person().submits(modal, {"reason": "no"})
        assert submitted.errors == {"input:reason": "Say more."}
        product.services.mistakes = {}
        assert (await product.person().submits(modal, {"reason": "not now"})).view is None
        assert product.services.approvals["call-1.1"].status == "rejected"
        await product.person().commands("stop", "C1")
        assert product.told() == ["Nothing of yours is running in this channel."]


async def test_what_could_not_be_kept_is_not_acknowledged_and_comes_again() -> None:
    async with serving(transport=SocketTransport) as product:
        product.services.broken = RuntimeError("the disk is full")
        impatient = SocketTransport(product.slack, patience=0.3)
        said = await type(product.person())(product.slack, "T1", "U1", impatient).says("C1", "<@UBOT> hello")
        assert {answer.status for answer in said.answers} == {0}
        product.services.broken = None
        assert await product.slack.sockets.resend() == 2
        await product.slack.until(lambda: not product.slack.sockets.unacked)
        assert len(product.services.messages) == 1


async def test_one_slow_message_does_not_hold_up_another() -> None:
    async with serving(transport=SocketTransport) as product:
        product.services.slow = 0.5
        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(product.person().says("C1", f"<@UBOT> {n}") for n in range(6)))
        assert asyncio.get_running_loop().time() - started < 2.5
        assert len(product.services.messages) == 6


async def test_what_is_malformed_is_not_acknowledged_and_harms_nothing() -> None:
    async with serving(transport=SocketTransport) as product:
        sockets = product.slack.sockets
        for payload in ({}, {"type": "event_callback", "event": []}, {"type": "event_callback", "authorizations": 5}):
            await sockets.send("events_api", payload)
        assert (await product.person().says("C1", "<@UBOT> hello")).status == 200
        assert len(sockets.unacked) == 3
        assert len(product.services.messages) == 1


async def test_a_refreshed_connection_loses_nothing() -> None:
    async with serving(transport=SocketTransport) as product:
        before = len(product.slack.calls_of("apps.connections.open"))
        await product.slack.sockets.disconnect()
        await product.slack.until(lambda: len(product.slack.calls_of("apps.connections.open")) > before)
        await product.slack.until(lambda: product.slack.sockets.connected == 1)
        assert (await product.person().says("C1", "<@UBOT> hello")).status == 200


async def test_a_cut_connection_is_opened_again() -> None:
    async with serving(transport=SocketTransport) as product:
        await product.slack.sockets.cut()
        await product.slack.until(lambda: product.slack.sockets.connected == 1, within=20)
        await product.person().says("C1", "<@UBOT> hello")
        await product.slack.until(lambda: product.services.messages)


async def test_what_is_being_kept_when_the_process_ends_is_acknowledged() -> None:
    async with serving(transport=SocketTransport) as product:
        product.services.slow = 0.3
        saying = asyncio.create_task(product.person().says("C1", "<@UBOT> hello"))
        await product.slack.until(lambda: product.services.asked_to_keep)
        await product.close()
        assert len(product.services.messages) == 1
        assert product.slack.sockets.acks
        saying.cancel()


async def test_a_token_that_slack_refuses_stops_the_start_with_a_sentence() -> None:
    async with fake_slack() as slack:
        config = SlackConfig(bot_token="xoxb-1", app_token="xapp-wrong", api_url=slack.api_url)
        async with receiving(config) as receiver:
            with pytest.raises(NotConnected, match="SLACK_APP_TOKEN") as refused:
                await receiver.start()
            assert "xapp-wrong" not in str(refused.value)
            assert not receiver.facts()["connected"]


async def test_a_slack_that_is_down_at_the_start_is_connected_to_when_it_is_back() -> None:
    async with fake_slack() as slack:
        slack.fail("apps.connections.open", status=503, times=1)
        config = SlackConfig(bot_token="xoxb-1", app_token="xapp-1", api_url=slack.api_url)
        async with receiving(config) as receiver:
            await receiver.start()
            await slack.until(lambda: receiver.facts()["connected"], within=20)
