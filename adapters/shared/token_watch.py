"""Ends what is answered for long once its token does not count any more: it was revoked, its session ended, its person
was removed, or it has expired.

Every request asks whose its token is, but a stream is one request for as long as it is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapters.shared.program_access import Authenticates
from bot.domain import Clock
from bot.identity.principal import Principal
from bot.repeated_failures import RepeatedFailure

LOOK_SECONDS = 1.0
"""Seconds between two looks, while anything is answered for long: one statement for all of it."""
ENDED = "The token is no longer accepted."


@dataclass(eq=False, slots=True)
class WatchedToken:
    """The token of one request."""

    principal: Principal
    end: Callable[[], None] | None
    is_over: bool = False


class TokenWatch:
    """Looks after the tokens of long answers, on whichever replica they are ended."""

    def __init__(self, bearers: Authenticates, clock: Clock, *, every: float = LOOK_SECONDS) -> None:
        self._bearers = bearers
        self._clock = clock
        self._every = every
        self._watched: set[WatchedToken] = set()
        self._task: asyncio.Task[None] | None = None
        self._failure = RepeatedFailure("tokens_not_looked_after")

    @contextmanager
    def watched(self, principal: Principal, end: Callable[[], None] | None = None) -> Iterator[WatchedToken]:
        """Look after the token of a request. `end`: is called once when it does not count any more."""
        token = WatchedToken(principal, end)
        self._watched.add(token)
        if self._task is None:
            self._task = asyncio.create_task(self._look(), name="tokens of long answers")
        try:
            yield token
        finally:
            self._watched.discard(token)
            if not self._watched and self._task is not None:
                self._task.cancel()
                self._task = None

    async def is_over(self, principal: Principal) -> bool:
        """Whether it does not count now."""
        return bool(await self._over([principal]))

    async def _over(self, principals: Collection[Principal]) -> Collection[Principal]:
        now = self._clock()
        keys = {each.key for each in principals if each.key}
        left = await self._bearers.keys_left(keys, now) if keys else frozenset()
        return [
            each
            for each in principals
            if (each.until is not None and each.until <= now) or (each.key and each.key not in left)
        ]

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            tokens = list(self._watched)
            try:
                over = {id(each) for each in await self._over([token.principal for token in tokens])}
            except Exception as error:  # noqa: BLE001  # while the records are away, nothing is shown either
                self._failure.failed(error)
                continue
            self._failure.worked()
            for token in tokens:
                if id(token.principal) in over and not token.is_over:
                    token.is_over = True
                    if token.end is not None:
                        token.end()
