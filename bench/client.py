"""The one client of both contestants: writes messages, presses Approve, and notes when what came back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

Json = dict[str, Any]
WITHIN = 60.0
"""Seconds that any one thing may take; a contestant that needs more is broken."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A post, and the moment it was seen (`time.monotonic()`)."""

    content: Json
    at: float


@dataclass(frozen=True, slots=True)
class Turn:
    """How long one turn took. Seconds from sending the message."""

    acknowledged: float
    answered: float


@dataclass
class Thread:
    """One conversation with its open event stream."""

    client: Client
    thread_id: str
    posts: list[Seen] = field(default_factory=list)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def turn(self, text: str = "tell me about") -> Turn:
        """Write a message and wait for the answer to it. `text` is what it begins with."""
        mark = uuid.uuid4().hex[:12]
        sent = time.monotonic()
        await self.client.send(self.thread_id, f"{text} {mark}")
        acknowledged = time.monotonic()
        answer = await self.until(lambda c: c["kind"] == "said" and mark in c["text"])
        return Turn(acknowledged - sent, answer.at - sent)

    async def until(self, wanted: Callable[[Json], bool]) -> Seen:
        """Wait for a post, and forget it and all before it."""
        seen = await self.first(wanted)
        del self.posts[: self.posts.index(seen) + 1]
        return seen

    async def first(self, wanted: Callable[[Json], bool]) -> Seen:
        """Wait for a post, and forget none: what comes in no particular order can be waited for one by one."""
        async with asyncio.timeout(WITHIN):
            while True:
                for seen in self.posts:
                    if wanted(seen.content):
                        return seen
                self._arrived.clear()
                await self._arrived.wait()

    def show(self, seen: Seen) -> None:
        """A post has arrived."""
        self.posts.append(seen)
        self._arrived.set()

    async def follow(self, ready: asyncio.Event) -> None:
        """Take in the event stream until cancelled."""
        name = b""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.client.http.get(
            f"{self.client.url}/api/events", params={"thread": self.thread_id}, timeout=timeout
        ) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"event: "):
                    name = line[7:-1]
                elif line.startswith(b"data: ") and name == b"post":
                    self.show(Seen(json.loads(line[6:])["content"], time.monotonic()))
                elif line.startswith(b"data: ") and name == b"thread":
                    ready.set()


class Client:
    """A person at a contestant."""

    def __init__(self, url: str, http: aiohttp.ClientSession, csrf: str) -> None:
        self.url = url
        self.http = http
        self._headers = {"X-CSRF-Token": csrf, "Origin": url}

    async def send(self, thread_id: str, text: str) -> None:
        """Write a message; returns when it is acknowledged."""
        await self._post(f"/api/threads/{quote(thread_id, safe='')}/messages", {"id": uuid.uuid4().hex, "text": text})

    async def approve(self, approval_id: str) -> None:
        """Press Approve."""
        body = {"id": uuid.uuid4().hex, "approvals": [approval_id], "verb": "approve"}
        await self._post("/api/approvals/decisions", body)

    async def _post(self, path: str, body: Json) -> None:
        url = URL(self.url + path, encoded=True)
        async with self.http.post(url, json=body, headers=self._headers) as response:
            await response.read()
            response.raise_for_status()

    @asynccontextmanager
    async def thread(self) -> AsyncIterator[Thread]:
        """A new conversation, its event stream open."""
        thread = Thread(self, f"web:{uuid.uuid4().hex}")
        ready = asyncio.Event()
        following = asyncio.create_task(thread.follow(ready))
        try:
            async with asyncio.timeout(WITHIN):
                await ready.wait()
            yield thread
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError):
                await following


@asynccontextmanager
async def visiting(url: str) -> AsyncIterator[Client]:
    """A session at a contestant, with as many connections as it takes."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=timeout) as http:
        async with http.get(f"{url}/api/session") as response:
            csrf = (await response.json())["csrf"]
        yield Client(url, http, csrf)
