"""One person's session with a server: opened at once, attended to, closed when it is not used any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from adapters.tool_servers.accounts import Bearer
from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.life import Common, attend, connected, settle
from adapters.tool_servers.listing import Listing
from adapters.tool_servers.replies import FaultError, FaultKind
from graph.ports import AccountNeeded
from policies.model import Tool

if TYPE_CHECKING:
    from adapters.tool_servers.connection import Connection

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Unopened:
    """The session could not be opened."""

    reason: str
    """Ends a sentence that begins with the server's name."""


@dataclass(slots=True)
class Opened:
    """An open session and what this person may call."""

    connection: Connection
    listed: list[Any]
    """As it was listed."""
    tools: tuple[Tool, ...]


class PersonalSession:
    """A session with one person's account. `listed` is told what it lists, `gone` when it has ended."""

    def __init__(
        self,
        config: ServerConfig,
        common: Common,
        bearer: Bearer,
        listed: Callable[[list[Any]], Awaitable[Listing]],
        gone: Callable[[PersonalSession], None],
    ) -> None:
        self._config = config
        self._common = common
        self._bearer = bearer
        self._listed = listed
        self._gone = gone
        self._state: asyncio.Future[Opened | Unopened | AccountNeeded] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._began = time.monotonic()
        self._lost_early = ""

    @property
    def person(self) -> str:
        """Whose session it is."""
        return self._bearer.person

    @property
    def _connection(self) -> Connection | None:
        opened = self._state.result() if self._state.done() and not self._state.cancelled() else None
        return opened.connection if isinstance(opened, Opened) else None

    @property
    def busy(self) -> bool:
        """Whether it is being opened, or a call is in flight or waits."""
        return self._connection.busy if self._connection else not self._state.done()

    @property
    def is_usable(self) -> bool:
        """Whether calls may still be made over it; so it is while it is being opened."""
        its = self._connection
        return its is None or not (its.retired or its.lost.done() or its.is_in_doubt)

    @property
    def last_used(self) -> float:
        """When a call ended last, by the monotonic clock."""
        return self._connection.last_used if self._connection else self._began

    def start(self) -> None:
        """Begin to open it; returns at once."""
        self._task = asyncio.create_task(self._live(), name=f"personal-session-{self._config.name}")
        self._task.add_done_callback(lambda _: self._never_opened())

    async def opened(self) -> Opened | Unopened | AccountNeeded:
        """Wait until it is open, or is known not to be."""
        return await asyncio.shield(self._state)

    def opened_now(self) -> Opened | None:
        """The open session over which a call can leave now; `None`: it has ended, or only serves what is open in it."""
        opened = self._state.result() if self._state.done() and not self._state.cancelled() else None
        return opened if isinstance(opened, Opened) and self.is_usable else None

    async def account(self) -> bool:
        """Look up the person's account for the call that is about to be made; whether there is one. Raises
        `AccountUnknown`."""
        return await self._bearer.current() is not None

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
        failed: Unopened | AccountNeeded = Unopened("is shut down")
        try:
            async with connected(self._config, self._common, relist, self._bearer) as (connection, listed):
                opened = Opened(connection, listed, (await self._listed(listed)).tools)
                self._state.set_result(opened)

                async def list_again() -> None:
                    await self._list_again(opened)

                timings = self._common.timings
                reason = await attend(connection, timings, relist, list_again, idle=timings.idle)
                settle(connection.lost, reason)
                self._gone(self)
        except Exception as error:  # noqa: BLE001 - whatever a transport or a server does, it is opened again
            failed = self._what(error)
        finally:
            self._gone(self)
            if not self._state.done():
                self._state.set_result(Unopened(self._lost_early) if self._lost_early else failed)

    def _never_opened(self) -> None:
        """A task that is cancelled before its first step runs nothing, no `finally` either."""
        if not self._state.done():
            self._gone(self)
            self._state.set_result(Unopened(self._lost_early or "is shut down"))

    async def _list_again(self, opened: Opened) -> None:
        try:
            async with asyncio.timeout(self._common.timings.relist):
                opened.listed = await opened.connection.list_tools()
                opened.tools = (await self._listed(opened.listed)).tools
        except Exception as error:  # noqa: BLE001 - of the SDK or the server; the tools known so far stay
            log.warning("tool_server_not_listed_again", server=self._config.name, error=type(error).__name__)

    def _what(self, error: Exception) -> Unopened | AccountNeeded:
        from adapters.tool_servers.reasons import first_cause, reason_of  # noqa: PLC0415 - it brings the SDK

        cause = first_cause(error)
        if isinstance(cause, FaultError) and cause.fault.kind is FaultKind.SIGN_IN:
            return AccountNeeded(self._bearer.connection, cause.fault.challenge)
        log.warning("personal_session_not_opened", server=self._config.name, cause=type(cause).__name__)
        return Unopened(reason_of(error))
