"""All configured tool servers together: the `graph.ports.Tools` of the house."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from adapters.tool_servers.accounts import AccountTokens, Catalogues
from adapters.tool_servers.config import ServerConfig, ToolServersConfig
from adapters.tool_servers.life import Common, Timings
from adapters.tool_servers.personal import PersonalServer
from adapters.tool_servers.redaction import Redact, unchanged
from adapters.tool_servers.server import Server, State
from adapters.tool_servers.waiting import Completed, WaitingCalls, when_made_anew
from graph.ports import Caller, Failed, NotSent, Prepared, Progress, Ready, ToolOutcome, Unavailable
from policies.model import Tool

log = structlog.get_logger(__name__)

SMALLEST_RESULT_LIMIT = 256
"""Bytes: less would not hold the sentence that says how much was left out."""

NO_PERSONAL_SIGN_IN = "needs every person to sign in, and there are no accounts here"


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

    `result_limit`: bytes of a result that the model gets, at least 256 (`ValueError`). `redact`: masks secrets in all
    that tools say, before anybody sees it. `tokens`: people's accounts; without them a server that needs these cannot
    be used. `catalogues`: where the tools of such servers are remembered. To be started and closed by the loop that
    calls it.
    """

    def __init__(
        self,
        config: ToolServersConfig,
        *,
        result_limit: int = 16_000,
        timings: Timings | None = None,
        redact: Redact = unchanged,
        tokens: AccountTokens | None = None,
        catalogues: Catalogues | None = None,
    ) -> None:
        if result_limit < SMALLEST_RESULT_LIMIT:
            raise ValueError(f"result_limit must be at least {SMALLEST_RESULT_LIMIT} bytes, not {result_limit}")
        self._names = tuple(server.name for server in config.servers)
        timings = timings or Timings()
        self._waiting = WaitingCalls(timings.parked)
        common = Common(result_limit, timings, redact, self._waiting)
        made = {server.name: _server(server, common, tokens, catalogues) for server in config.servers}
        self._servers = {name: server for name, server in made.items() if server is not None}

    def connect(self, completed: Completed) -> None:
        """Whom to tell that a link was used, as its server says; with the id of the call that needed it."""
        self._waiting.connect(completed)

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

    def available(self) -> Sequence[Tool]:
        """The tools that can be called now: in the order of the file, each server's by name."""
        return [tool for server in self._servers.values() for tool in server.offered]

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers whose tools cannot be called now."""
        return [Unavailable(each.server, each.reason) for each in self.status() if each.state != State.UP]

    def find(self, full_name: str) -> Tool | None:
        """The tool of that name, also while its server is being started again; `None`: there is none."""
        return next((tool for server in self._servers.values() if (tool := server.find(full_name))), None)

    @asynccontextmanager
    async def prepared(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> AsyncIterator[Prepared]:
        """All that a call needs before it is sent. Never raises, cancellation aside."""
        server = self._servers.get(tool.server)
        if server is None:
            yield Failed(f"There is no tool server {tool.server} to call. Nothing was called.")
            return
        with structlog.contextvars.bound_contextvars(server=tool.server, tool=tool.name, call_id=caller.call_id):
            if known := self._waiting.prepared(tool, arguments, caller) or when_made_anew(tool, caller):
                yield _logged(known)
                return
            async with server.prepared(tool, arguments, caller) as prepared:
                yield _logged(prepared)

    async def give_up(self, call_id: str) -> None:
        """A call that waits for an answer of a person will not go on: what is open of it is ended. Raises nothing."""
        self._waiting.give_up(call_id)

    async def forget(self, person: str, connection: str) -> None:
        """That person's account of a connection is another one now, or none: their sessions with it end."""
        await asyncio.gather(*(server.forget(person, connection) for server in self._servers.values()))

    def _status_of(self, name: str) -> ServerStatus:
        server = self._servers.get(name)
        if server is None:
            return ServerStatus(name, "unsupported", 0, NO_PERSONAL_SIGN_IN)
        usable = len(server.tools) if server.state is State.UP else 0
        return ServerStatus(name, server.state, usable, server.reason, server.withheld)


def _logged(prepared: Prepared) -> Prepared:
    if isinstance(prepared, Ready):
        return replace(prepared, send=partial(_sent, prepared))
    log.info("tool_not_called", outcome=type(prepared).__name__)
    return prepared


async def _sent(ready: Ready, progress: Progress) -> ToolOutcome | NotSent:
    outcome = await ready.send(progress)
    log.info("tool_called", outcome=type(outcome).__name__)
    return outcome


def _server(
    config: ServerConfig, common: Common, tokens: AccountTokens | None, catalogues: Catalogues | None
) -> Server | PersonalServer | None:
    """`None`: it needs accounts, and there are none."""
    if config.account is None:
        return Server(config, common)
    # A session that everybody shares must not carry one person's account.
    return None if tokens is None else PersonalServer(config, config.account, common, tokens, catalogues)
