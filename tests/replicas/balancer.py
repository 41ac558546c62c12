"""What stands between Slack and the replicas: it asks each whether it is ready, and leads requests to those that are,
as a Service of Kubernetes does. It learns a second later what has changed, tries nothing twice, and keeps
connections."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

ASKED_EVERY = 0.5
"""Seconds."""
LEARNT_AFTER = 0.5
"""Seconds from an answer until requests go elsewhere."""
ANSWERS_WITHIN = 1.0
"""Seconds in which a replica has to say whether it is ready."""
LATE = 3
"""Times that it may take longer, one after another, until it is not ready."""
SLACK_WAITS = 3.0
"""Seconds for which Slack waits for an acknowledgement."""


@dataclass(frozen=True)
class Passed:
    """A request that was led to a replica."""

    status: int
    """0: it got no answer, and why is in `trouble`."""
    seconds: float
    trouble: str = ""


@dataclass
class Balancer:
    """Leads each request to the next replica that was ready a moment ago."""

    urls: Sequence[str]
    url: str = ""
    passed: list[Passed] = field(default_factory=list)
    _ready: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._turns = itertools.cycle(self.urls)

    @property
    def errors(self) -> list[Passed]:
        """The requests for which Slack would send again, or tell people that it did not work."""
        return [each for each in self.passed if each.status != 200 or each.seconds > SLACK_WAITS]

    async def take(self, request: web.Request) -> web.Response:
        """A request."""
        body, began = await request.read(), time.monotonic()
        url = next((each for each in itertools.islice(self._turns, len(self.urls)) if each in self._ready), None)
        if url is None:
            return self._answer(Passed(0, 0.0, "nobody is ready"), b"")
        try:
            async with self._http.request(
                request.method, url + request.path_qs, data=body, headers=request.headers
            ) as r:
                answer = await r.read()
                return self._answer(Passed(r.status, time.monotonic() - began), answer, r.content_type)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            return self._answer(Passed(0, time.monotonic() - began, f"{url}: {error!r}"), b"")

    def _answer(self, passed: Passed, body: bytes, kind: str = "text/plain") -> web.Response:
        self.passed.append(passed)
        return web.Response(status=passed.status or 502, body=body, content_type=kind)

    async def watch(self, url: str) -> None:
        """Ask a replica again and again whether it is ready."""
        loop = asyncio.get_running_loop()
        late = 0
        while True:
            try:
                is_ready = await self.is_ready(url)
            except TimeoutError:
                late += 1
                print(f"{url} was late {late} times")
                is_ready = url in self._ready and late < LATE
            else:
                late = 0
            loop.call_later(LEARNT_AFTER, self._ready.add if is_ready else self._ready.discard, url)
            await asyncio.sleep(ASKED_EVERY)

    async def is_ready(self, url: str) -> bool:
        """What a replica says now. Raises `TimeoutError`."""
        try:
            async with asyncio.timeout(ANSWERS_WITHIN), self._http.get(f"{url}/ready") as response:
                return response.status == 200
        except (aiohttp.ClientError, ConnectionError):
            return False

    async def until_known(self, *urls: str) -> None:
        """Wait until these, and no others, are taken for ready."""
        while self._ready != set(urls):
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Balancer]:
        """Listens within it."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.take)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://{runner.addresses[0][0]}:{runner.addresses[0][1]}"
        timeout = aiohttp.ClientTimeout(total=10)
        async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as self._http:
            watching = [asyncio.create_task(self.watch(url)) for url in self.urls]
            try:
                yield self
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                await runner.cleanup()
