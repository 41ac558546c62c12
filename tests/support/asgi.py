"""An ASGI application on loopback that ends at once: uvicorn alone looks ten times a second whether it is to end, and
waits as long for its connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn


class _PromptServer(uvicorn.Server):
    def __init__(self, app: Any) -> None:
        super().__init__(uvicorn.Config(app, log_level="critical", ws="none"))
        self.running, self.ending = asyncio.Event(), asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for pytest

    async def main_loop(self) -> None:
        self.running.set()
        await self.ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for task in self.server_state.tasks:
            task.cancel()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        await self.lifespan.shutdown()


@asynccontextmanager
async def served_asgi(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    """Serve it at a listening socket until the block ends, which closes it and cancels what is still being answered."""
    server = _PromptServer(app)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    started = asyncio.create_task(server.running.wait())
    await asyncio.wait((serving, started), return_when=asyncio.FIRST_COMPLETED)
    assert started.done(), "the server did not start"
    try:
        yield
    finally:
        server.ending.set()
        await serving
        listening.close()
