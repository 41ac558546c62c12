"""Two whole products on one PostgreSQL, in this process, and one conversation that is open at both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bot.records import places
from bot.records.postgresql import PostgresDatabase, postgres_database
from bot.turns.replicas import PlacesHere
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import WITHIN, Thread, Visitor, new_thread


def share(home: ProductFolder) -> ProductFolder:
    """Let several processes of the product run at once."""
    home.variables["PUBLIC_URL"] = "http://127.0.0.1:3978"  # of both, which listen wherever they can
    return home


@dataclass
class OneProduct:
    """One of them, and the conversation as it shows it."""

    url: str
    places: PlacesHere
    thread: Thread
    ending: AsyncExitStack

    @property
    def has_it(self) -> bool:
        """Whether it looks after the conversation."""
        return self.places.open_run(self.thread.thread_id) is not None

    async def end(self) -> None:
        """End it, as a restart does."""
        await self.ending.aclose()


@dataclass
class TwoProducts:
    """Both of them."""

    products: list[OneProduct]
    database: PostgresDatabase
    """As a third process has it."""
    thread_id: str

    async def owner_and_other(self) -> tuple[OneProduct, OneProduct]:
        """The one that looks after the conversation, once one does, and the other."""
        async with asyncio.timeout(WITHIN):
            while not any(each.has_it for each in self.products):
                await asyncio.sleep(0.01)
        return tuple(sorted(self.products, key=lambda each: not each.has_it))  # type: ignore[return-value]

    async def shown(self, wait: Callable[[Thread], Awaitable[Any]]) -> Any:
        """What is waited for, at whichever of them it is shown."""
        tasks = [asyncio.ensure_future(wait(each.thread)) for each in self.products]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def at_rest(self) -> None:
        """Wait until nobody looks after the conversation."""
        async with asyncio.timeout(WITHIN):
            while any(each.has_it for each in self.products):
                await asyncio.sleep(0.01)

    async def times_claimed(self) -> int:
        """How often somebody has begun to look after the conversation."""
        async with self.database.reading() as tx:
            return (await places.epochs(tx, [self.thread_id]))[self.thread_id]

    async def overtake(self) -> None:
        """Take the conversation over, as a process does that thinks its owner dead, and then do nothing with it."""
        await self.database.claim(self.thread_id)


def remembered_places(monkeypatch: pytest.MonkeyPatch) -> list[PlacesHere]:
    """The places of all products that are started from now on, as they are started."""
    made: list[PlacesHere] = []
    make = PlacesHere.__init__

    def remembered(here: PlacesHere, *arguments: Any) -> None:
        make(here, *arguments)
        made.append(here)

    monkeypatch.setattr(PlacesHere, "__init__", remembered)
    return made


@asynccontextmanager
async def two_products(
    home: ProductFolder, monkeypatch: pytest.MonkeyPatch, person: str = "ana"
) -> AsyncIterator[TwoProducts]:
    """Both of them, running, with a new conversation of somebody who has the page of each open."""
    made = remembered_places(monkeypatch)
    thread_id, products = new_thread(), []
    async with AsyncExitStack() as stack:
        for _ in range(2):
            ending = await stack.enter_async_context(AsyncExitStack())
            url = await ending.enter_async_context(product_here(home))
            timeout = aiohttp.ClientTimeout(total=WITHIN)
            cookies = aiohttp.CookieJar(unsafe=True)
            http = await ending.enter_async_context(aiohttp.ClientSession(cookie_jar=cookies, timeout=timeout))
            visitor = Visitor(url, http)
            await visitor.arrive(f"web:{person}")
            thread = await ending.enter_async_context(visitor.thread(thread_id))
            products.append(OneProduct(url, made[-1], thread, ending))
        database = postgres_database(home.database, most_connections=3)
        await database.open()
        stack.push_async_callback(database.close)
        yield TwoProducts(products, database, thread_id)


class TakingTurns:
    """What stands at the public address, and hands each request to the next of several products."""

    def __init__(self) -> None:
        self.url = ""
        self.taken: set[int] = set()
        """Which of them were handed something."""
        self._urls: list[str] = []
        self._requests = 0

    def between(self, urls: Iterable[str]) -> None:
        """These are they."""
        self._urls = list(urls)

    async def hand_on(self, request: web.Request) -> web.Response:
        """Hand on one request, and what is answered."""
        self._requests += 1
        number = self._requests % len(self._urls)
        self.taken.add(number)
        url = aiohttp.client.URL(f"{self._urls[number]}{request.raw_path}", encoded=True)
        sent = {name: value for name, value in request.headers.items() if name not in _OF_ONE_CONNECTION}
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as http,
            http.request(
                request.method, url, headers=sent, data=await request.read(), allow_redirects=False
            ) as response,
        ):
            answer = web.Response(status=response.status, body=await response.read())
            for name, value in response.headers.items():
                if name not in _OF_ONE_CONNECTION:
                    answer.headers.add(name, value)
            return answer


_OF_ONE_CONNECTION = {"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive"}


@asynccontextmanager
async def taking_turns() -> AsyncIterator[TakingTurns]:
    """It, listening."""
    turns, application = TakingTurns(), web.Application()
    application.router.add_route("*", "/{path:.*}", turns.hand_on)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        turns.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield turns
    finally:
        await runner.cleanup()
