"""Keeps one configured server running: one task starts it, attends to it, and starts it again when it ends."""

from __future__ import annotations

import asyncio
import importlib
import random
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.redaction import Redact
from adapters.tool_servers.replies import NotSent
from graph.ports import Failed, Progress, ToolOutcome
from policies.model import Tool

if TYPE_CHECKING:
    from adapters.tool_servers.connection import Connection
    from adapters.tool_servers.listing import Listing

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things may take, in seconds."""

    start: float = 60.0
    """From starting a server until its tools are known (`npx` may have to download it first)."""
    ping_every: float = 15.0
    """Between health checks of an idle server."""
    ping: float = 5.0
    """Until a health check counts as failed."""
    relist: float = 30.0
    """Until listing changed tools is given up; the old ones stay."""
    first_pause: float = 0.5
    """Before the first restart; doubles with every failure."""
    longest_pause: float = 60.0
    stable_after: float = 30.0
    """A server that ran this long and ended is a first failure again."""
    patience: float = 10.0
    """How long a call waits for a server that is being started."""
    close: float = 4.5
    """Until a server that does not end is left to itself."""


class State(StrEnum):
    """How a server is."""

    STARTING = "starting"
    UP = "up"
    DOWN = "down"
    """It could not be started, or ends again and again; it is tried again and again."""
    MISCONFIGURED = "misconfigured"
    """It runs, but `mcp.json` does not fit it; its tools are withheld."""
    CLOSED = "closed"


def pause_after(failures: int, timings: Timings, jitter: float) -> float:
    """Seconds to wait before the next start; `jitter` (0 to 1) spreads the upper half of the pause."""
    pause = min(timings.first_pause * 2.0 ** min(failures - 1, 30), timings.longest_pause)
    return pause * (0.5 + jitter / 2)


class Server:
    """One server and its tools. `start` and `close` are called once; calls may come from any task of the loop."""

    def __init__(self, config: ServerConfig, *, result_limit: int, timings: Timings, redact: Redact) -> None:
        self.config = config
        self.state = State.STARTING
        self.reason = "is being started"
        """Ends a sentence that begins with the server's name; empty while it is up."""
        self.tools: tuple[Tool, ...] = ()
        """As last listed; they can be called while the state is `up`."""
        self._result_limit = result_limit
        self._timings = timings
        self._redact = redact
        self._connection: Connection | None = None
        self._relist = asyncio.Event()
        self._decided = asyncio.Event()
        self._failures = 0
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep the server running; returns at once."""
        self._task = asyncio.create_task(self._keep_running(), name=f"tool-server-{self.config.name}")

    async def settled(self) -> None:
        """Wait until it is up, or its start has failed."""
        await self._decided.wait()

    async def close(self) -> None:
        """End the server. Calls in flight break off."""
        self._closing = True
        if self._task is None:
            return
        if self._connection is not None:
            self._lose(self._connection, "is shut down with us")
        else:
            self._task.cancel()
        _, running = await asyncio.wait({self._task}, timeout=self._timings.close)
        if running:
            log.error("tool_server_does_not_end", server=self.config.name)
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=0.3)
        self._to(State.CLOSED, "is shut down")

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> ToolOutcome:
        """Call a tool, once it is certain that the server is there and the tool still what it was."""
        reason = self.reason
        # Twice at most: a call that never reached the server goes over the next connection.
        for _ in range(2):
            connection = await self._ready()
            if connection is None:
                reason = self.reason
                break
            offered = next((each for each in self.tools if each.name == tool.name), None)
            if offered is None:
                return Failed(f"{self.config.name} no longer has the tool {tool.name}. Nothing was called.")
            if (offered.schema_hash, offered.fingerprint) != (tool.schema_hash, tool.fingerprint):
                return Failed(f"{tool.full_name} has changed in the meantime. Nothing was called.")
            outcome = await connection.call(offered, arguments, progress)
            if not isinstance(outcome, NotSent):
                return outcome
            reason = outcome.reason
            self._lose(connection, reason)
        return Failed(f"{self.config.name} is unavailable: it {reason}. Nothing was called.")

    async def _ready(self) -> Connection | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timings.patience):
                await self._decided.wait()
        return self._connection

    async def _keep_running(self) -> None:
        while not self._closing:
            began = time.monotonic()
            was_up, reason = await self._one_life()
            if self._closing:
                break
            stable = was_up and time.monotonic() - began >= self._timings.stable_after
            self._failures = 1 if stable else self._failures + 1
            # The first restart is worth waiting for; a server that goes on failing is reported as down.
            self._to(State.STARTING if was_up and self._failures == 1 else State.DOWN, reason)
            pause = pause_after(self._failures, self._timings, random.random())  # noqa: S311 - nothing secret
            log.warning("tool_server_down", server=self.config.name, reason=reason, again_in=round(pause, 2))
            await asyncio.sleep(pause)

    async def _one_life(self) -> tuple[bool, str]:
        """Start the server and attend to it until it ends; whether it had been up, and why it ended."""
        await asyncio.to_thread(_import_sdk)
        from adapters.tool_servers.connection import Connection  # noqa: PLC0415 - as `_import_sdk` says
        from adapters.tool_servers.reasons import first_cause, reason_of  # noqa: PLC0415
        from adapters.tool_servers.transports import Signals, open_session  # noqa: PLC0415

        self._relist.clear()
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        connection: Connection | None = None
        was_up = False
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._timings.start):
                    signals = Signals(lost=partial(_settle, lost), tools_changed=self._relist.set)
                    session = await stack.enter_async_context(open_session(self.config, signals, redact=self._redact))
                    connection = Connection(self.config, session, lost, self._result_limit, self._redact)
                    await connection.initialize()
                    self._offer(connection, await connection.list_tools())
                was_up = True
                reason = await self._attend(connection)
                self._lose(connection, reason)
                await connection.drain()
        except Exception as error:  # noqa: BLE001 - whatever a transport or a server does, it is started again
            reason = lost.result() if was_up and lost.done() else reason_of(error)
            log.debug("tool_server_ended", server=self.config.name, cause=type(first_cause(error)).__name__)
        finally:
            # whoever still waits for an answer must hear that none will come
            if connection is not None:
                self._lose(connection, "ended")
        return was_up, reason

    async def _attend(self, connection: Connection) -> str:
        """Check its health and list its tools anew as needed; returns why the connection was lost."""
        while True:
            changed = asyncio.create_task(self._relist.wait())
            waiting: set[asyncio.Future[Any]] = {connection.lost, changed}
            try:
                await asyncio.wait(waiting, timeout=self._timings.ping_every, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            if connection.lost.done():
                return connection.lost.result()
            if self._relist.is_set():
                await self._list_again(connection)
            elif not connection.busy:
                alive = await connection.is_alive(self._timings.ping)
                # a call that began meanwhile may keep the server from answering: it has a timeout of its own
                if not alive and not connection.busy:
                    return "does not answer"

    async def _list_again(self, connection: Connection) -> None:
        self._relist.clear()
        try:
            async with asyncio.timeout(self._timings.relist):
                listing = await connection.list_tools()
        except Exception as error:  # noqa: BLE001 - of the SDK or the server; the tools known so far stay
            log.warning("tool_server_not_listed_again", server=self.config.name, error=type(error).__name__)
        else:
            self._offer(connection, listing)

    def _offer(self, connection: Connection, listing: Listing) -> None:
        for sentence in listing.skipped:
            log.warning("tool_server_tool_skipped", server=self.config.name, reason=sentence)
        self.tools = listing.tools
        self._connection = None if listing.problem else connection
        if listing.problem:
            log.error("tool_server_misconfigured", server=self.config.name, reason=listing.problem)
            self._to(State.MISCONFIGURED, f"cannot be used: {listing.problem}")
        else:
            log.info("tool_server_up", server=self.config.name, tools=len(self.tools))
            self._to(State.UP, "")

    def _lose(self, connection: Connection, reason: str) -> None:
        _settle(connection.lost, reason)
        if self._connection is connection:
            self._connection = None
            self._to(State.STARTING, "is being started again")

    def _to(self, state: State, reason: str) -> None:
        self.state = state
        self.reason = reason
        if state is State.STARTING:
            self._decided.clear()
        else:
            self._decided.set()


def _settle(lost: asyncio.Future[str], reason: str) -> None:
    if not lost.done():
        lost.set_result(reason)


def _import_sdk() -> None:
    """Import what needs the MCP SDK. It takes seconds, so it happens in a thread, and only when there is a server."""
    importlib.import_module("adapters.tool_servers.connection")
    importlib.import_module("adapters.tool_servers.transports")
