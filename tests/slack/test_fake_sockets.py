"""The fake's Socket Mode: what is not acknowledged comes again, on whichever connection there is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.recording_app import recording_app
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import SocketTransport


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


@asynccontextmanager
async def connected(slack: FakeSlack) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A connection that acknowledges nothing by itself."""
    client = AsyncWebClient(base_url=slack.api_url)
    url: Any = (await client.apps_connections_open(app_token="xapp-1"))["url"]
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        assert (await socket.receive_json(timeout=5))["type"] == "hello"
        yield socket


async def test_an_envelope_waits_until_somebody_connects_and_takes_it(slack: FakeSlack) -> None:
    envelope = await slack.sockets.send("events_api", {"type": "event_callback"})
    async with connected(slack) as socket:
        assert (await socket.receive_json(timeout=5))["envelope_id"] == envelope.envelope_id
    await slack.until(lambda: slack.sockets.connected == 0)
    async with connected(slack) as socket:  # it was not acknowledged
        assert (await socket.receive_json(timeout=5))["envelope_id"] == envelope.envelope_id
        await socket.send_json({"envelope_id": envelope.envelope_id, "payload": {"text": "ok"}})
        await slack.until(envelope.acked.is_set)
        assert (envelope.answer, slack.sockets.unacked) == ({"text": "ok"}, [])


async def test_what_is_sent_again_says_so(slack: FakeSlack) -> None:
    async with connected(slack) as socket:
        await slack.sockets.send("events_api", {"type": "event_callback"})
        assert (await socket.receive_json(timeout=5))["retry_attempt"] == 0
        assert await slack.sockets.resend() == 1
        again = await socket.receive_json(timeout=5)
        assert (again["retry_attempt"], again["retry_reason"]) == (1, "timeout")


async def test_a_door_says_when_nobody_acknowledged(slack: FakeSlack) -> None:
    async with connected(slack):
        said = await SlackPerson(slack, "T1", "U1", SocketTransport(slack, patience=0.05)).says("D1", "hello")
        assert said.status == 0


async def test_an_app_comes_back_when_it_is_asked_to(slack: FakeSlack) -> None:
    async with recording_app(slack, "socket") as (app, transport):
        await slack.sockets.disconnect()
        await slack.until(lambda: len(slack.calls_of("apps.connections.open")) == 2 and slack.sockets.connected)
        await SlackPerson(slack, "T1", "U1", transport).says("D1", "hello")
        assert app.events[0]["event"]["text"] == "hello"
