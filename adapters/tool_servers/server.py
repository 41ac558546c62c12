"""Keeps one configured server running: one task starts it, attends to it, and starts it again when it ends."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from adapters.tool_servers.config import ServerConfig, Stdio
from adapters.tool_servers.life import Common, Timings, attend, connected, settle
from adapters.tool_servers.listing import read_listing
from adapters.tool_servers.redaction import Redact
from adapters.tool_servers.replies import SessionLost
from graph.models.arguments import trouble_with
from graph.ports import Caller, Failed, NotSent, Progress, Ready, ToolOutcome
from policies.model import Tool

if TYPE_CHECKING:
    from adapters.tool_servers.connection import Connection

log = structlog.get_logger(__name__)


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

    def __init__(self, config: ServerConfig, common: Common) -> None:
        self.config = config
        self.state = State.STARTING
        self.reason = "is being started"
        """Ends a sentence that begins with the server's name; empty while it is up."""
        self.tools: tuple[Tool, ...] = ()
        """As last listed; they can be called while the state is `up`."""
        self.withheld: tuple[str, ...] = ()
        """Sentences for operators: what was not taken of the last list, and why."""
        self._common = common
        self._timings = common.timings
        self._connection: Connection | None = None
        self._decided = asyncio.Event()
        self._failures = 0
        self._closing = False
        self._asks = False
        """Whether it has ever put a question."""
        self._turn = asyncio.Lock()
        self._lives: set[asyncio.Task[tuple[bool, str]]] = set()
        self._ends: set[asyncio.Future[str]] = set()
        self._handed_over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep the server running; returns at once."""
        self._task = asyncio.create_task(self._keep_running(), name=f"tool-server-{self.config.name}")

    async def settled(self) -> None:
        """Wait until it is up, or its start has failed."""
        await self._decided.wait()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that can be called now."""
        return self.tools if self.state is State.UP else ()

    def find(self, full_name: str) -> Tool | None:
        """The tool that the model calls so, also while the server is being started again."""
        if self.state is State.MISCONFIGURED:
            return None
        return next((tool for tool in self.tools if tool.full_name == full_name), None)

    async def forget(self, person: str, connection: str) -> None:
        """Nothing here is one person's."""

    async def close(self) -> None:
        """End the server. Calls in flight break off."""
        self._closing = True
        if self._task is None:
            return
        if self._connection is None:
            self._task.cancel()
        for lost in self._ends:
            settle(lost, "is shut down with us")
        running: set[asyncio.Task[Any]] = {self._task, *self._lives}
        _, running = await asyncio.wait(running, timeout=self._timings.close)
        if running:
            log.error("tool_server_does_not_end", server=self.config.name)
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=0.3)
        self._to(State.CLOSED, "is shut down")

    @asynccontextmanager
    async def prepared(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> AsyncIterator[Ready | Failed]:
        """A call, once it is certain that the server is there and the tool still what it was."""
        async with AsyncExitStack() as stack:
            if self._asks and self._is_a_program:
                # Nothing tells to which call of a program a question belongs, so one that asks serves one after the
                # other.
                await stack.enter_async_context(self._turn)
            connection = await self._connection_for(tool, arguments)
            if isinstance(connection, Failed):
                yield connection
            else:
                yield Ready(partial(self._send, connection, tool, arguments, caller))

    @property
    def _is_a_program(self) -> bool:
        return isinstance(self.config.transport, Stdio)

    async def _connection_for(self, tool: Tool, arguments: dict[str, Any]) -> Connection | Failed:
        """A session over which the call can leave at once."""
        # Twice at most: a session that turns out to be dead is replaced once.
        for _ in range(2):
            connection = await self._ready()
            if connection and connection.lost.done():
                self._lose(connection, connection.lost.result())  # whoever attends to it has not seen it yet
                connection = await self._ready()
            if connection and (connection.is_in_doubt or (self._asks and connection.abandoned)):
                self._hand_over(connection)
                connection = await self._ready()
            if connection is None:
                break
            if problem := not_to_be_sent(tool, arguments, self.tools, self._common.redact):
                return problem
            if await is_trusted_with(connection, tool, self._timings):
                return connection
            self._replace(connection, "does not answer")
        return Failed(f"{self.config.name} is unavailable: it {self.reason or 'does not answer'}. Nothing was called.")

    async def _send(
        self, connection: Connection, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent:
        from adapters.tool_servers.talks import Talk  # noqa: PLC0415 - it brings the SDK

        if connection.lost.done() or connection.retired:
            return NotSent("ended just before the call")
        if problem := still_offered(tool, self.tools):
            return problem
        talk = Talk(connection, tool, arguments, caller, self._common.redact)
        outcome = await self._common.waiting.outcome_of(talk, progress)
        if talk.has_asked:
            self._asks = True
        if talk.put is not None and self._is_a_program:
            self._hand_over(connection)
        if isinstance(outcome, NotSent | SessionLost):
            self._replace(connection, outcome.reason)
        if isinstance(outcome, SessionLost):
            return await self._sent_again(outcome, tool, arguments, caller, progress)
        return outcome

    async def _sent_again(
        self, lost: SessionLost, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome:
        """What comes of a call that a server answered as if it did not know the session: once more over another one, if
        the tool may be repeated."""
        from adapters.tool_servers.talks import Talk  # noqa: PLC0415

        connection = await self._connection_for(tool, arguments) if tool.repeatable else None
        if connection is None or isinstance(connection, Failed):
            return lost.otherwise
        talk = Talk(connection, tool, arguments, caller, self._common.redact)
        outcome = await self._common.waiting.outcome_of(talk, progress)
        return lost.otherwise if isinstance(outcome, NotSent | SessionLost) else outcome

    def _replace(self, connection: Connection, reason: str) -> None:
        """Another session for what follows; calls that are open over this one may still be answered."""
        if connection.busy:
            self._hand_over(connection)
        else:
            self._lose(connection, reason)

    async def _ready(self) -> Connection | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timings.patience):
                await self._decided.wait()
        return self._connection

    def _hand_over(self, connection: Connection) -> None:
        """Leave a session to the calls that are open in it, and start another one for all that follows."""
        connection.retire()
        if self._connection is connection:
            self._connection = None
            self._to(State.STARTING, "is being started again")
            self._handed_over.set()

    async def _keep_running(self) -> None:
        while not self._closing:
            began = time.monotonic()
            life = asyncio.create_task(self._one_life(), name=f"tool-server-life-{self.config.name}")
            self._lives.add(life)
            life.add_done_callback(self._lives.discard)
            if await self._was_handed_over(life):
                continue
            was_up, reason = life.result()
            if self._closing:
                break
            stable = was_up and time.monotonic() - began >= self._timings.stable_after
            self._failures = 1 if stable else self._failures + 1
            # The first restart is worth waiting for; a server that goes on failing is reported as down.
            self._to(State.STARTING if was_up and self._failures == 1 else State.DOWN, reason)
            pause = pause_after(self._failures, self._timings, random.random())  # noqa: S311 - nothing secret
            log.warning("tool_server_down", server=self.config.name, reason=reason, again_in=round(pause, 2))
            await asyncio.sleep(pause)

    async def _was_handed_over(self, life: asyncio.Task[tuple[bool, str]]) -> bool:
        """Wait until a life ends (false), or is left to a call that waits in it."""
        self._handed_over.clear()
        handed_over = asyncio.create_task(self._handed_over.wait())
        try:
            await asyncio.wait({life, handed_over}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            life.cancel()
            raise
        finally:
            handed_over.cancel()
        return not life.done()

    async def _one_life(self) -> tuple[bool, str]:
        """Start the server and attend to it until it ends; whether it had been up, and why it ended."""
        relist = asyncio.Event()
        lost: asyncio.Future[str] | None = None
        reason = ""
        try:
            async with connected(self.config, self._common, relist) as (connection, listed):
                lost = connection.lost
                self._ends.add(lost)
                await self._offer(connection, listed)
                again = partial(self._list_again, connection)
                reason = await attend(connection, self._timings, relist, again, idle=None)
                self._lose(connection, reason)
        except Exception as error:  # noqa: BLE001 - whatever a transport or a server does, it is started again
            from adapters.tool_servers.reasons import first_cause, reason_of  # noqa: PLC0415 - it brings the SDK

            reason = reason or reason_of(error)
            log.debug("tool_server_ended", server=self.config.name, cause=type(first_cause(error)).__name__)
        finally:
            if lost is not None:
                self._ends.discard(lost)
                self._forget_connection(lost)
        return lost is not None, reason

    def _forget_connection(self, lost: asyncio.Future[str]) -> None:
        if self._connection is not None and self._connection.lost is lost:
            self._lose(self._connection, "ended")

    async def _list_again(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._timings.relist):
                listed = await connection.list_tools()
        except Exception as error:  # noqa: BLE001 - of the SDK or the server; the tools known so far stay
            log.warning("tool_server_not_listed_again", server=self.config.name, error=type(error).__name__)
        else:
            if not connection.retired:
                await self._offer(connection, listed)

    async def _offer(self, connection: Connection, listed: list[Any]) -> None:
        # In a thread: measuring the schemas of many tools takes a while, and nobody else should wait for it.
        listing = await asyncio.to_thread(read_listing, self.config, listed)
        if connection.lost.done():
            return
        self.withheld = listing.skipped
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
        settle(connection.lost, reason)
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


async def is_trusted_with(connection: Connection, tool: Tool, timings: Timings) -> bool:
    """Whether a call may go over the session. Of a tool that must not be called twice the outcome would be unknown if
    the server turned out to be another one by now, so a session that has been idle is asked first; a busy server is
    left in peace."""
    if tool.repeatable or connection.busy or connection.is_fresh(timings.fresh):
        return True
    return await connection.is_alive(timings.ping)


def not_to_be_sent(tool: Tool, arguments: dict[str, Any], tools: Iterable[Tool], redact: Redact) -> Failed | None:
    """Why a call may not be made, by what the server lists; `None`: it may."""
    from adapters.tool_servers.arguments import complaint_about  # noqa: PLC0415 - it brings jsonschema, see `life`

    if trouble := trouble_with(arguments):
        return Failed(f"The arguments of {tool.full_name} held {trouble}. Nothing was called.")
    if problem := still_offered(tool, tools):
        return problem
    if complaint := complaint_about(arguments, tool.input_schema, redact):
        return Failed(f"The arguments of {tool.full_name} are not right: {complaint}. Nothing was called.")
    return None


def still_offered(tool: Tool, tools: Iterable[Tool]) -> Failed | None:
    """Why a call may not be made: the tool is gone, or is another one now; `None`: it may."""
    offered = next((each for each in tools if each.name == tool.name), None)
    if offered is None:
        return Failed(f"{tool.server} no longer has the tool {tool.name}. Nothing was called.")
    same = (offered.schema_hash, offered.fingerprint) == (tool.schema_hash, tool.fingerprint)
    # Where they are trusted, it was they that were judged: another person's tool of that name may only read.
    if not same or (tool.annotations_trusted and offered.annotations != tool.annotations):
        return Failed(f"{tool.full_name} has changed in the meantime. Nothing was called.")
    return None
