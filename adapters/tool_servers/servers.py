"""All configured tool servers together (`graph.ports.Tools`), and each that everybody shares: one task starts it, looks
after it, and starts it again when it ends."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from adapters.tool_servers.config import ServerConfig, ToolServersConfig
from adapters.tool_servers.elicitation import (
    CallingRun,
    Completed,
    InteractiveCall,
    OnlyProcess,
    WaitingCalls,
    when_made_anew,
)
from adapters.tool_servers.outcomes import LARGEST_RESULT, SessionLost
from adapters.tool_servers.personal import PersonalServer
from adapters.tool_servers.sessions import (
    BaseServer,
    CommonParts,
    ServerState,
    Timings,
    attend,
    complaint_about,
    connected,
    first_cause,
    names_of,
    reason_of,
    settle,
    still_offered,
)
from adapters.tool_servers.text import MaskText, unchanged
from bot.events import happens
from graph.files import NO_FILES, ThreadFiles
from graph.ports import Caller, Failed, NotSent, Prepared, Progress, ToolOutcome, Unavailable
from policies.model import Tool

if TYPE_CHECKING:
    from adapters.tool_servers.connection import Connection
    from bot.accounts.tokens import CatalogueStore, TokenStore


log = structlog.get_logger(__name__)
SMALLEST_RESULT_LIMIT = 256
"""Bytes: less would not hold the sentence that says how much was left out."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one server is, for the health check."""

    server: str
    state: str
    """`starting`, `up`, `down`, `misconfigured`, `closed` or `unsupported`."""
    tools: int
    """How many of its tools can be called now."""
    reason: str
    """Ends a sentence that begins with the server's name; empty while it is up. Safe to show."""
    withheld: tuple[str, ...] = ()
    """Sentences: which of its tools are not offered and why, and what `mcp.json` names and it does not have."""


class ToolServers:
    """Runs the servers of `mcp.json` and calls their tools.

    `result_limit`: bytes of a result that the model gets, at least 256 (`ValueError`). `mask`: masks secrets in all
    that tools say, before anybody sees it. `tokens`: people's accounts; without them a server that needs these cannot
    be used. `catalogues`: where the tools of such servers are remembered. `completed`: told the id of a call whose
    link was used, as its server says. `calling`: the runs in which calls are made, where several processes could.
    `files`: what people hand over. To be started and closed by the loop that calls it.
    """

    def __init__(
        self,
        config: ToolServersConfig,
        *,
        result_limit: int = LARGEST_RESULT,
        timings: Timings | None = None,
        mask: MaskText = unchanged,
        tokens: TokenStore | None = None,
        catalogues: CatalogueStore | None = None,
        completed: Completed | None = None,
        calling: CallingRun | None = None,
        files: ThreadFiles = NO_FILES,
    ) -> None:
        if result_limit < SMALLEST_RESULT_LIMIT:
            raise ValueError(f"result_limit must be at least {SMALLEST_RESULT_LIMIT} bytes, not {result_limit}")
        self._names = tuple(server.name for server in config.servers)
        self._categories = tuple(dict.fromkeys(server.category for server in config.servers))
        timings = timings or Timings()
        calling = calling or OnlyProcess()
        self._waiting = WaitingCalls(timings.parked, completed, calling)
        self._hear_of_changes: list[Callable[[str], None]] = []
        self._mask = mask
        self._files = files
        common = CommonParts(result_limit, timings, mask, self._waiting, calling, self._changed)
        made = {server.name: _server(server, common, tokens, catalogues) for server in config.servers}
        self._servers = {name: server for name, server in made.items() if server is not None}

    def when_tools_change(self, tell: Callable[[str], None]) -> None:
        """Have somebody told the name of a server whose tools are not what they were, in this process: it lists others,
        or they cannot be called any more, or can again."""
        self._hear_of_changes.append(tell)

    def _changed(self, server: str) -> None:
        for tell in self._hear_of_changes:
            tell(server)

    async def start(self) -> None:
        """Begin to connect to every server; returns at once."""
        for server in self._servers.values():
            server.start()

    async def settled(self, timeout: float) -> bool:  # noqa: ASYNC109 - a question with a limit, not a deadline
        """Wait until every server is up or has failed to start, `timeout` seconds at most; whether they have."""
        waiting = [asyncio.create_task(server.settled()) for server in self._servers.values()]
        if not waiting:
            return True
        try:
            _, unsettled = await asyncio.wait(waiting, timeout=timeout)
        finally:
            for task in waiting:
                task.cancel()
        return not unsettled

    async def close(self) -> None:
        """End every server, within 5 seconds; calls in flight break off."""
        await self._waiting.close()
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def status(self) -> list[ServerStatus]:
        """How every configured server is, in the order of the file."""
        return [self._status_of(name) for name in self._names]

    def retry(self, name: str) -> bool:
        """Connect to a server anew, now: one that is down without waiting longer, one that is up over another session.
        Calls in flight go on. Returns at once; false: there is none of this name."""
        server = self._servers.get(name)
        if server is not None:
            server.retry()
        return server is not None or name in self._names

    def categories(self) -> Sequence[str]:
        """What the configured servers are for, in the words of the file."""
        return self._categories

    async def available(self) -> Sequence[Tool]:
        """The tools that can be called now: in the order of the file, each server's by name, but for those that are for
        cards alone. Raises what the records raise."""
        return [
            tool
            for server in self._servers.values()
            for tool in await server.offered()
            if tool.name not in server.only_for_cards
        ]

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers whose tools cannot be called now."""
        offering = map(self._offering, self._names)
        return [Unavailable(each.server, each.reason) for each in offering if each.state != ServerState.UP]

    async def find(self, full_name: str) -> Tool | None:
        """The tool of that name, also while its server is being started again, and where only another process has
        seen it; `None`: there is none. Raises what the records raise."""
        for server in self._servers.values():
            if tool := await server.find(full_name):
                return tool
        return None

    def declared(self, tool: Tool) -> Mapping[str, Any] | None:
        """The tool as its server lists it, for other agents: with its output schema, icons, `_meta` and all it says in
        `annotations`, without secrets. `None`: no server lists it here (any more), as its own tool to sign in."""
        server = self._servers.get(tool.server)
        return server.declared(tool) if server else None

    def complaint_about(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """What of the arguments does not fit the tool's schema, without secrets; `None`: nothing. Takes a bounded
        number of steps."""
        return complaint_about(arguments, tool.input_schema, self._mask)

    @asynccontextmanager
    async def prepared(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> AsyncIterator[Prepared]:
        """All that a call needs before it is sent. Never raises, cancellation aside."""
        server = self._servers.get(tool.server)
        if server is None:
            yield Failed(f"There is no tool server {tool.server} to call. Nothing was called.")
            return
        with structlog.contextvars.bound_contextvars(server=tool.server, tool=tool.name, call_id=caller.call_id):
            if known := self._waiting.prepared(tool, arguments, caller) or when_made_anew(tool, caller):
                yield known
                return
            if tool.file_argument and (named := arguments.get(tool.file_argument)) is not None:
                content = await self._files.of_thread(caller.thread_id, str(named))
                if content is None:
                    yield Failed("There is no such file in this conversation. Nothing was called.")
                    return
                handed = {"name": content.name, "mediaType": content.media_type, "text": content.text}
                caller = replace(caller, files={str(named): handed})
            async with server.prepared(tool, arguments, caller) as prepared:
                yield prepared

    async def give_up(self, call_id: str) -> None:
        """A call that waits for an answer of a person will not go on: what is open of it is ended. Raises nothing."""
        self._waiting.give_up(call_id)

    def give_up_all(self) -> None:
        """The same of all calls that wait for an answer here, as the end of this process would. Returns at once."""
        self._waiting.give_up_all()

    async def forget(self, person: str, connection: str) -> None:
        """Ends a person's sessions with the old account, when they have another one now, or none."""
        await asyncio.gather(*(server.forget(person, connection) for server in self._servers.values()))

    async def forget_old(self, person: str, connection: str) -> None:
        """The same, when another process has said so; sessions with the new account stay."""
        await asyncio.gather(*(server.forget_old(person, connection) for server in self._servers.values()))

    async def check_accounts(self) -> None:
        """Likewise for everybody, when it is not known who has another account now, or none."""
        await asyncio.gather(*(server.check_accounts() for server in self._servers.values()))

    def _status_of(self, name: str) -> ServerStatus:
        server = self._servers.get(name)
        if server is not None and server.state is ServerState.UP and server.fault:
            return ServerStatus(name, ServerState.DOWN, 0, server.fault, server.withheld)
        return self._offering(name)

    def _offering(self, name: str) -> ServerStatus:
        """How a server is as for what it offers, whether or not calls get there."""
        server = self._servers.get(name)
        if server is None:
            reason = "needs every person to sign in, and there are no accounts here"
            return ServerStatus(name, "unsupported", 0, reason)
        usable = len(server.tools) if server.state is ServerState.UP else 0
        return ServerStatus(name, server.state, usable, server.reason, server.withheld)


def _server(
    config: ServerConfig, common: CommonParts, tokens: TokenStore | None, catalogues: CatalogueStore | None
) -> SharedServer | PersonalServer | None:
    """`None`: it needs accounts, and there are none."""
    if config.account is None:
        return SharedServer(config, common)
    # A session that everybody shares must not carry one person's account.
    return None if tokens is None else PersonalServer(config, config.account, common, tokens, catalogues)


LOOK_UP_SECONDS = 15.0
"""Seconds within which a server has to list its tools."""


async def look_up(name: str, config: ToolServersConfig) -> Tool | None:
    """The tool called `{server}__{tool}`, as its server describes it now; `None` when there is none of that name, or
    its server does not start. Only that server is started, and ended again."""
    # A server's own name may hold the separator too, so there can be several.
    asked = tuple(server for server in config.servers if name.startswith(f"{server.name}__"))
    tools = ToolServers(ToolServersConfig(asked))
    await tools.start()
    try:
        await tools.settled(LOOK_UP_SECONDS)
        return await tools.find(name)
    finally:
        await tools.close()


def pause_after(failures: int, timings: Timings, jitter: float) -> float:
    """Seconds to wait before the next start; `jitter` (0 to 1) spreads the upper half of the pause."""
    pause = min(timings.first_pause * 2.0 ** min(failures - 1, 30), timings.longest_pause)
    return pause * (0.5 + jitter / 2)


class SharedServer(BaseServer["Connection"]):
    """A server whose session everybody shares: one task starts it, watches it, and starts it again when it ends.

    `start` and `close` are called once; calls may come from any task of the loop.
    """

    def __init__(self, config: ServerConfig, common: CommonParts) -> None:
        super().__init__(config, common)
        self.tools: tuple[Tool, ...] = ()
        """The tools as last listed; they can be called while the state is `up`."""
        self.withheld: tuple[str, ...] = ()
        """Sentences for operators: what was not taken of the last list, and why."""
        self._timings = common.timings
        self._connection: Connection | None = None
        self._decided = asyncio.Event()
        self._failures = 0
        self._closing = False
        self._asks = False
        """Whether it has ever asked something in the middle of a call."""
        self._turn = asyncio.Lock()
        self._lives: set[asyncio.Task[tuple[bool, str]]] = set()
        self._ends: set[asyncio.Future[str]] = set()
        self._handed_over = asyncio.Event()
        self._start_now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep the server running; returns at once."""
        self._task = asyncio.create_task(self._keep_running(), name=f"tool-server-{self.config.name}")

    async def settled(self) -> None:
        """Wait until it is up, or its start has failed."""
        await self._decided.wait()

    def retry(self) -> None:
        """Connect anew, now."""
        self._failures = 0
        self._start_now.set()
        if self._connection is not None:
            self._hand_over(self._connection)

    async def offered(self) -> tuple[Tool, ...]:
        """The tools that can be called now."""
        return self.tools if self.state is ServerState.UP else ()

    async def find(self, full_name: str) -> Tool | None:
        """The tool that the model calls so, also while the server is being started again."""
        if self.state is ServerState.MISCONFIGURED:
            return None
        return next((tool for tool in self.tools if tool.full_name == full_name), None)

    async def forget(self, person: str, connection: str) -> None:
        """Nothing here is one person's."""

    async def forget_old(self, person: str, connection: str) -> None:
        """Nor is that."""

    async def check_accounts(self) -> None:
        """Nor is that."""

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
        self._to(ServerState.CLOSED, "is shut down")

    def _one_after_the_other(self) -> AbstractAsyncContextManager[None]:
        # Where nothing tells to which call a question belongs, a server that asks serves one after the other.
        return self._turn if self._asks and not self.config.tells_for_which_call else nullcontext()

    async def _session_for(self, tool: Tool, arguments: dict[str, Any], person: str) -> Connection | Failed:
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
            if problem := self._refusal(tool, arguments, self.tools):
                return problem
            if await self._is_trusted_with(connection, tool):
                return connection
            self._replace(connection, "does not answer")
        return Failed(f"{self.config.name} is unavailable: it {self.reason or 'does not answer'}. Nothing was called.")

    async def _outcome(
        self, session: Connection, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent | SessionLost:
        if session.lost.done() or session.retired:
            return NotSent("ended just before the call")
        if problem := still_offered(tool, self.tools):
            return problem
        call = InteractiveCall(session, tool, arguments, caller, self._common.mask)
        outcome = await self._common.waiting.outcome_of(call, progress)
        if call.has_asked:
            self._asks = True
        if call.put is not None and not self.config.tells_for_which_call:
            self._hand_over(session)
        if isinstance(outcome, NotSent | SessionLost):
            self._replace(session, outcome.reason)
        return outcome

    def _replace(self, connection: Connection, reason: str) -> None:
        """Another session for what follows; calls that are open over this one may still be answered."""
        if connection.busy:
            self._hand_over(connection)
        else:
            self._lose(connection, reason)

    async def _ready(self) -> Connection | None:
        await happens(self._decided, self._timings.patience)
        return self._connection

    def _hand_over(self, connection: Connection) -> None:
        """Leave a session to the calls that are open in it, and start another one for all that follows."""
        connection.retire()
        if self._connection is connection:
            self._connection = None
            self._to(ServerState.STARTING, "is being started again")
            self._handed_over.set()

    async def _keep_running(self) -> None:
        while not self._closing:
            self._start_now.clear()
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
            self._to(ServerState.STARTING if was_up and self._failures == 1 else ServerState.DOWN, reason)
            pause = pause_after(self._failures, self._timings, random.random())  # noqa: S311 - nothing secret
            log.warning("tool_server_down", server=self.config.name, reason=reason, again_in=round(pause, 2))
            await happens(self._start_now, pause)

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
                await self._take(connection, listed)
                again = partial(self._list_again, connection)
                reason = await attend(connection, self._timings, relist, again, idle=None)
                self._lose(connection, reason)
        except Exception as error:  # noqa: BLE001 - whatever a transport or a server does, it is started again
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
        listed = await connection.list_tools()
        if not connection.retired:
            await self._take(connection, listed)

    async def _take(self, connection: Connection, listed: list[Any]) -> None:
        listing = await self._read(listed)
        if connection.lost.done():
            return
        self.withheld = listing.skipped
        self.tools = listing.tools
        self._connection = None if listing.problem else connection
        self._offer(listing)
        if not listing.problem:
            log.info("tool_server_up", server=self.config.name, tools=len(self.tools), names=names_of(self.tools))

    def _lose(self, connection: Connection, reason: str) -> None:
        settle(connection.lost, reason)
        if self._connection is connection:
            self._connection = None
            self._to(ServerState.STARTING, "is being started again")

    def _to(self, state: ServerState, reason: str) -> None:
        super()._to(state, reason)
        if state is ServerState.STARTING:
            self._decided.clear()
        else:
            self._decided.set()
