"""Browsers behind something that leads each to one replica, and to another one when that does not answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.kills.people import PATIENCE, insisting
from tests.support.visitor import WITHIN, Answer, Json, Thread, Visitor, new_thread

ANSWERS_WITHIN = 5.0
"""Seconds after which a request is sent to another replica."""
STREAM_SECONDS = 15.0
"""Seconds after which a page is loaded again: what it has missed while a replica stood still, it sees then at the
latest. More often, putting whole conversations together would be most of what the replicas do."""
NOT_ANSWERED = (aiohttp.ClientError, ConnectionError, TimeoutError)


class NotTakenError(aiohttp.ClientError):
    """A replica did not answer, or refused because something of it is away; the same can be sent elsewhere."""


class RoamingVisitor(Visitor):
    """One browser session of one local person, known to all replicas.

    `refused`: collects the 5xx that it got instead of answers.
    """

    def __init__(self, urls: Sequence[str], http: aiohttp.ClientSession, refused: list[Answer]) -> None:
        super().__init__(urls[0], http)
        self.urls = urls
        self.refused = refused
        self._tokens: dict[str, str] = {}

    def some_url(self, rng: random.Random) -> str:
        """The address of one of them, whether that answers now or not."""
        return rng.choice(self.urls)

    async def arrive_everywhere(self, person_id: str) -> None:
        """Be somebody, at every replica."""
        for url in reversed(self.urls):
            self.url = url
            await insisting(lambda: self._arrive(person_id))
            self._tokens[url] = self._csrf

    async def _arrive(self, person_id: str) -> None:
        await self.arrive(person_id)

    async def post(self, path: str, body: Json) -> Answer:
        """POST to the replica that answered last. Raises `NotTakenError`, and goes to another one next time."""
        url = self.url
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                answer = await super().post(path, body)
        except NOT_ANSWERED as error:
            self._leave(url)
            raise NotTakenError(f"{url} did not answer") from error
        if answer.status >= 500:
            self.refused.append(answer)
            self._leave(url)
            raise NotTakenError(f"{url} answered {answer}")
        return answer

    def _leave(self, url: str) -> None:
        if self.url == url and len(self._tokens) == len(self.urls):  # others may have left it meanwhile
            self.url = self.urls[(self.urls.index(url) + 1) % len(self.urls)]
            self._csrf = self._tokens[self.url]

    @asynccontextmanager
    async def thread(self, thread_id: str | None = None, *, within: float = WITHIN) -> AsyncIterator[Thread]:
        """Open a conversation and follow it, at all replicas."""
        thread = RoamingThread(thread_id or new_thread(), self, within)
        ready = asyncio.Event()
        following = [asyncio.create_task(thread.follow_at(url, ready)) for url in self.urls]
        try:
            async with asyncio.timeout(within):
                await ready.wait()
            yield thread
        finally:
            for task in following:
                task.cancel()
            ends = await asyncio.gather(*following, return_exceptions=True)
            for end in ends:
                if isinstance(end, Exception):
                    raise end


@dataclass
class RoamingThread(Thread):
    """One conversation as the pages of all replicas together show it."""

    async def follow_at(self, url: str, ready: asyncio.Event) -> None:
        """Keep `entries` as new as this replica knows them."""
        while True:
            try:
                async with asyncio.timeout(STREAM_SECONDS):
                    await self.follow_once(url, ready)
            except NOT_ANSWERED:
                await asyncio.sleep(0.05)

    async def take(self, name: str, event: Json) -> None:
        """An event. What one replica shows does not replace what another one has shown since."""
        if name == "threads":
            event = {**event, "asked": _with_all(self.asked, event["asked"])}
            event["through_programs"] = _with_all(self.through_programs, event["through_programs"])
        if name != "thread":
            await super().take(name, event)
            return
        for entry in event["entries"]:
            await super().take("message", entry)


def _with_all(known: Sequence[Json], told: Sequence[Json]) -> list[Json]:
    """What waits, or did once, as it was told last."""
    return list({item["id"]: item for item in (*known, *told)}.values())


@asynccontextmanager
async def roaming(urls: Sequence[str], refused: list[Answer], person: str = "ana") -> AsyncIterator[RoamingVisitor]:
    """A browser session of a local person. `urls`: of the replicas, the one that it begins with first."""
    jar: Any = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=PATIENCE)) as http:
        visitor = RoamingVisitor(urls, http, refused)
        await visitor.arrive_everywhere(f"web:{person}")
        yield visitor
