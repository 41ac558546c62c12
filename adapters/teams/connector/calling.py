"""Calls to the Bot Connector with all of their tries: within Teams' rate limits, and in order."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import structlog

from adapters.teams.api import ConnectorFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.addresses import is_local, service_url
from adapters.teams.connector.rate_limits import Line, RateLimits
from adapters.teams.connector.tokens import Tokens
from adapters.teams.connector.wire import RETRIED, Call, Operation, Wire
from adapters.teams.ids import TeamsLocation

log = structlog.get_logger(__name__)

REQUEST_SECONDS = 10.0
"""What one try may take, from connecting to the last byte."""
REPEATABLE = frozenset({"update", "delete", "open_chat", "member", "members"})
"""What may be done twice: whatever reads, and whatever does the same the second time."""

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class ConnectorRequest:
    """What is to be done at the Bot Connector."""

    verb: str
    location: TeamsLocation
    line: Line
    operation: Operation
    query: Mapping[str, str] = field(default_factory=dict)


class Calling:
    """Makes the calls, and makes them again where that is right. `close` in the end.

    Calls that write to one conversation go out one after the other, in the order in which they were asked for; a try
    that is to be repeated holds the others back.
    """

    def __init__(
        self,
        config: TeamsConfig,
        tokens: Tokens,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._wire = Wire()
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._limits = RateLimits()
        self._queues: WeakValueDictionary[Line, asyncio.Lock] = WeakValueDictionary()

    async def run(self, request: ConnectorRequest, patience: float) -> Any:
        """What was answered. Raises `ConnectorFailed`, at once where it would have to wait for longer than that."""
        deadline = self._clock() + patience
        # Reading has no order to keep.
        queue = nullcontext() if request.line.kind == "reading" else self._in_order(request, deadline)
        async with queue:
            return await self._try(request, deadline)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def _try(self, request: ConnectorRequest, deadline: float) -> Any:
        tries, renewed = 0, False
        while True:
            await self._turn(request, deadline)
            token = await self._token(request, deadline)
            call = Call(request.verb, token, min(self._left(request, deadline), REQUEST_SECONDS), request.query)
            try:
                return await self._wire.exchange(self._service(request), call, request.operation)
            except ConnectorFailed as failure:
                if failure.status == 401 and token and not renewed:
                    self._tokens.refused(token)
                    renewed = True
                    continue
                pause = self._pause(failure, tries)
                if failure.status == 429:
                    self._limits.pause(request.line, self._clock() + pause)
                if not _may_repeat(failure):
                    raise
                if self._clock() + pause >= deadline:
                    failure.retry_after = pause if failure.status == 429 else failure.retry_after
                    raise
                tries += 1
                log.info("teams_call_retried", verb=request.verb, error=failure.error, tries=tries)
            await self._sleep(pause)

    @asynccontextmanager
    async def _in_order(self, request: ConnectorRequest, deadline: float) -> AsyncIterator[None]:
        """Wait until those that were asked for before are done with."""
        queue = self._queues.get(request.line)
        if queue is None:
            queue = self._queues[request.line] = asyncio.Lock()
        try:
            async with asyncio.timeout(self._left(request, deadline)):
                await queue.acquire()
        except TimeoutError:
            raise ConnectorFailed(request.verb, "ratelimited", retry_after=1.0) from None
        try:
            yield
        finally:
            queue.release()

    async def _turn(self, request: ConnectorRequest, deadline: float) -> None:
        """Wait until this call may go out."""
        while True:
            now = self._clock()
            at = self._limits.reserve(request.line, now, deadline)
            if at > deadline:
                raise ConnectorFailed(request.verb, "ratelimited", retry_after=at - now)
            if at > now:
                await self._sleep(at - now)
            if self._limits.paused_until(request.line) <= max(at, self._clock()):
                return

    async def _token(self, request: ConnectorRequest, deadline: float) -> str:
        """What to speak with. Local clients are answered as they came: without a token."""
        if self._config.local_unauthenticated and is_local(self._service(request)):
            return ""
        try:
            async with asyncio.timeout(self._left(request, deadline)):
                return await self._tokens.token()
        except TimeoutError:
            raise ConnectorFailed(request.verb, "no_token") from None
        except ConnectorFailed as failure:
            # A secret that is refused today may be set right tomorrow: what is to be posted is kept until then.
            raise ConnectorFailed(request.verb, "no_token", retry_after=failure.retry_after) from failure

    def _service(self, request: ConnectorRequest) -> str:
        """Where to. TeamsLocations come from activities that were admitted, or have no address."""
        url = service_url(request.location.service_url or self._config.cloud.service_url)
        if not url:
            raise ConnectorFailed(request.verb, "service_url", permanent=True)
        return url

    def _left(self, request: ConnectorRequest, deadline: float) -> float:
        left = deadline - self._clock()
        if left <= 0:
            raise ConnectorFailed(request.verb, "timeout")
        return left

    def _pause(self, failure: ConnectorFailed, tries: int) -> float:
        """Seconds: as many as Teams asks for, or doubling; more of them by chance, so that many do not come back at
        the same moment."""
        if failure.retry_after is not None:
            return failure.retry_after + self._jitter() * _FIRST_PAUSE
        longest: float = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
        return longest * (0.5 + self._jitter() / 2)


def _may_repeat(failure: ConnectorFailed) -> bool:
    """Posting twice is worse than posting late."""
    if failure.permanent or failure.status == 401:
        return False
    return failure.status in RETRIED or not failure.may_have_acted or failure.verb in REPEATABLE
