"""One life of a server's session: opened, attended to while others make calls on it, and left."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from adapters.tool_servers.accounts import Bearer
from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.redaction import Redact
from adapters.tool_servers.replies import Faults
from adapters.tool_servers.waiting import WaitingCalls

if TYPE_CHECKING:
    from adapters.tool_servers.connection import Connection


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things may take, in seconds."""

    start: float = 60.0
    """From starting a server until its tools are known (`npx` may have to download it first)."""
    ping_every: float = 15.0
    """Between health checks of an idle server."""
    ping: float = 5.0
    """Until a health check counts as failed."""
    fresh: float = 3.0
    """That a session without a sign of life is trusted with a call that must not be made twice; after that it is pinged
    first. Below the 5 s after which common HTTP servers (uvicorn, Node) close an idle connection."""
    relist: float = 30.0
    """Until listing changed tools is given up; the old ones stay."""
    relist_pause: float = 1.0
    """Between listing changed tools and listing them again; doubles up to `longest_pause` while they go on changing."""
    first_pause: float = 0.5
    """Before the first restart; doubles with every failure."""
    longest_pause: float = 60.0
    stable_after: float = 30.0
    """A server that ran this long and ended is a first failure again."""
    patience: float = 10.0
    """How long a call waits for a server that is being started."""
    close: float = 4.5
    """Until a server that does not end is left to itself."""
    idle: float = 300.0
    """Until a session that is one person's is closed."""
    parked: float = 1_800.0
    """That a call in the middle waits for its requester."""


@dataclass(frozen=True, slots=True)
class Common:
    """What all servers have in common."""

    result_limit: int
    timings: Timings
    redact: Redact
    waiting: WaitingCalls


@asynccontextmanager
async def connected(
    config: ServerConfig, common: Common, relist: asyncio.Event, bearer: Bearer | None = None
) -> AsyncIterator[tuple[Connection, list[Any]]]:
    """A session and the tools that it listed. Raises whatever a transport or a server does.

    `relist` is set when the server says that it has other tools. To be left by the task that entered it.
    """
    await asyncio.to_thread(_import_sdk)
    from adapters.tool_servers.connection import Connection  # noqa: PLC0415 - as `_import_sdk` says
    from adapters.tool_servers.incoming import Signals  # noqa: PLC0415
    from adapters.tool_servers.transports import open_session  # noqa: PLC0415

    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    owner = bearer.person if bearer else None
    connection: Connection | None = None
    faults: Faults = {}

    def asked(question: Any) -> None:
        if connection is not None:
            connection.ask(question)

    signals = Signals(
        lost=partial(settle, lost),
        tools_changed=relist.set,
        asked=asked,
        completed=lambda elicitation_id: common.waiting.link_was_used(config.name, owner, elicitation_id),
    )
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(common.timings.start):
                limit, redact = common.result_limit, common.redact
                patience = common.timings.parked
                opened = open_session(config, signals, faults, patience=patience, bearer=bearer, redact=redact)
                session = await stack.enter_async_context(opened)
                connection = Connection(config, session, lost, faults, bearer, result_limit=limit, redact=redact)
                await connection.initialize()
                listed = await connection.list_tools()
            yield connection, listed
            await connection.drain()
    finally:
        # whoever still waits for an answer must hear that none will come
        settle(lost, "ended")


async def attend(
    connection: Connection,
    timings: Timings,
    relist: asyncio.Event,
    list_again: Callable[[], Awaitable[None]],
    *,
    idle: float | None,
) -> str:
    """Look after a session until it ends; returns why. `idle`: seconds without a call after which it is closed; with
    `None` it is kept, and asked for its health."""
    listings = Listings(timings)
    while True:
        pause = timings.ping_every if idle is None else max(connection.last_used + idle - time.monotonic(), 0.01)
        too_early = listings.too_early()
        limit = None if idle is not None and connection.busy else pause
        if too_early:  # a change that is announced now is looked at later
            await _something_happened(connection, asyncio.Event(), min(too_early, limit or too_early))
        else:
            await _something_happened(connection, relist, limit)
        if connection.lost.done():
            return connection.lost.result()
        if connection.stirred.is_set():
            connection.stirred.clear()
        elif relist.is_set() and not listings.too_early():
            relist.clear()
            await list_again()
            listings.listed()
        elif idle is None and not connection.busy and not too_early:
            alive = await connection.is_alive(timings.ping)
            # a call that began meanwhile may keep the server from answering: it has a timeout of its own
            if not alive and not connection.busy:
                return "does not answer"
        if not connection.busy and connection.retired:
            return "had been replaced"
        if not connection.busy and idle is not None and time.monotonic() - connection.last_used >= idle:
            return "was not used any more"


class Listings:
    """How soon changed tools are listed again: at once, unless that has just been done."""

    def __init__(self, timings: Timings, now: Callable[[], float] = time.monotonic) -> None:
        self._timings = timings
        self._now = now
        self._pause = 0.0
        self._next = now()

    def too_early(self) -> float:
        """Seconds that are to be waited; 0: none."""
        return max(self._next - self._now(), 0.0)

    def listed(self) -> None:
        """They have been listed."""
        calm = self._now() - self._next > self._timings.longest_pause
        first = self._timings.relist_pause
        self._pause = first if calm or not self._pause else min(2 * self._pause, self._timings.longest_pause)
        self._next = self._now() + self._pause


async def _something_happened(connection: Connection, relist: asyncio.Event, timeout: float | None) -> None:  # noqa: ASYNC109
    events = [asyncio.create_task(event.wait()) for event in (relist, connection.stirred)]
    waiting: set[asyncio.Future[Any]] = {connection.lost, *events}
    try:
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for event in events:
            event.cancel()


def settle(lost: asyncio.Future[str], reason: str) -> None:
    """Say why there will be no more answers; the first reason counts."""
    if not lost.done():
        lost.set_result(reason)


def import_schemas() -> None:
    """Import what checks schemas. It takes a moment, so it happens in a thread, and only when there is a server."""
    importlib.import_module("adapters.tool_servers.arguments")


def _import_sdk() -> None:
    """Import what needs the MCP SDK. It takes seconds, so it happens in a thread, and only when there is a server."""
    import_schemas()
    importlib.import_module("adapters.tool_servers.connection")
    importlib.import_module("adapters.tool_servers.talks")
    importlib.import_module("adapters.tool_servers.transports")
