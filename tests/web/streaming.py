"""Reading the page's event stream as a browser would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp

from tests.web.serving import Browser

DEADLINE = 10.0
Event = tuple[str, dict[str, Any]]


class Stream:
    """One connection: its events, one by one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Event | None:
        """The next event; `None`: the server ended the stream."""
        name, data = "", ""
        async with asyncio.timeout(DEADLINE):
            while line := (await self.response.content.readline()).decode():
                if line.startswith("event: "):
                    name = line[7:].strip()
                elif line.startswith("data: "):
                    data = line[6:]
                elif line == "\n" and data:
                    return name, json.loads(data)
        return None

    async def until(self, name: str, wanted: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The data of the next event of that name that is wanted."""
        while event := await self.next():
            if event[0] == name and wanted(event[1]):
                return event[1]
        raise AssertionError(f"the stream ended before a {name} event")


@asynccontextmanager
async def stream_of(browser: Browser, thread_id: str) -> AsyncIterator[Stream]:
    """Follow a thread; the stream is read from its very beginning."""
    url = f"{browser.product.url}/api/events?thread={quote(thread_id, safe='')}"
    async with browser.http.get(url, timeout=aiohttp.ClientTimeout(total=None)) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield Stream(response)


async def snapshot(stream: Stream) -> dict[str, Any]:
    """The thread as it is sent at the beginning."""
    return await stream.until("thread")


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    try:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None
