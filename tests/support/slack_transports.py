"""The two ways on which Slack reaches an app: signed HTTP requests, and envelopes over a WebSocket."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

import aiohttp

from tests.fakes.slack.server import FakeSlack

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the app answered. Over a socket `status` is 200 for an acknowledgement and 0 for none."""

    status: int
    json: Any = None
    """The body, if it is JSON."""
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Retry:
    """That Slack has sent it before: the first time again at once, then after 1 and 5 minutes."""

    number: int = 1
    reason: str = "http_timeout"


class Transport(Protocol):
    """Where an app takes what Slack sends."""

    async def event(self, envelope: Json, retry: Retry | None = None) -> Answer:
        """An event of the Events API."""
        ...

    async def interaction(self, payload: Json) -> Answer:
        """A click, a form, a shortcut."""
        ...

    async def command(self, fields: Mapping[str, str]) -> Answer:
        """A slash command."""
        ...


def signed(secret: str, body: str, timestamp: float) -> dict[str, str]:
    """The headers by which an app knows Slack (version v0 of its signatures)."""
    at = str(int(timestamp))
    digest = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={digest}"}


class HttpTransport:
    """The Events API: everything is posted to one address of the app."""

    def __init__(self, url: str, signing_secret: str, now: Callable[[], float] = time.time) -> None:
        self.url = url
        self.base_url = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        self._secret = signing_secret
        self._now = now

    async def event(self, envelope: Json, retry: Retry | None = None) -> Answer:
        """As `application/json`."""
        again = {"X-Slack-Retry-Num": str(retry.number), "X-Slack-Retry-Reason": retry.reason} if retry else {}
        return await self.post(json.dumps(envelope), "application/json", again)

    async def interaction(self, payload: Json) -> Answer:
        """As the form field `payload`."""
        return await self.post("payload=" + quote(json.dumps(payload)), "application/x-www-form-urlencoded")

    async def command(self, fields: Mapping[str, str]) -> Answer:
        """As a plain form."""
        return await self.post(urlencode(fields), "application/x-www-form-urlencoded")

    async def post(self, body: str, content_type: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Any body, signed; `headers` go over ours, so that a test can spoil the signature."""
        sent = {"Content-Type": content_type, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        sent |= {**signed(self._secret, body, self._now()), **(headers or {})}
        return await self._request("POST", self.url, data=body.encode(), headers=sent)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """A page of the app, as somebody's browser asks for it; redirects are not followed."""
        return await self._request("GET", self.base_url + path, headers=headers or {}, allow_redirects=False)

    async def _request(self, method: str, url: str, **options: Any) -> Answer:
        timeout = aiohttp.ClientTimeout(total=10)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, url, **options) as response,
        ):
            text = await response.text()
            is_json = response.content_type == "application/json" and text
            return Answer(response.status, json.loads(text) if is_json else None, text, dict(response.headers))


class SocketTransport:
    """Socket Mode: the same payloads as envelopes, to whichever connection the app has open."""

    def __init__(self, slack: FakeSlack, patience: float = 3.0) -> None:
        self._slack = slack
        self._patience = patience
        """Seconds to wait for an acknowledgement (Slack: 3 s)."""

    async def event(self, envelope: Json, retry: Retry | None = None) -> Answer:
        """Of type `events_api`."""
        return await self._send("events_api", envelope, retry.number if retry else 0)

    async def interaction(self, payload: Json) -> Answer:
        """Of type `interactive`."""
        return await self._send("interactive", payload)

    async def command(self, fields: Mapping[str, str]) -> Answer:
        """Of type `slash_commands`."""
        return await self._send("slash_commands", dict(fields))

    async def _send(self, kind: str, payload: Json, attempt: int = 0) -> Answer:
        envelope = await self._slack.sockets.send(kind, payload, attempt)
        try:
            async with asyncio.timeout(self._patience):
                await envelope.acked.wait()
        except TimeoutError:
            return Answer(0)
        return Answer(200, envelope.answer, json.dumps(envelope.answer) if envelope.answer is not None else "")
