"""Socket Mode: the same payloads through a WebSocket that we open, for machines that the internet cannot reach."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
import structlog
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.untrusted_json import MalformedBodyError
from adapters.slack.inbound.requests import SlackPayloadHandler, checked
from adapters.slack.web_api.client import QUIET, SlackHttpClient
from bot.platform import NotConnected

log = structlog.get_logger(__name__)
CONNECT_SECONDS = 10.0
"""How long the start waits for the connection; after that it goes on in the background."""
WATCH_SECONDS = 5.0
PING_SECONDS = 5.0
_NOT_LET_IN = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "not_allowed_token_type", "missing_scope"}
    | {"socket_mode_not_enabled", "forbidden_socket_mode", "no_permission"}
)
_WHAT_TO_DO = (
    "SLACK_APP_TOKEN was refused ({error}). Socket Mode needs an app-level token (xapp-…) with the scope "
    "connections:write, and Socket Mode switched on, both on your app's page at api.slack.com."
)


class SocketMode:
    """Keeps a connection, reconnecting as long as it takes. An envelope is acknowledged when what it says is kept."""

    def __init__(self, inbound: SlackPayloadHandler, app_token: str, api_url: str, background: BackgroundTasks) -> None:
        self._inbound = inbound
        self._app_token = app_token
        self._api_url = api_url
        self._wire = SlackHttpClient(api_url)
        self._background = background
        self._client: SocketModeClient | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def connected(self) -> bool:
        """Whether Slack can reach us now."""
        session = self._client.current_session if self._client else None
        return session is not None and not session.closed

    async def start(self) -> None:
        """Connect. Raises `NotConnected` when Slack refuses the token; when Slack cannot be reached, it goes on
        trying."""
        client = SocketModeClient(self._app_token, QUIET, self._wire.client, ping_interval=PING_SECONDS)
        if proxy_bypass(urlsplit(self._api_url).hostname or ""):
            client.proxy = None  # the SDK takes HTTPS_PROXY from the environment, but not NO_PROXY
        client.socket_mode_request_listeners.append(self._take)
        self._client = client
        try:
            opened = await client.web_client.apps_connections_open(app_token=self._app_token)
            client.wss_uri = str(opened["url"])
        except SlackApiError as failure:
            error = str(failure.response.get("error", ""))
            if error in _NOT_LET_IN:
                await self.close()
                raise NotConnected(_WHAT_TO_DO.format(error=error)) from None
            log.warning("slack_socket_unreachable", error=error)
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError) as failure:
            log.warning("slack_socket_unreachable", error=type(failure).__name__)
        connecting = asyncio.create_task(client.connect(), name="slack socket")  # type: ignore[no-untyped-call]  # the SDK's
        self._tasks = [connecting, asyncio.create_task(self._watch(client), name="slack socket watch")]
        await asyncio.wait([connecting], timeout=CONNECT_SECONDS)
        log.info("slack_socket", connected=self.connected)

    async def close(self) -> None:
        """Disconnect, when what has come in is kept."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()  # type: ignore[no-untyped-call]  # the SDK's
            running = [client.message_processor, client.current_session_monitor, client.message_receiver]
            await asyncio.gather(*(task for task in running if task), return_exceptions=True)
        await self._wire.close()

    async def _watch(self, client: SocketModeClient) -> None:
        """The SDK tries an address again that Slack gave it for one connection: while there is none, it must ask for
        another."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not self.connected:
                client.wss_uri = None

    async def _take(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        self._background.start(self._answer(client, request), "socket envelope")

    async def _answer(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        try:
            payload = checked(request.payload)
        except MalformedBodyError as error:
            log.warning("slack_request_malformed", reason=str(error))
            return
        answer = await self._inbound.take(payload)
        if answer.status != 200:
            return  # not acknowledged: Slack sends it again
        with suppress(ConnectionError):  # lost meanwhile; sent again through the next one, it is known already
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id, _body_of(answer)))


def _body_of(answer: BoltResponse) -> dict[str, Any] | None:
    if not answer.body:
        return None
    body: dict[str, Any] = json.loads(answer.body)
    return body
