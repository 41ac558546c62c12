"""Slack's Web API as one workspace's bot, within its rate limits: `adapters.slack.api.Api`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from adapters.slack.api import PATIENCE, ApiFailed
from adapters.slack.web_api.rate_limits import Line, RateLimits, line_of
from adapters.slack.web_api.wire import READING, Wire

log = structlog.get_logger(__name__)

REPEATABLE = READING | {"chat.update", "conversations.open", "views.publish"}
"""Methods that may be called twice: those that read, and those that do the same the second time."""

_BAD_TOKEN = frozenset({"token_expired", "invalid_auth", "token_revoked", "account_inactive"})
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 5.0

Tokens = Callable[[str], Awaitable[str]]
"""team → bot token. Raises `ApiFailed`."""


def _keep(_team: str, _token: str) -> None:
    """A token that is configured stays what it is."""


class WebApi:
    """Calls the methods, and calls again where that is safe.

    `tokens`: what to speak with; asked before each try, so it should remember.
    `refused`: told of a token that Slack did not take, before `tokens` is asked for another.
    """

    def __init__(
        self,
        tokens: Tokens,
        api_url: str,
        *,
        refused: Callable[[str, str], None] = _keep,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._tokens = tokens
        self._refused = refused
        self._wire = Wire(api_url)
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._limits = RateLimits()

    async def call(
        self,
        team: str,
        method: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: float = PATIENCE,
    ) -> Mapping[str, Any]:
        """What Slack answered. Raises `ApiFailed`, and at once when the line is paused for longer than `patience`."""
        given = arguments or {}
        line = line_of(team, method, str(given.get("channel", "")))
        deadline = self._clock() + patience
        tries, renewed = 0, False
        while True:
            await self._turn(line, deadline)
            token = await self._token(team, method, deadline)
            try:
                return await self._wire.request(method, given, token=token, seconds=self._left(method, deadline))
            except ApiFailed as failure:
                if failure.error == "ratelimited":
                    self._pause(line, failure.retry_after or 1.0)
                    continue
                if failure.error in _BAD_TOKEN and not renewed and await self._has_another(team, token):
                    renewed = True
                    continue
                pause = self._pause_before_retry(tries)
                if not _may_repeat(failure) or self._clock() + pause >= deadline:
                    raise
                tries += 1
                log.info("slack_call_retried", team=team, method=method, error=failure.error, tries=tries)
            await self._sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def _turn(self, line: Line, deadline: float) -> None:
        """Wait until this call may go out."""
        while True:
            now = self._clock()
            slot = self._limits.reserve(line, now, deadline)
            wait = slot.at - now
            if slot.at > deadline:
                raise ApiFailed(line.method, "ratelimited", retry_after=wait)
            if wait > 0:
                await self._sleep(wait)
            if not self._limits.is_void(line, slot):
                return

    def _pause(self, line: Line, seconds: float) -> None:
        log.info("slack_rate_limited", team=line.team, method=line.method, channel=line.channel, seconds=seconds)
        self._limits.pause(line, self._clock(), seconds)

    def _left(self, method: str, deadline: float) -> float:
        left = deadline - self._clock()
        if left <= 0:
            raise ApiFailed(method, "timeout")
        return left

    async def _token(self, team: str, method: str, deadline: float) -> str:
        try:
            async with asyncio.timeout(self._left(method, deadline)):
                return await self._tokens(team)
        except TimeoutError:
            raise ApiFailed(method, "timeout") from None
        except ApiFailed as failure:
            # Whatever was done to find out the token, what we were asked for was not.
            error, permanent, retry_after = failure.error, failure.permanent, failure.retry_after
            raise ApiFailed(method, error, permanent=permanent, retry_after=retry_after) from failure

    async def _has_another(self, team: str, token: str) -> bool:
        """Whether there is a newer token than the one that Slack did not take: it was rotated meanwhile."""
        self._refused(team, token)
        try:
            return await self._tokens(team) != token
        except ApiFailed as failure:
            log.warning("slack_token_not_renewed", team=team, error=failure.error)
            return False

    def _pause_before_retry(self, tries: int) -> float:
        """Seconds, doubling, half of them by chance: so that many do not come back at the same moment."""
        longest: float = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
        return longest * (0.5 + self._jitter() / 2)


def _may_repeat(failure: ApiFailed) -> bool:
    """Posting twice is worse than posting late."""
    if failure.permanent:
        return False
    return not failure.may_have_acted or failure.method in REPEATABLE
