"""Calls to a service outside: their one failure, the service's rate limits, and calling again where that is right."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import structlog

log = structlog.get_logger(__name__)
Answer = TypeVar("Answer")

_MANY = 1_000
"""Lines remembered before those that lie idle are forgotten."""


class CallFailed(Exception):  # noqa: N818  # like PostFailed
    """A service did not do what it was asked.

    Attributes:
        call: What it was asked: a method or verb.
        error: The service's own word for it (`channel_not_found`, `ConversationNotFound`), or ours: `connection`,
            `certificate` (not trusted here), `timeout`, `bad_answer`, `ratelimited`, `http_503`.
        status: HTTP status of the answer, where that says more than the word; else 0.
        permanent: Asking again cannot help.
        retry_after: Seconds that the service asks to wait.
        may_have_acted: No answer came, so that it may have been done all the same.
    """

    def __init__(
        self,
        call: str,
        error: str,
        *,
        status: int = 0,
        permanent: bool = False,
        retry_after: float | None = None,
        may_have_acted: bool = False,
    ) -> None:
        super().__init__(f"{call}: {error}")
        self.call = call
        self.error = error
        self.status = status
        self.permanent = permanent
        self.retry_after = retry_after
        self.may_have_acted = may_have_acted


@contextmanager
def failures_logged_as(event: str, **details: object) -> Iterator[None]:
    """What is called within is an extra: a failure is logged, and not raised."""
    try:
        yield
    except CallFailed as failure:
        log.info(event, error=failure.error, **details)


# ---------------------------------------------------------------------------------------- rate limits


class AfterRefusals:
    """No pace until the service has refused a call; then one call each `interval` seconds, until none had to wait for
    its turn in `quiet` seconds. Times are seconds.

    For a service that allows bursts without saying how large: it is the one who knows.
    """

    def __init__(self, interval: float, quiet: float) -> None:
        self._interval = interval
        self._quiet = quiet
        self._next = -math.inf
        """When the next call may go out."""
        self._ends = -math.inf
        """When the pace ends, if nobody has to wait until then."""

    def earliest(self, at: float) -> float:
        """Returns when a call may go out, at `at` or later."""
        return max(at, self._next)

    def take(self, at: float) -> None:
        """A call will go out then."""
        if at <= self._next:  # it had to wait
            self._ends = at + self._quiet
        if at < self._ends:
            self._next = at + self._interval

    def pause(self, until: float) -> None:
        """Nothing goes out before then; and then one after the other."""
        self._next, self._ends = until, until + self._quiet

    def is_idle(self, now: float) -> bool:
        """Whether there is no pace any more."""
        return self._ends <= now and self._next <= now


class Windows:
    """Limits calls in each of several spans of time: pairs of calls and seconds, the shortest span first."""

    def __init__(self, *windows: tuple[int, float]) -> None:
        self._windows = windows
        self._times: deque[float] = deque(maxlen=max((most for most, _ in windows), default=0))
        """When the newest calls went out, or will."""

    def earliest(self, at: float) -> float:
        """Returns when a call may go out, at `at` or later."""
        for most, seconds in self._windows:
            if len(self._times) >= most:
                at = max(at, self._times[-most] + seconds)
        return at

    def take(self, at: float) -> None:
        """A call will go out then."""
        self._times.append(at)

    def pause(self, until: float) -> None:
        """Changes nothing: what went out counts as before."""

    def is_idle(self, now: float) -> bool:
        """Whether the longest span is over since the newest call."""
        return not self._times or self._times[-1] + self._windows[-1][1] <= now


Pace = AfterRefusals | Windows
"""How fast calls may follow each other in one line."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A caller's time."""

    at: float
    pauses: int


@dataclass(slots=True)
class _LineState:
    pace: Pace
    pauses: int = 0
    paused_until: float = 0.0


class RateLimits:
    """Gives every call its time, first come, first served. Times are seconds on the caller's clock; nothing waits.

    A line is what the service counts together; `pace_of` says how fast its calls may follow each other.
    """

    def __init__(self, pace_of: Callable[[Hashable], Pace]) -> None:
        self._pace_of = pace_of
        self._states: dict[Hashable, _LineState] = {}

    def reserve(self, line: Hashable, now: float, until: float) -> Slot:
        """Returns the time at which the call may go out; one that is later than `until` is not kept for it."""
        state = self._state(line, now)
        at = state.pace.earliest(max(now, state.paused_until))
        if at <= until:
            state.pace.take(at)
        return Slot(at, state.pauses)

    def pause(self, line: Hashable, now: float, seconds: float) -> None:
        """The service asked to wait: nobody in this line may call before that many seconds.

        Slots given before are void: who has one asks for another when its time has come.
        """
        state = self._state(line, now)
        state.pauses += 1
        state.paused_until = max(state.paused_until, now + seconds)
        state.pace.pause(state.paused_until)

    def is_void(self, line: Hashable, slot: Slot) -> bool:
        """Whether the service has asked to wait since the slot was given."""
        state = self._states.get(line)
        return state is None or state.pauses != slot.pauses

    def _state(self, line: Hashable, now: float) -> _LineState:
        state = self._states.get(line)
        if state is None:
            if len(self._states) >= _MANY:
                self._states = {
                    each: s for each, s in self._states.items() if s.paused_until > now or not s.pace.is_idle(now)
                }
            state = self._states[line] = _LineState(self._pace_of(line))
        return state


# ---------------------------------------------------------------------------- calls, with their retries


class PauseExchange(Protocol):
    """Lets processes that call a service as one know what each of them was asked to wait."""

    def asked(self, service: str, line: str, seconds: float) -> None:
        """The service has asked this process to wait. Returns at once."""
        ...

    def hears(self, service: str, paused: Callable[[str, float], None]) -> None:
        """`paused` is called with a line and seconds when another process was asked to wait."""
        ...


class Calls:
    """Makes the calls to one service within its rate limits, and makes them again where that is right.

    Args:
        service: For the log.
        pace_of: How fast the calls of a line may follow each other.
        repeatable: Calls that may be made twice: those that read, and those that do the same the second time. Others
            are repeated only where it is certain that nothing was done: posting twice is worse than posting late.
        pauses: Seconds before the second try, doubling up to the other number.
        spread: Seconds at most, by chance, that are added to what the service asks to wait.
        exchange: Lets other processes wait too. Lines are strings, or tuples of them, then. `None`: there are none.
    """

    def __init__(
        self,
        service: str,
        pace_of: Callable[[Hashable], Pace],
        *,
        repeatable: frozenset[str],
        pauses: tuple[float, float],
        spread: float = 0.0,
        exchange: PauseExchange | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.clock = clock
        self._service = service
        self._limits = RateLimits(pace_of)
        self._repeatable = repeatable
        self._pauses = pauses
        self._spread = spread
        self._sleep = sleep
        self._jitter = jitter
        self._exchange = exchange
        if exchange is not None:
            exchange.hears(service, self._paused_elsewhere)

    async def run(
        self,
        call: str,
        line: Hashable,
        deadline: float,
        send: Callable[[str, float], Awaitable[Answer]],
        *,
        token: Callable[[], Awaitable[str]],
        renewed: Callable[[CallFailed, str], Awaitable[bool]],
    ) -> Answer:
        """Returns what was answered. Raises `CallFailed`, and at once when the line is paused beyond the deadline.

        Args:
            call: Its name, for failures and the log.
            line: What the service counts it with.
            deadline: On `clock`.
            send: Makes one try, with a token, within so many seconds. Raises `CallFailed`.
            token: What to speak with; asked before each try, so it should remember. Raises `CallFailed`.
            renewed: Told of a failure and the token, whether there is another token to try with; once a call.
        """
        tries, has_renewed = 0, False
        while True:
            await self._turn(call, line, deadline)
            speaks_with = await self._token(call, token, deadline)
            try:
                return await send(speaks_with, self.left(call, deadline))
            except CallFailed as failure:
                if not has_renewed and await renewed(failure, speaks_with):
                    has_renewed = True
                    continue
                pause = self._pause(failure, tries)
                tries += 1
                if failure.error == "ratelimited":
                    log.info("rate_limited", service=self._service, call=call, line=line, seconds=pause)
                    self._limits.pause(line, self.clock(), pause)
                    if self._exchange is not None:
                        self._exchange.asked(self._service, json.dumps(line), pause)
                    continue
                if not self._may_repeat(failure) or self.clock() + pause >= deadline:
                    raise
                log.info("call_retried", service=self._service, call=call, error=failure.error, tries=tries)
            await self._sleep(pause)

    def _paused_elsewhere(self, line: str, seconds: float) -> None:
        parts: Any = json.loads(line)
        self._limits.pause(tuple(parts) if isinstance(parts, list) else parts, self.clock(), seconds)

    def left(self, call: str, deadline: float) -> float:
        """Returns the seconds until the deadline. Raises `CallFailed` when there are none."""
        left = deadline - self.clock()
        if left <= 0:
            raise CallFailed(call, "timeout")
        return left

    async def _turn(self, call: str, line: Hashable, deadline: float) -> None:
        """Wait until this call may go out."""
        while True:
            now = self.clock()
            slot = self._limits.reserve(line, now, deadline)
            wait = slot.at - now
            if slot.at > deadline:
                raise CallFailed(call, "ratelimited", retry_after=wait)
            if wait > 0:
                await self._sleep(wait)
            if not self._limits.is_void(line, slot):
                return

    async def _token(self, call: str, token: Callable[[], Awaitable[str]], deadline: float) -> str:
        try:
            async with asyncio.timeout(self.left(call, deadline)):
                return await token()
        except TimeoutError:
            raise CallFailed(call, "timeout") from None
        except CallFailed as failure:
            # Whatever was done to find out the token, what we were asked for was not.
            error, permanent, retry_after = failure.error, failure.permanent, failure.retry_after
            raise CallFailed(call, error, permanent=permanent, retry_after=retry_after) from failure

    def _pause(self, failure: CallFailed, tries: int) -> float:
        """Seconds: as many as the service asks for, or doubling; some of them by chance, so that many do not come back
        at the same moment."""
        if failure.retry_after is not None:
            return failure.retry_after + self._jitter() * self._spread
        first, longest = self._pauses
        return float(min(first * 2.0**tries, longest)) * (0.5 + self._jitter() / 2)

    def _may_repeat(self, failure: CallFailed) -> bool:
        if failure.permanent or failure.status == 401:
            return False
        return not failure.may_have_acted or failure.call in self._repeatable
