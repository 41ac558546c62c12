"""What stands between a process and its PostgreSQL: it can let through nothing, or what is sent one way only, without
closing anything, and lead to another server from then on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

TO_SERVER, TO_CLIENT = "to server", "to client"
BOTH_WAYS = frozenset({TO_SERVER, TO_CLIENT})


def _ways() -> dict[str, asyncio.Event]:
    return {way: asyncio.Event() for way in BOTH_WAYS}


class Proxy:
    """Listens on loopback, and leads to the socket of a server."""

    def __init__(self, address: str) -> None:
        self._address = sa.make_url(address)
        self._flowing = _ways()
        self._cut_off: list[dict[str, asyncio.Event]] = []
        self._loses = False
        self._transports: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.target = address
        self.let_through()

    @property
    def address(self) -> str:
        """Of the database, by way of the proxy."""
        given = self._address.set(host="127.0.0.1", port=self.port, query={})
        return given.render_as_string(hide_password=False)

    def hold_back(self, *ways: str, lose: bool = False) -> None:
        """From now on nothing arrives that is sent these ways. It arrives later, as what was lost on its way is sent
        again by the system; or never, which breaks the connections (`lose`)."""
        self._loses = lose
        for way in ways:
            self._flowing[way].clear()

    def cut_off(self) -> None:
        """From now on nothing arrives by the connections that there are. New ones lead to the server."""
        for event in self._flowing.values():
            event.clear()
        self._cut_off.append(self._flowing)
        self._flowing = _ways()
        for event in self._flowing.values():
            event.set()

    def let_through(self) -> None:
        """Everything arrives again."""
        for event in (event for ways in (self._flowing, *self._cut_off) for event in ways.values()):
            event.set()
        self._loses = False

    def close_all(self) -> None:
        """Breaks all connections."""
        for transport in self._transports:
            transport.transport.abort()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection."""
        folder = Path(str(sa.make_url(self.target).query["host"]))
        try:
            there, server = await asyncio.open_unix_connection(str(folder / ".s.PGSQL.5432"))
        except OSError:
            writer.transport.abort()
            return
        self._transports |= {writer, server}
        flowing = self._flowing
        passing = [
            asyncio.create_task(self._pass(reader, server, flowing[TO_SERVER])),
            asyncio.create_task(self._pass(there, writer, flowing[TO_CLIENT])),
        ]
        self._tasks.update(passing)
        try:
            await asyncio.wait(passing)
        finally:
            self._transports -= {writer, server}
            self._tasks.difference_update(passing)
            for task in passing:
                task.cancel()
            for each in (writer, server):
                each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if not flowing.is_set():
                    if self._loses:
                        continue
                    await flowing.wait()
                writer.write(data)
                await writer.drain()
            await flowing.wait()  # that it has ended is not known on the other side either
            writer.write_eof()


@asynccontextmanager
async def proxied(address: str) -> AsyncIterator[Proxy]:
    """A proxy to the database at this address of a server that listens on a socket."""
    proxy = Proxy(address)
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.let_through()
        proxy.close_all()
