"""One session with a server: opened, watched while calls are made over it, and closed; and what is checked before a
call is sent over it."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import httpx
import structlog

from adapters.shared.importing import imported
from adapters.tool_servers.accounts import Bearer
from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.elicitation import CallingRun, OnlyProcess, WaitingCalls
from adapters.tool_servers.listing import NOTHING_LISTED, ToolListing, read_listing
from adapters.tool_servers.outcomes import FaultError, Faults, SessionLost
from adapters.tool_servers.text import MaskText, one_line, unchanged, why_unreachable
from graph.json_values import trouble_with
from graph.ports import AccountNeeded, Caller, Failed, NotSent, Progress, Ready, ToolOutcome
from policies.model import Tool

if TYPE_CHECKING:
    import jsonschema

    from adapters.tool_servers.connection import Connection

log = structlog.get_logger(__name__)
MOST_NAMED = 100
"""Tools of a server that are named in the log."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things may take, in seconds."""

    start: float = 60.0
    """Seconds from starting a server until its tools are known (`npx` may have to download it first)."""
    ping_every: float = 15.0
    """Between health checks of an idle server."""
    ping: float = 5.0
    """Until a health check counts as failed."""
    fresh: float = 3.0
    """Seconds for which a silent session is trusted with a call that must not be made twice; after that it is pinged
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
    fault: float = 300.0
    """For how long a server with people's own accounts is down once a session with it could not be opened, if nobody
    tries again. As long as the alert waits: one try that fails alone is no alarm."""
    idle: float = 300.0
    """Until a session that is one person's is closed."""
    parked: float = 1_800.0
    """Seconds that a call in the middle waits for its requester."""


@dataclass(frozen=True, slots=True)
class CommonParts:
    """What all servers have in common."""

    result_limit: int
    timings: Timings
    mask: MaskText
    waiting: WaitingCalls
    calling: CallingRun = field(default_factory=OnlyProcess)
    tools_changed: Callable[[str], None] = lambda _server: None
    """Told the name of a server whose tools are not what they were, or cannot be called any more, or can again."""


SessionT = TypeVar("SessionT")


class ServerState(StrEnum):
    """How a server is."""

    STARTING = "starting"
    UP = "up"
    DOWN = "down"
    """The server could not be started, or ends again and again; it is tried again."""
    MISCONFIGURED = "misconfigured"
    """The server runs, but `mcp.json` does not fit it; its tools are withheld."""
    CLOSED = "closed"


class BaseServer(ABC, Generic[SessionT]):
    """One server of `mcp.json`, whoever has sessions with it. `SessionT`: what a call is made over."""

    def __init__(self, config: ServerConfig, common: CommonParts) -> None:
        self.config = config
        self.state = ServerState.STARTING
        self.reason = "is being started"
        """Ends a sentence that begins with the server's name; empty while it is up."""
        self._common = common
        self._offered = NOTHING_LISTED
        """The tools as they were last offered."""

    @property
    def fault(self) -> str:
        """Why calls do not get there although its tools are offered; ends a sentence that begins with the server's
        name. Empty: they do, as far as is known."""
        return ""

    @property
    def only_for_cards(self) -> frozenset[str]:
        """Names of the tools that are called for cards alone, and offered to nobody: what looks something up may be of
        use to a model, too."""
        looking_up = {lookup.tool for lookup in self.config.lookups.values()}
        return frozenset(self.config.preview_tools.values()) - looking_up

    @abstractmethod
    async def _session_for(
        self, tool: Tool, arguments: dict[str, Any], person: str
    ) -> SessionT | Failed | AccountNeeded:
        """A session over which the call can leave at once, after all checks."""

    @abstractmethod
    async def _outcome(
        self, session: SessionT, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent | SessionLost:
        """What comes of the call over this session."""

    def declared(self, tool: Tool) -> Mapping[str, Any] | None:
        """The tool's entry in the list of its server, as it was; `None`: it is in no list here."""
        return self._offered.declared.get(tool.full_name)

    def _one_after_the_other(self) -> AbstractAsyncContextManager[None]:
        """Held while a call is made."""
        return nullcontext()

    @asynccontextmanager
    async def prepared(
        self, tool: Tool, arguments: dict[str, Any], caller: Caller
    ) -> AsyncIterator[Ready | Failed | AccountNeeded]:
        """A call, once it is certain that the server is there and the tool still what it was."""
        async with self._one_after_the_other():
            session = await self._session_for(tool, arguments, caller.person)
            if isinstance(session, Failed | AccountNeeded):
                yield session
            else:
                yield Ready(partial(self._send, session, tool, arguments, caller))

    async def _send(
        self, session: SessionT, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent:
        await self._common.calling.check()
        outcome = await self._outcome(session, tool, arguments, caller, progress)
        if not isinstance(outcome, SessionLost):
            return outcome
        # The server answered as if it did not know the session: once more over another one, if the tool may be
        # repeated.
        another = await self._session_for(tool, arguments, caller.person) if tool.repeatable else None
        if another is None or isinstance(another, Failed | AccountNeeded):
            return another if isinstance(another, AccountNeeded) else outcome.otherwise
        await self._common.calling.check()
        again = await self._outcome(another, tool, arguments, caller, progress)
        return outcome.otherwise if isinstance(again, NotSent | SessionLost) else again

    def _refusal(self, tool: Tool, arguments: dict[str, Any], tools: Iterable[Tool]) -> Failed | None:
        """Why a call may not be made, by what the server lists; `None`: it may."""
        if trouble := trouble_with(arguments):
            return Failed(f"The arguments held {trouble}. Nothing was called.")
        if problem := still_offered(tool, tools):
            return problem
        if complaint := complaint_about(arguments, tool.input_schema, self._common.mask):
            return Failed(f"The arguments are not right: {complaint}. Nothing was called.")
        return None

    async def _is_trusted_with(self, connection: Connection, tool: Tool) -> bool:
        """Whether a call may go over the session. Of a tool that must not be called twice the outcome would be unknown
        if the server turned out to be another one by now, so one that has been silent is asked first. That a call is
        open proves nothing: it may wait for somebody, or have left just now. But a server that is at one may have no
        time for a ping."""
        if tool.repeatable or connection.is_fresh(self._common.timings.fresh):
            return True
        alive = await connection.is_alive(self._common.timings.ping)
        return connection.busy if alive is None else alive

    async def _read(self, listed: list[Any]) -> ToolListing:
        # In a thread: measuring the schemas of many tools takes a while, and nobody else should wait for it.
        listing = await asyncio.to_thread(read_listing, self.config, listed)
        for sentence in listing.skipped:
            log.warning("tool_server_tool_skipped", server=self.config.name, reason=sentence)
        return listing

    def _offer(self, listing: ToolListing) -> None:
        """The server is up with these tools, unless they are withheld."""
        if listing.problem:
            log.error("tool_server_misconfigured", server=self.config.name, reason=listing.problem)
            self._to(ServerState.MISCONFIGURED, f"cannot be used: {listing.problem}")
        else:
            self._to(ServerState.UP, "")
        before, self._offered = self._offered, listing
        if (listing.tools, listing.declared) != (before.tools, before.declared):
            self._common.tools_changed(self.config.name)

    def _to(self, state: ServerState, reason: str) -> None:
        was_up = self.state is ServerState.UP
        self.state = state
        self.reason = reason
        if was_up != (state is ServerState.UP):
            self._common.tools_changed(self.config.name)


SCHEMAS = "bot.schemas.validating"
"""What checks schemas; it takes a moment to import."""
SDK = SCHEMAS, "adapters.tool_servers.connection"
"""What needs the MCP SDK. It takes seconds to import, so that happens in a thread, and only when there is a server."""


@asynccontextmanager
async def connected(
    config: ServerConfig, common: CommonParts, relist: asyncio.Event, bearer: Bearer | None = None
) -> AsyncIterator[tuple[Connection, list[Any]]]:
    """A session and the tools that it listed. Raises whatever a transport or a server does.

    `relist` is set when the server says that it has other tools. To be left by the task that entered it.
    """
    await imported(*SDK)
    from adapters.tool_servers.connection import Connection, open_session  # noqa: PLC0415 - as `SDK` says
    from adapters.tool_servers.incoming import Signals  # noqa: PLC0415

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
                patience = common.timings.parked
                opened = open_session(config, signals, faults, patience=patience, bearer=bearer, mask=common.mask)
                session = await stack.enter_async_context(opened)
                connection = Connection(config, common, session, lost, faults, bearer=bearer)
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
    """Watch a session until it ends; returns why. `idle`: seconds without a call after which it is closed; with
    `None` it is kept, and asked for its health."""
    listings = RelistPauses(timings)
    while True:
        pause = timings.ping_every if idle is None else max(connection.last_used + idle - time.monotonic(), 0.01)
        too_early = listings.too_early()
        limit = None if idle is not None and connection.busy else pause
        if too_early:  # a change that is announced now is read later
            await _something_happened(connection, asyncio.Event(), min(too_early, limit or too_early))
        else:
            await _something_happened(connection, relist, limit)
        if connection.lost.done():
            return connection.lost.result()
        if connection.stirred.is_set():
            connection.stirred.clear()
        elif relist.is_set() and not listings.too_early():
            relist.clear()
            try:
                async with asyncio.timeout(timings.relist):
                    await list_again()
            except Exception as error:  # noqa: BLE001 - of the SDK or the server; the tools known so far stay
                log.warning("tool_server_not_listed_again", server=connection.server, error=type(error).__name__)
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


class RelistPauses:
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
        """Called when the tools have been listed."""
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


def reason_of(error: BaseException) -> str:
    """Why a server could not be started, or ended, as the end of a sentence that begins with its name."""
    from mcp.shared.exceptions import McpError  # noqa: PLC0415 - as `SDK` says

    match first_cause(error):
        case FileNotFoundError(filename=missing) | NotADirectoryError(filename=missing):
            return f"cannot be started: {one_line(str(missing), 200)} was not found"
        case PermissionError(filename=forbidden):
            return f"cannot be started: {one_line(str(forbidden), 200)} may not be run"
        case TimeoutError():
            return "did not answer in time"
        case FaultError(fault=fault):
            return one_line(fault.reason, 200)
        case McpError(error=said) if said.message == "Connection closed":
            return "ended while it was being started; its log lines say more"
        case McpError(error=said):
            return f"could not be started: it answered with error {said.code}"
        case httpx.HTTPStatusError(response=response):
            return f"answered with HTTP {response.status_code}"
        case httpx.TransportError() as unreachable:
            return why_unreachable(unreachable)
        case other:
            return f"failed ({type(other).__name__})"


def first_cause(error: BaseException) -> BaseException:
    """The first exception in a group, however deep; the exception itself when it is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def names_of(tools: Iterable[Tool]) -> list[str]:
    """Returns the names of tools for the log, the first `MOST_NAMED` of them."""
    return [tool.name for tool in islice(tools, MOST_NAMED)]


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


LONGEST_COMPLAINT = 300
"""Characters."""
LONGEST_READ = 2_000
"""Characters of a message that is told: it repeats the value, which may be long."""
MOST_COMPLAINTS = 3
MOST_ERRORS = 50
"""What is counted of them."""


def complaint_about(arguments: Mapping[str, Any], schema: Mapping[str, Any], mask: MaskText = unchanged) -> str | None:
    """What is wrong with the arguments, naming them; `None`: nothing. Takes a bounded number of steps. What it repeats
    of them passes `mask` before it is cut: half a secret is not recognised.

    Formats (`date-time`, `uri`…) are annotations in JSON Schema and are left to the server, and so is all that cannot
    be checked here. References to other documents are never followed.
    """
    from bot.schemas.validating import TooMuchError, UncheckableError, errors_in  # noqa: PLC0415 - it brings jsonschema

    try:
        errors = errors_in(schema, dict(arguments), formats={}, most=MOST_ERRORS)
    except UncheckableError:
        return None  # a reference elsewhere: the server checks for itself
    except TooMuchError:
        return "they are too large to be checked against it; do it in smaller parts"
    except RecursionError:
        return "they are nested too deeply"
    errors.sort(key=lambda error: [str(part) for part in error.absolute_path])
    sentences = [_sentence(error, mask) for error in errors[:MOST_COMPLAINTS]]
    if len(errors) > MOST_COMPLAINTS:
        more = "at least " if len(errors) == MOST_ERRORS else ""
        sentences.append(f"and {more}{len(errors) - MOST_COMPLAINTS} more")
    return "; ".join(sentences) or None


def _sentence(error: jsonschema.ValidationError, mask: MaskText) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    if error.validator == "required":
        # one error for each missing name, which only the message tells: "'start' is a required property"
        names: Any = error.validator_value
        missing = next((name for name in names if error.message.startswith(repr(name))), "something")
        return f'"{_told(f"{path}.{missing}".lstrip("."), 100, mask)}" is missing'
    complaint = _told(error.message, LONGEST_COMPLAINT, mask) or f"it does not fit “{error.validator}”"
    return f'"{_told(path, 100, mask)}": {complaint}' if path else complaint


def _told(text: str, limit: int, mask: MaskText) -> str:
    """Returns at most `limit` characters of a text without secrets; nothing of one that is too long to be searched."""
    return one_line(mask(text), limit) if len(text) <= LONGEST_READ else ""
