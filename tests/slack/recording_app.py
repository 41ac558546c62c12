"""A bare Bolt app that writes down what reaches it, over HTTP or Socket Mode: the other end of the transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack
from tests.support.slack_transports import HttpTransport, SocketTransport, Transport

Json = dict[str, Any]
SECRET = "shh"


class RecordingApp:
    """What came in, and what a view submission or a command is answered with."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        """Envelopes."""
        self.bodies: list[Json] = []
        """Interactions and commands."""
        self.view_answer: Callable[[Json], Json] = lambda _view: {}
        self.command_answer: str | Json = ""


@asynccontextmanager
async def recording_app(
    slack: FakeSlack, mode: Literal["http", "socket"]
) -> AsyncIterator[tuple[RecordingApp, Transport]]:
    """Run one, with the transport that leads to it."""
    recorded = RecordingApp()
    client = AsyncWebClient(token="xoxb-1", base_url=slack.api_url)
    # Without a name Bolt looks through the sources of all callers for one, which takes half a second.
    app = AsyncApp(name="recording", client=client, signing_secret=SECRET, process_before_response=True)
    _listen(app, recorded)
    if mode == "socket":
        handler = AsyncSocketModeHandler(app, slack.world.app_token, web_client=client)
        await handler.connect_async()  # type: ignore[no-untyped-call]  # Bolt gives it no types
        try:
            await slack.until(lambda: slack.sockets.connected)
            yield recorded, SocketTransport(slack)
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]  # neither this
        return

    async def handle(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    site = web.Application()
    site.router.add_post("/slack/events", handle)
    runner = web.AppRunner(site, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield recorded, HttpTransport(f"http://{host}:{port}/slack/events", SECRET)
    finally:
        await runner.cleanup()


def _listen(app: AsyncApp, recorded: RecordingApp) -> None:
    async def event(body: Json) -> None:
        recorded.events.append(body)

    async def interaction(ack: Any, body: Json) -> None:
        recorded.bodies.append(body)
        await ack()

    async def command(ack: Any, body: Json) -> None:
        recorded.bodies.append(body)
        await ack(recorded.command_answer)

    async def view(ack: Any, body: Json) -> None:
        recorded.bodies.append(body)
        await ack(**recorded.view_answer(body["view"]))

    for kind in ("app_mention", "message", "app_home_opened", "assistant_thread_started", "app_uninstalled"):
        app.event(kind)(event)
    app.event("tokens_revoked")(event)
    app.event("user_change")(event)
    app.action({"action_id": "approve"})(interaction)
    app.action({"action_id": "feedback"})(interaction)
    app.shortcut("ask_about_message")(interaction)
    app.command("/countersign")(command)
    app.view("form")(view)
    app.view_closed("form")(interaction)
