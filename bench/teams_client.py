"""A person in Teams, driven like the one at the page: signed activities in, Bot Connector calls out, over sockets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from bench.client import WITHIN, Json, Seen, Thread

APP, TENANT = "00000000-0000-0000-0000-00000000b070", "00000000-0000-0000-0000-0000000ac3e0"
PERSON, ADDRESS, BOT = "00000000-0000-0000-0000-00000000a4a0", "29:ana", f"28:{APP}"
ISSUER, SECRET, KEY_ID = "https://api.botframework.com", "bench-app-password", "bench"
CHANNEL = "19:bench@thread.tacv2"
_DONE = re.compile(r"Done: \S.*")


class TeamsApi:
    """As much of Microsoft's side as the bot needs: tokens, keys, and a Bot Connector that shows what is posted."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        """By conversation."""
        self.base_url = ""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._numbers = itertools.count(1)
        self._cards: dict[str, str] = {}

    def variables(self) -> Mapping[str, str]:
        """What the product has to be told to find it."""
        return {
            "MICROSOFT_APP_ID": APP,
            "MICROSOFT_APP_PASSWORD": SECRET,
            "MICROSOFT_APP_TENANT_ID": TENANT,
            "TEAMS_LOGIN_URL": f"{self.base_url}/login",
            "TEAMS_OPENID_METADATA_URL": f"{self.base_url}/metadata",
            "TEAMS_SERVICE_URL": self.service_url,
        }

    @property
    def service_url(self) -> str:
        """The Bot Connector."""
        return f"{self.base_url}/connector/"

    def token(self) -> str:
        """What the Bot Connector shows with each activity."""
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": APP, "serviceurl": self.service_url, "nbf": now - 60, "exp": now + 3600}
        return jwt.encode(claims, self._key, "RS256", headers={"kid": KEY_ID})

    def routes(self) -> list[web.RouteDef]:
        """All of it."""
        return [
            web.get("/metadata", self._metadata),
            web.get("/keys", self._keys),
            web.post("/login/{tenant}/oauth2/v2.0/token", self._login),
            web.get("/connector/v3/conversations/{conversation}/members/{user}", self._member),
            web.route("*", "/connector/v3/conversations/{conversation}/activities{rest:.*}", self._activity),
        ]

    async def _metadata(self, _: web.Request) -> web.Response:
        return web.json_response({"issuer": ISSUER, "jwks_uri": f"{self.base_url}/keys"})

    async def _keys(self, _: web.Request) -> web.Response:
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        return web.json_response({"keys": [key | {"kid": KEY_ID, "endorsements": ["msteams"]}]})

    async def _login(self, _: web.Request) -> web.Response:
        return web.json_response({"access_token": "bench-token", "expires_in": 3600, "token_type": "Bearer"})

    async def _member(self, _: web.Request) -> web.Response:
        member = {"id": ADDRESS, "aadObjectId": PERSON, "name": "Ana", "tenantId": TENANT, "userRole": "user"}
        return web.json_response(member)

    async def _activity(self, request: web.Request) -> web.Response:
        activity: Json = await request.json() if request.can_read_body else {}
        named = request.match_info["rest"].strip("/")
        activity_id = named if request.method == "PUT" else str(next(self._numbers))
        if activity.get("type") == "message":
            self._show(request.match_info["conversation"], activity_id, activity)
        return web.json_response({"id": activity_id}, status=200 if request.method == "PUT" else 201)

    def _show(self, conversation: str, activity_id: str, activity: Json) -> None:
        actions = list(_actions(activity))
        approval = next((data["id"] for data in actions if data["countersign"] in {"approve", "refresh"}), None)
        if approval is not None:
            self._cards[activity_id] = approval
        if activity_id in self._cards:
            text = " ".join(_texts(activity))
            done = _DONE.search(text)
            status = "pending" if approval is not None else "settled"
            content = {"kind": "approval", "id": self._cards[activity_id], "status": status}
            content["result"] = done[0] if done else ""
        else:
            content = {"kind": "said", "text": str(activity.get("text", ""))}
        if conversation in self.threads:
            self.threads[conversation].show(Seen(content, time.monotonic()))


def _actions(node: Any) -> Iterator[Json]:
    """The data of every button of ours."""
    match node:
        case {"countersign": str(), "id": str()}:
            yield node
        case dict():
            for value in node.values():
                yield from _actions(value)
        case list():
            for value in node:
                yield from _actions(value)


def _texts(node: Any) -> Iterator[str]:
    match node:
        case {"text": str(text)}:
            yield text
        case dict():
            for value in node.values():
                yield from _texts(value)
        case list():
            for value in node:
                yield from _texts(value)


class TeamsClient:
    """The person. Fills the same part as `bench.client.Client`."""

    def __init__(self, url: str, http: aiohttp.ClientSession, api: TeamsApi) -> None:
        self.url = f"{url}/api/messages"
        self.http = http
        self._api = api
        self._headers = {"Authorization": f"Bearer {api.token()}"}
        self._numbers = itertools.count(1)

    async def send(self, thread_id: str, text: str) -> None:
        """Mention the bot in a thread of the channel; returns when it is acknowledged."""
        mention = {"type": "mention", "text": "<at>Bot</at>", "mentioned": {"id": BOT, "name": "Bot"}}
        await self._post(thread_id, {"type": "message", "text": f"<at>Bot</at> {text}", "entities": [mention]})

    async def approve(self, approval_id: str) -> None:
        """Press Approve."""
        await self._act("approve", approval_id)

    async def refresh(self, approval_id: str) -> None:
        """See a card again: Teams asks what this person is to see."""
        await self._act("refresh", approval_id)

    async def _act(self, verb: str, subject: str) -> None:
        action = {"type": "Action.Execute", "verb": verb, "data": {"countersign": verb, "id": subject}}
        value = {"action": action, "trigger": "manual"}
        await self._post(CHANNEL, {"type": "invoke", "name": "adaptiveCard/action", "value": value})

    async def _post(self, conversation: str, activity: Json) -> None:
        activity |= {
            "id": f"{time.time_ns()}-{next(self._numbers)}",
            "channelId": "msteams",
            "serviceUrl": self._api.service_url,
            "from": {"id": ADDRESS, "name": "Ana", "aadObjectId": PERSON},
            "recipient": {"id": BOT, "name": "Bot"},
            "conversation": {"id": conversation, "conversationType": "channel", "tenantId": TENANT},
            "channelData": {"tenant": {"id": TENANT}, "channel": {"id": CHANNEL}, "team": {"id": CHANNEL}},
        }
        async with self.http.post(self.url, json=activity, headers=self._headers) as response:
            await response.read()
            response.raise_for_status()

    @asynccontextmanager
    async def thread(self) -> AsyncIterator[Thread]:
        """A new conversation."""
        thread = Thread(self, f"{CHANNEL};messageid={time.time_ns()}")
        self._api.threads[thread.thread_id] = thread
        try:
            yield thread
        finally:
            del self._api.threads[thread.thread_id]


@asynccontextmanager
async def teams_api() -> AsyncIterator[TeamsApi]:
    """Microsoft's side, running."""
    api = TeamsApi()
    application = web.Application()
    application.add_routes(api.routes())
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        api.base_url = f"http://{host}:{port}"
        yield api
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await runner.cleanup()


@asynccontextmanager
async def in_teams(url: str, api: TeamsApi) -> AsyncIterator[TeamsClient]:
    """Teams, with as many connections as it takes."""
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:
        yield TeamsClient(url, http, api)
