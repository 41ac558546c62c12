"""A real server on loopback that speaks OpenAI's `/v1/embeddings`. Its vectors stand for words, and some words for
others: it proves that vectors take part, not how well a model knows what a text means."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from zlib import crc32

from aiohttp import web

DIMENSIONS = 64
SAME = {"holiday": "leave", "holidays": "leave", "vacation": "leave", "car": "vehicle", "cars": "vehicle"}
"""Words that mean another."""
Answer = Callable[[Sequence[str]], web.Response | None]


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """How often each of so many groups of words occurs in it."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        vector[crc32(SAME.get(word, word).encode()) % dimensions] += 1.0
    vector[0] += 0.01  # no text is without direction
    return vector


class FakeEmbeddings:
    """The server's state."""

    def __init__(self) -> None:
        self.base_url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.answer: Answer = lambda _texts: None
        """What it answers; `None`: vectors."""
        self.held: asyncio.Event | None = None
        """Answers nothing until it is set."""

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a request."""
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        if self.held is not None:
            await self.held.wait()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        return self.answer(texts) or vectors([vector_of(text) for text in texts])


def vectors(given: Sequence[Any]) -> web.Response:
    """An answer with these, the last first, as a service may give them."""
    data = [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(given)]
    return web.json_response(
        {"object": "list", "data": data[::-1], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )


@asynccontextmanager
async def fake_embeddings() -> AsyncIterator[FakeEmbeddings]:
    """Run a server."""
    server = FakeEmbeddings()
    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.router.add_post("/v1/embeddings", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.base_url = f"http://{host}:{port}/v1"
        yield server
    finally:
        if server.held is not None:
            server.held.set()
        await runner.cleanup()
