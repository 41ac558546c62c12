"""A server that acts with people's own accounts: a session for each of them, opened when it is needed.

Its tools are those that anybody's session lists; they are remembered, so that they can be offered after a restart, by
other processes, and to people who have not signed in yet. Before anybody has, there is one tool: to sign in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from adapters.shared.importing import imported
from adapters.tool_servers.accounts import AccountUnknown, Bearer
from adapters.tool_servers.config import AccountConfig, ServerConfig
from adapters.tool_servers.elicitation import InteractiveCall
from adapters.tool_servers.listing import NOTHING_LISTED, REMEMBERED, Catalogue, ToolListing, read_listing
from adapters.tool_servers.outcomes import NOT_LOOKED_UP, FaultError, FaultKind, SessionLost
from adapters.tool_servers.sessions import (
    SCHEMAS,
    BaseServer,
    CommonParts,
    ServerState,
    attend,
    connected,
    first_cause,
    names_of,
    reason_of,
    settle,
    still_offered,
)
from graph.ports import AccountNeeded, Caller, Failed, NotSent, Progress, Succeeded, ToolOutcome
from policies.model import Annotations, Tool

if TYPE_CHECKING:
    from adapters.tool_servers.connection import Connection
    from bot.accounts.ports import TokenSet
    from bot.accounts.tokens import CatalogueStore, TokenStore


log = structlog.get_logger(__name__)
SIGN_IN = "sign_in"
MOST_SESSIONS = 100
"""People with an open session on one server; who has used theirs longest ago gives way."""


def sign_in_tool(server: ServerConfig) -> Tool:
    """The tool of a server that nobody has signed in to. It is ours: it only reads."""
    return Tool(
        server=server.name,
        name=SIGN_IN,
        title="Sign in",
        description=(
            f"Connects the person's own account at {server.name}. Its tools are not known before somebody has signed "
            "in; this one asks the person to, and then says which there are."
        ),
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
        annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
        annotations_trusted=True,
        repeatable=True,
        personal=True,
        category=server.category,
        fingerprint=server.fingerprint,
    )


class PersonalServer(BaseServer["PersonalSession"]):
    """A server that acts with people's own accounts, and the sessions that they have with it."""

    def __init__(
        self,
        config: ServerConfig,
        account: AccountConfig,
        common: CommonParts,
        tokens: TokenStore,
        catalogues: CatalogueStore | None,
    ) -> None:
        super().__init__(config, common)
        self._account = account
        self._tokens = tokens
        self._catalogues = catalogues
        self._known = Catalogue()
        self._listing = NOTHING_LISTED
        self._sign_in = sign_in_tool(config)
        self._sessions: dict[str, PersonalSession] = {}
        self._leaving: set[PersonalSession] = set()
        self._keeping = asyncio.Lock()
        self._catching_up = asyncio.Lock()
        self._news = 0
        """Of the catalogues, when they were read last."""
        self._learning = asyncio.Lock()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._fault: tuple[str, float] | None = None
        """Why the last session could not be opened, and when that was, by the monotonic clock; `None`: it could."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools as last listed for anybody; only the sign-in tool while nobody has signed in, or while they are
        withheld."""
        withheld = self.state is ServerState.MISCONFIGURED
        return (not withheld and self._listing.tools) or (self._sign_in,)

    @property
    def withheld(self) -> tuple[str, ...]:
        """Sentences for operators: what was not taken of what was listed last for anybody, and why."""
        return self._listing.skipped

    @property
    def fault(self) -> str:
        """Why nobody's calls get there now. Its tools stay offered: there is no other way to find out that they do
        again."""
        if self._fault is None or time.monotonic() - self._fault[1] > self._common.timings.fault:
            return ""
        return self._fault[0]

    async def offered(self) -> tuple[Tool, ...]:
        """The tools that can be called now. Signing in always can: who does may have the tool that is missed. Raises
        what the records raise."""
        await self._catch_up()
        if not self._listing.tools:
            await self._learn_from_others()
        return self.tools if self.state in {ServerState.UP, ServerState.MISCONFIGURED} else ()

    def start(self) -> None:
        """Look up which tools were there last; returns at once."""
        self._task = asyncio.create_task(self._remember(), name=f"tool-catalogue-{self.config.name}")

    def retry(self) -> None:
        """Each person's session is made when they call a tool: there is none to be made anew."""

    async def settled(self) -> None:
        """Wait until that is known."""
        await self._settled.wait()

    async def find(self, full_name: str) -> Tool | None:
        """The tool that the model calls so. Raises what the records raise."""
        await self._catch_up()
        tool = self._known_here(full_name)
        if tool is not None or not full_name.startswith(f"{self.config.name}__"):
            return tool
        # A call may be made here that was asked for where more was known: the process there may have ended since.
        await self._learn_from_others()
        return self._known_here(full_name)

    def _known_here(self, full_name: str) -> Tool | None:
        # Somebody may be about to sign in by the tool for it while another one has done so.
        return next((tool for tool in (*self.tools, self._sign_in) if tool.full_name == full_name), None)

    async def _session_for(
        self, tool: Tool, arguments: dict[str, Any], person: str
    ) -> PersonalSession | Failed | AccountNeeded:
        """The person's session, over which the call can leave at once."""
        # Twice at most: a session that turns out to be dead, or another account's, is replaced once.
        for _ in range(2):
            session = self._session_of(person)
            if session is None:
                return Failed(f"{self.config.name} has too many people at once. Nothing was called.")
            opened = await session.opened()
            if isinstance(opened, AccountNeeded):
                return opened
            if isinstance(opened, SessionNotOpened):
                return self._without_session(opened)
            try:
                if not await session.has_its_account():
                    self._retire(session)
                    continue  # with the account that there is now
            except AccountUnknown:
                return Failed(f"{self.config.name} {NOT_LOOKED_UP}. Nothing was called.")
            if tool == self._sign_in:
                return session
            if self.state is ServerState.MISCONFIGURED:
                return Failed(f"{self.config.name} {self.reason}. Nothing was called.")
            if still_offered(tool, opened.tools):
                # Another process may have listed them anew since this session did.
                await session.list_again()
            if still_offered(tool, opened.tools):
                # It was offered as others have it: from now on as this person does, who may try again.
                self._known.lacks(REMEMBERED, tool.name)
                await self._learn(person, opened.listed)
            if problem := self._refusal(tool, arguments, opened.tools):
                return problem
            if await self._is_trusted_with(opened.connection, tool):
                return session
            self._replace(session, "does not answer")
        return Failed(f"{self.config.name} is unavailable: it does not answer. Nothing was called.")

    def _without_session(self, not_opened: SessionNotOpened) -> Failed:
        if not_opened.is_fault:
            self._fault = not_opened.reason, time.monotonic()
        return Failed(f"{self.config.name} is unavailable: it {not_opened.reason}. Nothing was called.")

    async def _outcome(
        self, session: PersonalSession, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent | SessionLost:
        opened = session.opened_now()
        if opened is None:
            return NotSent("ended just before the call")
        if tool == self._sign_in:
            return self._signed_in(opened.tools, caller.person)
        if problem := still_offered(tool, opened.tools):
            return problem
        call = InteractiveCall(opened.connection, tool, arguments, caller, self._common.mask)
        outcome = await self._common.waiting.outcome_of(call, progress)
        if isinstance(outcome, AccountNeeded):
            self._retire(session)  # what follows is with another account
        if isinstance(outcome, NotSent | SessionLost):
            self._replace(session, outcome.reason)
        elif isinstance(outcome, Succeeded | Failed):
            self._fault = None
        return outcome

    def _replace(self, session: PersonalSession, reason: str) -> None:
        """Another session for what follows; calls that are open over this one may still be answered."""
        if session.busy:
            self._retire(session)
        else:
            session.lose(reason)

    async def forget(self, person: str, connection: str) -> None:
        """Ends what uses a person's old account, when they have another one now, or none."""
        if connection != self._account.connection:
            return
        if session := self._sessions.pop(person, None):
            self._leaving.add(session)
        # Those that were only kept for the calls in them, too.
        await self._leave(session for session in self._leaving if session.person == person)

    async def forget_old(self, person: str, connection: str) -> None:
        """The same, when another process has said so: a session that was opened since is with the new account."""
        if connection != self._account.connection or not (theirs := self._sessions_of(person)):
            return
        now = await self._tokens.kept(person, connection)
        old = [session for session in theirs if now is None or not session.may_use(now)]
        for session in old:
            self._retire(session)
        await self._leave(old)

    async def check_accounts(self) -> None:
        """What other processes have said may have been missed: ends all sessions with old accounts."""
        for person in {session.person for session in (*self._sessions.values(), *self._leaving)}:
            await self.forget_old(person, self._account.connection)

    def _sessions_of(self, person: str) -> list[PersonalSession]:
        return [each for each in (*self._sessions.values(), *self._leaving) if each.person == person]

    async def _leave(self, sessions: Iterable[PersonalSession]) -> None:
        left = list(sessions)
        for session in left:
            session.lose("was left: its account was disconnected")
        await asyncio.gather(*(session.ended() for session in left))

    async def close(self) -> None:
        """End all sessions. Calls in flight break off."""
        sessions = [*self._sessions.values(), *self._leaving]
        for session in sessions:
            session.lose("is shut down with us")
        tasks = [asyncio.create_task(session.ended()) for session in sessions]
        if self._task is not None:
            self._task.cancel()
            tasks.append(self._task)
        if tasks:
            await asyncio.wait(tasks, timeout=self._common.timings.close)
        self._to(ServerState.CLOSED, "is shut down")

    def _session_of(self, person: str) -> PersonalSession | None:
        """The person's session, opened now if there is none; `None`: too many are in use."""
        if session := self._sessions.get(person):
            if session.is_usable:
                return session
            self._retire(session)
        if len(self._sessions) >= MOST_SESSIONS:
            idle = [each for each in self._sessions.values() if not each.busy]
            if not idle:
                return None
            self._retire(min(idle, key=lambda each: each.last_used))
        bearer = Bearer(self._tokens, person, self._account.connection)
        session = PersonalSession(self.config, self._common, bearer, partial(self._listed, person), self._gone)
        self._sessions[person] = session
        session.start()
        return session

    def _retire(self, session: PersonalSession) -> None:
        """No new calls go over it; those that are open there go on."""
        if self._sessions.get(session.person) is session:
            del self._sessions[session.person]
            self._leaving.add(session)
            session.retire()

    def _gone(self, session: PersonalSession) -> None:
        self._leaving.discard(session)
        if self._sessions.get(session.person) is session:
            del self._sessions[session.person]

    def _signed_in(self, tools: Iterable[Tool], person: str) -> Succeeded:
        if self.state is ServerState.MISCONFIGURED:
            return Succeeded(f"Signed in, but {self.config.name} {self.reason}.", owner=person)
        names = ", ".join(tool.full_name for tool in tools) or "none"
        return Succeeded(f"Signed in. The tools of {self.config.name} are: {names}.", owner=person)

    async def _remember(self) -> None:
        await imported(SCHEMAS)
        listed: Sequence[Mapping[str, Any]] | None = None
        try:
            if self._catalogues is not None:
                listed = await self._catalogues.load(self.config.name, self.config.fingerprint)
        except Exception as error:  # noqa: BLE001 - of the records: what is not remembered is listed anew
            log.warning("tool_catalogue_not_loaded", server=self.config.name, error=type(error).__name__)
        if listed and not self._listing.tools:
            await self._learn(REMEMBERED, listed)
            log.info("tools_remembered", server=self.config.name, tools=len(self.tools), names=names_of(self.tools))
        elif self.state is ServerState.STARTING:
            self._to(ServerState.UP, "")
        self._settled.set()

    async def _catch_up(self) -> None:
        """Learn what other processes have told of, if they have: tools that are known here may be others by now."""
        if self._catalogues is None:
            return
        async with self._catching_up:  # who comes meanwhile waits for it
            if (news := self._catalogues.news(self.config.name)) != self._news:
                await self._learn_from_others()
                self._news = news

    async def _learn_from_others(self) -> None:
        """Take over the tools that people of other processes were shown meanwhile."""
        if self._catalogues is None:
            return
        if listed := await self._catalogues.load(self.config.name, self.config.fingerprint):
            await self._learn(REMEMBERED, listed)

    async def _listed(self, person: str, listed: list[Any]) -> ToolListing:
        """Somebody's session has listed the tools; what that person may call."""
        self._fault = None
        listing = await self._read(listed)
        if listing.tools or not self._listing.tools:
            await self._learn(person, listed)
        await self._keep(self._known.entries)
        return listing

    async def _learn(self, person: str, listed: Sequence[Any]) -> None:
        self._known.listed(person, listed)
        async with self._learning:  # one after the other, so that the newest counts
            self._offer(await asyncio.to_thread(read_listing, self.config, self._known.entries))

    async def _keep(self, listed: Sequence[Mapping[str, Any]]) -> None:
        if self._catalogues is None or not listed:
            return
        try:
            async with self._keeping:
                await self._catalogues.keep(self.config.name, self.config.fingerprint, listed)
        except Exception as error:  # noqa: BLE001 - of the records: it is kept the next time
            log.warning("tool_catalogue_not_kept", server=self.config.name, error=type(error).__name__)

    def _offer(self, listing: ToolListing) -> None:
        self._listing = listing
        super()._offer(listing)


@dataclass(frozen=True, slots=True)
class SessionNotOpened:
    """The session could not be opened."""

    reason: str
    """Ends a sentence that begins with the server's name."""
    is_fault: bool = False
    """It is the server's or its network's, not that the session is wanted no longer."""


@dataclass(slots=True)
class OpenSession:
    """An open session and what this person may call."""

    connection: Connection
    listed: list[Any]
    """The listing as the server sent it."""
    tools: tuple[Tool, ...]


class PersonalSession:
    """A session with one person's account: opened at once, watched, closed when it is not used any more.

    `listed` is told what it lists, `gone` when it has ended.
    """

    def __init__(
        self,
        config: ServerConfig,
        common: CommonParts,
        bearer: Bearer,
        listed: Callable[[list[Any]], Awaitable[ToolListing]],
        gone: Callable[[PersonalSession], None],
    ) -> None:
        self._config = config
        self._common = common
        self._bearer = bearer
        self._listed = listed
        self._gone = gone
        self._state: asyncio.Future[OpenSession | SessionNotOpened | AccountNeeded] = (
            asyncio.get_running_loop().create_future()
        )
        self._task: asyncio.Task[None] | None = None
        self._began = time.monotonic()
        self._lost_early = ""

    @property
    def person(self) -> str:
        """The person whose session it is."""
        return self._bearer.person

    @property
    def _connection(self) -> Connection | None:
        opened = self._state.result() if self._state.done() and not self._state.cancelled() else None
        return opened.connection if isinstance(opened, OpenSession) else None

    @property
    def busy(self) -> bool:
        """Whether it is being opened, or a call is in flight or waits."""
        return self._connection.busy if self._connection else not self._state.done()

    @property
    def is_usable(self) -> bool:
        """Whether calls may still be made over it; so it is while it is being opened."""
        its = self._connection
        return its is None or not (its.retired or its.lost.done() or its.is_in_doubt or self._bearer.is_over)

    @property
    def last_used(self) -> float:
        """When a call ended last, by the monotonic clock."""
        return self._connection.last_used if self._connection else self._began

    def start(self) -> None:
        """Begin to open it; returns at once."""
        self._task = asyncio.create_task(self._live(), name=f"personal-session-{self._config.name}")
        self._task.add_done_callback(lambda _: self._never_opened())

    async def opened(self) -> OpenSession | SessionNotOpened | AccountNeeded:
        """Wait until it is open, or is known not to be."""
        return await asyncio.shield(self._state)

    def opened_now(self) -> OpenSession | None:
        """The open session over which a call can leave now; `None`: it has ended, or only serves what is open in it."""
        opened = self._state.result() if self._state.done() and not self._state.cancelled() else None
        return opened if isinstance(opened, OpenSession) and self.is_usable else None

    async def list_again(self) -> None:
        """Look up which tools there are now; those known so far stay if that cannot be done."""
        opened = self.opened_now()
        if opened is None:
            return
        try:
            async with asyncio.timeout(self._common.timings.relist):
                await self._list_again(opened)
        except Exception as error:  # noqa: BLE001 - of the SDK or the server
            log.warning("tool_server_not_listed_again", server=self._config.name, error=type(error).__name__)

    async def _list_again(self, opened: OpenSession) -> None:
        listed = await opened.connection.list_tools()
        if listed != opened.listed:  # else nobody needs to hear of it
            opened.listed, opened.tools = listed, (await self._listed(listed)).tools

    async def has_its_account(self) -> bool:
        """Look up the person's account for the call that is about to be made; whether it is the one that the session
        was opened with. Raises `AccountUnknown`."""
        return await self._bearer.is_there()

    def may_use(self, tokens: TokenSet) -> bool:
        """Whether it was opened with the account that these tokens are of, or may still look them up."""
        used = self._bearer.looked_up()
        return used is None or used.sign_in == tokens.sign_in

    def retire(self) -> None:
        """End when the calls that are open on it have."""
        self._bearer.pin()
        if self._connection is not None:
            self._connection.retire()

    def lose(self, reason: str) -> None:
        """End at once; calls in flight break off."""
        self._bearer.pin()
        if self._connection is not None:
            settle(self._connection.lost, reason)
        elif self._task is not None:
            self._lost_early = reason
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until it has ended."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._common.timings.close)

    async def _live(self) -> None:
        relist = asyncio.Event()
        failed: SessionNotOpened | AccountNeeded = SessionNotOpened("is shut down")
        try:
            async with connected(self._config, self._common, relist, self._bearer) as (connection, listed):
                opened = OpenSession(connection, listed, (await self._listed(listed)).tools)
                self._state.set_result(opened)

                timings = self._common.timings
                again = partial(self._list_again, opened)
                reason = await attend(connection, timings, relist, again, idle=timings.idle)
                settle(connection.lost, reason)
                self._gone(self)
        except Exception as error:  # noqa: BLE001 - whatever a transport or a server does, it is opened again
            failed = self._what(error)
        finally:
            self._gone(self)
            if not self._state.done():
                self._state.set_result(SessionNotOpened(self._lost_early) if self._lost_early else failed)

    def _never_opened(self) -> None:
        """A task that is cancelled before its first step runs nothing, no `finally` either."""
        if not self._state.done():
            self._gone(self)
            self._state.set_result(SessionNotOpened(self._lost_early or "is shut down"))

    def _what(self, error: Exception) -> SessionNotOpened | AccountNeeded:
        cause = first_cause(error)
        if isinstance(cause, FaultError) and cause.fault.kind is FaultKind.SIGN_IN:
            return AccountNeeded(self._bearer.connection, cause.fault.challenge)
        reason, about = reason_of(error), {"server": self._config.name, "cause": type(cause).__name__}
        log.warning("personal_session_not_opened", **about, reason=reason)
        # What refuses a request that it understands is there, and may refuse this person alone.
        is_refusal = isinstance(cause, FaultError) and cause.fault.kind is FaultKind.NOTHING_DONE
        return SessionNotOpened(reason, is_fault=not is_refusal)
