"""The Slack platform served for real, with the fake Slack on one side and stand-in services on the other."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from adapters.slack.config import SlackConfig
from adapters.slack.receiver import SlackReceiver
from adapters.slack.sender import SlackSender
from adapters.slack.web_api.installing import Installations
from bot.domain import Content
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.shown import THREAD, a_post, an_approval
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport, Json, SocketTransport, Transport
from tests.support.stand_in_services import StandInServices

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


@dataclass(frozen=True, slots=True)
class Served:
    """Everything that runs."""

    slack: FakeSlack
    services: StandInServices
    sender: SlackSender
    receiver: SlackReceiver
    transport: Transport
    url: str

    def person(self, user: str = "U1", team: str = "T1") -> SlackPerson:
        """Somebody in that workspace."""
        return SlackPerson(self.slack, team, user, self.transport)

    @property
    def http(self) -> HttpTransport:
        """For requests that no person makes."""
        return HttpTransport(self.url, SECRET)

    async def card(self, content: Content, post_id: str = "p1", thread_ts: str = "1700000000.000100") -> Json:
        """A post of ours in a thread of C1, as people see it."""
        post = a_post(content, post_id)
        place = replace(post.place, address={**post.place.address, "thread_ts": thread_ts})
        self.slack.world.channels["C1"].messages.setdefault(
            thread_ts, {"type": "message", "user": "U1", "ts": thread_ts, "text": "<@UBOT> do it"}
        )
        reference = await self.sender.send(replace(post, place=place))
        return next(m for m in self.slack.messages("C1") if m["ts"] == reference["parts"][0])

    def told(self, user: str = "U1") -> list[str]:
        """What this person alone was told, oldest first."""
        return [message["text"] for message in self.slack.ephemerals(user)]

    async def close(self) -> None:
        """Stop receiving, so that all answers are given, and disconnect."""
        await self.receiver.stop()
        await self.sender.close()

    async def hears(self, words: str, user: str = "U1") -> str:
        """Wait until this person alone is told something with these words, and return it."""
        found: str = await self.slack.until(lambda: next((t for t in self.told(user) if words in t), None))
        return found

    async def modal(self, user: str = "U1", but_not: str = "") -> Json:
        """Wait for the modal that this person has open, with another hash than `but_not`."""

        def newest() -> list[Json]:
            return [view for view in self.slack.views(user)[-1:] if view["hash"] != but_not]

        (view,) = await self.slack.until(newest)
        return dict(view)


def stand_in_services() -> StandInServices:
    """Services of a workspace, whose cards are in a thread of C1."""
    return StandInServices("slack:T1:", THREAD, {"team": "T1", "channel": "C1", "parts": ["1700000000.000200"]})


@asynccontextmanager
async def receiving(
    config: SlackConfig, *, services: StandInServices | None = None, installations: Installations | None = None
) -> AsyncIterator[SlackReceiver]:
    """Both halves, closed in the end; not started, and not served."""
    services = services or stand_in_services()
    sender = SlackSender(config, services.link, installations=installations)
    receiver = SlackReceiver(sender, services.services)
    try:
        yield receiver
    finally:
        await receiver.stop()
        await sender.close()


@asynccontextmanager
async def served(receiver: SlackReceiver) -> AsyncIterator[str]:
    """Its routes on a free port of this machine; the base URL."""
    application = web.Application()
    application.add_routes(receiver.routes())
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(*, transport: type[Transport] | Any = HttpTransport, **changes: Any) -> AsyncIterator[Served]:
    """Serve it until the block ends; `changes` are those of the configuration."""
    async with fake_slack() as slack:
        config = SlackConfig(bot_token="xoxb-1", signing_secret=SECRET, api_url=slack.api_url)
        if transport is SocketTransport:
            config = replace(config, signing_secret=None, app_token=slack.world.app_token)
        services = stand_in_services()
        sender = SlackSender(replace(config, **changes), services.link)
        receiver = SlackReceiver(sender, services.services)
        application = web.Application()
        application.add_routes(receiver.routes())
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/slack/events"
        await web.SockSite(runner, listening).start()
        try:
            await receiver.start()
            opened = SocketTransport(slack) if transport is SocketTransport else HttpTransport(url, SECRET)
            yield Served(slack, services, sender, receiver, opened, url)
            assert slack.product_mistakes == []
        finally:
            await receiver.stop()
            await sender.close()
            await runner.cleanup()


async def a_card(product: Served, **changes: Any) -> Json:
    """The card of an approval that waits."""
    view = an_approval(**changes)
    product.services.approvals[view.approval_id] = view
    return await product.card(view)
