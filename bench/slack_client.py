"""A person in Slack, driven like the one at the page: signed events in, Web API calls out, both over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from bench.client import WITHIN, Json, Seen, Thread

TEAM, PERSON, BOT, TOKEN, SIGNING_SECRET = "T0BENCH", "U0BENCH", "U0BOT", "xoxb-bench", "bench-signing-secret"
_DONE = re.compile(r"Done: \S.*")


class SlackApi:
    """As much of Slack's Web API as the bot needs; it answers at once and shows what is posted to whoever waits."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        """By channel: the bench holds one conversation in each."""
        self.base_url = ""
        self.numbers = itertools.count(1)
        """Of everything that needs a name of its own, whoever the client is."""
        self._approvals: dict[str, str] = {}
        """By the `ts` of its card."""
        self._cards: dict[str, Json] = {}
        """By the approval: the message, and its channel."""
        self._streamed: dict[str, list[str]] = {}
        """By the `ts` of an answer that is being written."""

    def variables(self) -> Mapping[str, str]:
        """What the product, or a Bolt app, has to be told to find it."""
        return {"SLACK_API_URL": self.base_url, "SLACK_BOT_TOKEN": TOKEN, "SLACK_SIGNING_SECRET": SIGNING_SECRET}

    async def handle(self, request: web.Request) -> web.Response:
        """One method."""
        method = request.match_info["method"]
        is_json = request.content_type == "application/json"
        arguments: Json = await request.json() if is_json else {**request.query, **await request.post()}
        return web.json_response({"ok": True, **self._answer(method, arguments)})

    async def respond(self, request: web.Request) -> web.Response:
        """What an app sends to the `response_url` of a click."""
        arguments = await request.json()
        if arguments.get("replace_original"):
            ts = request.match_info["ts"]
            self._show(self._cards[self._approvals[ts]]["channel"], ts, arguments)
        return web.json_response({"ok": True})

    def card(self, approval_id: str) -> Json:
        """What Slack tells of a card when somebody clicks on it."""
        card = self._cards[approval_id]
        place = {"message_ts": card["ts"], "channel_id": card["channel"], "thread_ts": card["thread_ts"]}
        message = {"type": "message", "user": BOT, "bot_id": "B0BOT", "team": TEAM}
        return {
            "channel": {"id": card["channel"], "name": "bench"},
            "container": {"type": "message", "is_ephemeral": False, **place},
            "message": {**message, **{key: card[key] for key in ("ts", "thread_ts", "text", "blocks")}},
            "response_url": f"{self.base_url.removesuffix('api/')}actions/{card['ts']}",
        }

    def _answer(self, method: str, arguments: Json) -> Json:
        match method:
            case "auth.test":
                url = "https://bench.slack.com/"
                return {"team_id": TEAM, "team": "Bench", "user_id": BOT, "bot_id": "B0BOT", "url": url}
            case "users.info":
                user = {"id": PERSON, "team_id": TEAM, "name": "ana", "real_name": "Ana", "tz": "UTC"}
                return {"user": user | {"profile": {"display_name": "Ana", "real_name": "Ana"}}}
            case "chat.postMessage" | "chat.update":
                ts = arguments.get("ts") or f"1800000000.{next(self.numbers):06d}"
                self._show(str(arguments["channel"]), ts, arguments)
                return {"channel": arguments["channel"], "ts": ts}
            case "chat.startStream" | "chat.appendStream" | "chat.stopStream":
                ts = arguments.get("ts") or f"1800000000.{next(self.numbers):06d}"
                chunks = arguments.get("chunks") or []
                pieces = self._streamed.setdefault(ts, [])
                pieces += _texts(json.loads(chunks) if isinstance(chunks, str) else chunks)
                if method == "chat.stopStream":  # an answer that took long enough to be seen while it was written
                    text = "".join(self._streamed.pop(ts))
                    self._show(str(arguments["channel"]), ts, {"blocks": arguments.get("blocks"), "text": text})
                return {"channel": arguments["channel"], "ts": ts}
            case "conversations.replies" | "conversations.history":
                return {"messages": [], "has_more": False}
            case _:
                return {}

    def _show(self, channel: str, ts: str, arguments: Json) -> None:
        blocks = arguments.get("blocks") or []
        blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
        approve = next((e["value"] for e in _elements(blocks) if e.get("action_id") == "approve"), None)
        text = " ".join([*_texts(blocks), str(arguments.get("text", ""))])
        if approve is not None:
            self._approvals[ts] = approve
            card = {"thread_ts": arguments.get("thread_ts"), **self._cards.get(approve, {})}
            self._cards[approve] = card | {"ts": ts, "channel": channel, "text": text, "blocks": blocks}
        if ts in self._approvals:
            status = "pending" if approve is not None else "settled"
            done = _DONE.search(text)
            content = {"kind": "approval", "id": self._approvals[ts], "status": status}
            content["result"] = done[0] if done else ""
        else:
            content = {"kind": "said", "text": text}
        if channel in self.threads:
            self.threads[channel].show(Seen(content, time.monotonic()))


def _elements(blocks: Any) -> Iterator[Json]:
    for block in blocks:
        yield from block.get("elements", ()) if block.get("type") == "actions" else ()


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


class SlackClient:
    """The person. Fills the same part as `bench.client.Client`."""

    def __init__(self, urls: Sequence[str], http: aiohttp.ClientSession, api: SlackApi) -> None:
        self._urls = itertools.cycle(f"{url}/slack/events" for url in urls)
        self.http = http
        self._api = api
        self._started = time.time()

    async def send(self, thread_id: str, text: str) -> None:
        """Mention the bot in the thread of a channel; returns when it is acknowledged."""
        number, channel = next(self._api.numbers), _channel_of(thread_id)
        ts = f"{self._started + number / 1000:.6f}"
        event = {"type": "app_mention", "user": PERSON, "text": f"<@{BOT}> {text}", "ts": ts, "channel": channel}
        event |= {"thread_ts": f"{int(self._started)}.000001", "team": TEAM, "event_ts": ts}
        body = {"type": "event_callback", "team_id": TEAM, "api_app_id": "A0", "event_id": f"Ev{number}"}
        body |= {"event": event, "event_time": int(time.time())}
        body["authorizations"] = [{"team_id": TEAM, "user_id": BOT, "is_bot": True, "enterprise_id": None}]
        await self._post(json.dumps(body), "application/json")

    async def approve(self, approval_id: str) -> None:
        """Press Approve."""
        number = next(self._api.numbers)
        action = {"type": "button", "action_id": "approve", "block_id": "b", "value": approval_id}
        payload = {"type": "block_actions", "team": {"id": TEAM}, "user": {"id": PERSON, "team_id": TEAM}}
        payload |= {"trigger_id": f"t{number}", "api_app_id": "A0", **self._api.card(approval_id)}
        payload["actions"] = [{**action, "action_ts": f"{time.time():.6f}"}]
        await self._post(urlencode({"payload": json.dumps(payload)}), "application/x-www-form-urlencoded")

    async def _post(self, body: str, content_type: str) -> None:
        now = str(int(time.time()))
        digest = hmac.new(SIGNING_SECRET.encode(), f"v0:{now}:{body}".encode(), hashlib.sha256).hexdigest()
        headers = {"Content-Type": content_type, "X-Slack-Request-Timestamp": now, "X-Slack-Signature": f"v0={digest}"}
        async with self.http.post(next(self._urls), data=body.encode(), headers=headers) as response:
            await response.read()
            response.raise_for_status()

    @asynccontextmanager
    async def thread(self) -> AsyncIterator[Thread]:
        """A new conversation, in a channel of its own."""
        thread = Thread(self, f"slack:{next(self._api.numbers)}")
        self._api.threads[_channel_of(thread.thread_id)] = thread
        try:
            yield thread
        finally:
            del self._api.threads[_channel_of(thread.thread_id)]


def _channel_of(thread_id: str) -> str:
    return "C0" + re.sub(r"\W", "", thread_id).upper()


@asynccontextmanager
async def slack_api() -> AsyncIterator[SlackApi]:
    """The Web API, running."""
    api = SlackApi()
    application = web.Application()
    application.router.add_route("*", "/api/{method}", api.handle)
    application.router.add_post("/actions/{ts}", api.respond)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        api.base_url = f"http://{host}:{port}/api/"
        yield api
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await runner.cleanup()


@asynccontextmanager
async def in_slack(api: SlackApi, *urls: str) -> AsyncIterator[SlackClient]:
    """Slack, with as many connections as it takes. `urls`: of processes that it speaks to in turns."""
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:
        yield SlackClient(urls, http, api)
