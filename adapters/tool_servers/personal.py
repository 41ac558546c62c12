"""A server that acts with people's own accounts: a session for each of them, opened when it is needed.

Its tools are those that anybody's session lists; they are remembered, so that they can be offered after a restart and
to people who have not signed in yet. Before anybody has, there is one tool: to sign in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog

from adapters.tool_servers.accounts import AccountTokens, AccountUnknown, Bearer, Catalogues
from adapters.tool_servers.catalogue import REMEMBERED, Catalogue
from adapters.tool_servers.config import AccountConfig, ServerConfig
from adapters.tool_servers.life import Common, import_schemas
from adapters.tool_servers.listing import Listing, read_listing
from adapters.tool_servers.personal_session import PersonalSession, Unopened
from adapters.tool_servers.replies import NOT_LOOKED_UP, SessionLost
from adapters.tool_servers.server import State, is_trusted_with, not_to_be_sent, still_offered
from graph.ports import AccountNeeded, Caller, Failed, NotSent, Progress, Ready, Succeeded, ToolOutcome
from policies.model import Annotations, Tool

log = structlog.get_logger(__name__)

SIGN_IN = "sign_in"

MOST_SESSIONS = 100
"""People with an open session on one server; who has used theirs longest ago gives way."""

_NOTHING_LISTED = Listing((), (), None)


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


class PersonalServer:
    """One server and the sessions that people have with it. The same from outside as `Server`."""

    def __init__(
        self,
        config: ServerConfig,
        account: AccountConfig,
        common: Common,
        tokens: AccountTokens,
        catalogues: Catalogues | None,
    ) -> None:
        self.config = config
        self.state = State.STARTING
        self.reason = "is being started"
        """Ends a sentence that begins with the server's name; empty while it is up."""
        self._account = account
        self._common = common
        self._tokens = tokens
        self._catalogues = catalogues
        self._known = Catalogue()
        self._listing = _NOTHING_LISTED
        self._sign_in = sign_in_tool(config)
        self._sessions: dict[str, PersonalSession] = {}
        self._leaving: set[PersonalSession] = set()
        self._keeping = asyncio.Lock()
        self._learning = asyncio.Lock()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """As last listed for anybody; only the one to sign in with while nobody has, or they are withheld."""
        withheld = self.state is State.MISCONFIGURED
        return (not withheld and self._listing.tools) or (self._sign_in,)

    @property
    def withheld(self) -> tuple[str, ...]:
        """Sentences for operators: what was not taken of what was listed last for anybody, and why."""
        return self._listing.skipped

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that can be called now. Signing in always can: who does may have the tool that is missed."""
        return self.tools if self.state in {State.UP, State.MISCONFIGURED} else ()

    def start(self) -> None:
        """Look up which tools were there last; returns at once."""
        self._task = asyncio.create_task(self._remember(), name=f"tool-catalogue-{self.config.name}")

    async def settled(self) -> None:
        """Wait until that is known."""
        await self._settled.wait()

    def find(self, full_name: str) -> Tool | None:
        """The tool that the model calls so."""
        # Somebody may be about to sign in by the tool for it while another one has done so.
        return next((tool for tool in (*self.tools, self._sign_in) if tool.full_name == full_name), None)

    @asynccontextmanager
    async def prepared(
        self, tool: Tool, arguments: dict[str, Any], caller: Caller
    ) -> AsyncIterator[Ready | Failed | AccountNeeded]:
        """A call with the caller's own account, once it is certain that there is one and the tool what it was."""
        session = await self._session_for(tool, arguments, caller.person)
        if isinstance(session, PersonalSession):
            yield Ready(partial(self._send, session, tool, arguments, caller))
        else:
            yield session

    async def _session_for(
        self, tool: Tool, arguments: dict[str, Any], person: str
    ) -> PersonalSession | Failed | AccountNeeded:
        """The person's session, over which the call can leave at once."""
        # Twice at most: a session that turns out to be dead is replaced once.
        for _ in range(2):
            session = self._session_of(person)
            if session is None:
                return Failed(f"{self.config.name} has too many people at once. Nothing was called.")
            opened = await session.opened()
            if isinstance(opened, AccountNeeded):
                return opened
            if isinstance(opened, Unopened):
                return Failed(f"{self.config.name} is unavailable: it {opened.reason}. Nothing was called.")
            if tool == self._sign_in:
                return session
            if self.state is State.MISCONFIGURED:
                return Failed(f"{self.config.name} {self.reason}. Nothing was called.")
            if still_offered(tool, opened.tools):
                # It was offered as others have it: from now on as this person does, who may try again.
                self._known.lacks(REMEMBERED, tool.name)
                await self._learn(person, opened.listed)
            if problem := not_to_be_sent(tool, arguments, opened.tools, self._common.redact):
                return problem
            if missing := await self._account_problem(session):
                return missing
            if await is_trusted_with(opened.connection, tool, self._common.timings):
                return session
            self._replace(session, "does not answer")
        return Failed(f"{self.config.name} is unavailable: it does not answer. Nothing was called.")

    async def _account_problem(self, session: PersonalSession) -> Failed | AccountNeeded | None:
        """Why a call cannot be made with the person's account; `None`: it can, and is made with it as it is now."""
        try:
            if await session.account():
                return None
        except AccountUnknown:
            return Failed(f"{self.config.name} {NOT_LOOKED_UP}. Nothing was called.")
        self._retire(session)  # what follows is with another account
        return AccountNeeded(self._account.connection)

    async def _send(
        self, session: PersonalSession, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent:
        outcome = await self._outcome(session, tool, arguments, caller, progress)
        if not isinstance(outcome, SessionLost):
            return outcome
        # The server answered as if it did not know the session: once more over another one, if the tool may be
        # repeated.
        another = await self._session_for(tool, arguments, caller.person) if tool.repeatable else None
        if not isinstance(another, PersonalSession):
            return another if isinstance(another, AccountNeeded) else outcome.otherwise
        again = await self._outcome(another, tool, arguments, caller, progress)
        return outcome.otherwise if isinstance(again, NotSent | SessionLost) else again

    async def _outcome(
        self, session: PersonalSession, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress
    ) -> ToolOutcome | NotSent | SessionLost:
        from adapters.tool_servers.talks import Talk  # noqa: PLC0415 - it brings the SDK

        opened = session.opened_now()
        if opened is None:
            return NotSent("ended just before the call")
        if tool == self._sign_in:
            return self._signed_in(opened.tools, caller.person)
        if problem := still_offered(tool, opened.tools):
            return problem
        talk = Talk(opened.connection, tool, arguments, caller, self._common.redact)
        outcome = await self._common.waiting.outcome_of(talk, progress)
        if isinstance(outcome, AccountNeeded):
            self._retire(session)  # what follows is with another account
        if isinstance(outcome, NotSent | SessionLost):
            self._replace(session, outcome.reason)
        return outcome

    def _replace(self, session: PersonalSession, reason: str) -> None:
        """Another session for what follows; calls that are open over this one may still be answered."""
        if session.busy:
            self._retire(session)
        else:
            session.lose(reason)

    async def forget(self, person: str, connection: str) -> None:
        """That person's account is another one now, or none: nothing goes on with the old one."""
        if connection != self._account.connection:
            return
        if session := self._sessions.pop(person, None):
            self._leaving.add(session)
        # Those that were only kept for the calls in them, too.
        left = [session for session in self._leaving if session.person == person]
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
        self._to(State.CLOSED, "is shut down")

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
        if self.state is State.MISCONFIGURED:
            return Succeeded(f"Signed in, but {self.config.name} {self.reason}.", owner=person)
        names = ", ".join(tool.full_name for tool in tools) or "none"
        return Succeeded(f"Signed in. The tools of {self.config.name} are: {names}.", owner=person)

    async def _remember(self) -> None:
        await asyncio.to_thread(import_schemas)
        listed: Sequence[Mapping[str, Any]] | None = None
        try:
            if self._catalogues is not None:
                listed = await self._catalogues.load(self.config.name, self.config.fingerprint)
        except Exception as error:  # noqa: BLE001 - of the records: what is not remembered is listed anew
            log.warning("tool_catalogue_not_loaded", server=self.config.name, error=type(error).__name__)
        if listed and not self._listing.tools:
            await self._learn(REMEMBERED, listed)
        elif self.state is State.STARTING:
            self._to(State.UP, "")
        self._settled.set()

    async def _listed(self, person: str, listed: list[Any]) -> Listing:
        """Somebody's session has listed the tools; what that person may call."""
        # In a thread: measuring the schemas of many tools takes a while, and nobody else should wait for it.
        listing = await asyncio.to_thread(read_listing, self.config, listed)
        for sentence in listing.skipped:
            log.warning("tool_server_tool_skipped", server=self.config.name, reason=sentence)
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

    def _offer(self, listing: Listing) -> None:
        self._listing = listing
        if listing.problem:
            log.error("tool_server_misconfigured", server=self.config.name, reason=listing.problem)
            self._to(State.MISCONFIGURED, f"cannot be used: {listing.problem}")
        else:
            self._to(State.UP, "")

    def _to(self, state: State, reason: str) -> None:
        self.state = state
        self.reason = reason
