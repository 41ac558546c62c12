"""Answers that are asked for once and kept: what Slack, or the database, has told us does not change every minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from bot.clock import Clock

Key = TypeVar("Key")
Value = TypeVar("Value")

MOST = 10_000
"""Answers kept at most; the oldest goes first."""


class Shared(Generic[Key, Value]):
    """Concurrent asks for one thing share one call. Who stops waiting does not stop the call for the others."""

    def __init__(self) -> None:
        self._current: dict[Key, asyncio.Task[Value]] = {}
        self._tasks: set[asyncio.Task[Value]] = set()

    async def ask(self, key: Key, call: Callable[[], Awaitable[Value]]) -> Value:
        """What `call` returns or raises, or the call for `key` that is under way already."""
        return await asyncio.shield(self.start(key, call))

    def start(self, key: Key, call: Callable[[], Awaitable[Value]]) -> asyncio.Task[Value]:
        """The same without waiting for it."""
        task = self._current.get(key)
        if task is None:
            task = self._current[key] = asyncio.ensure_future(_run(call))
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._done(key, done))
        return task

    def is_current(self, key: Key) -> bool:
        """Inside a call: whether it has not been disowned meanwhile."""
        return self._current.get(key) is asyncio.current_task()

    def disown(self, key: Key) -> None:
        """Whoever asks from now on makes a call of their own."""
        self._current.pop(key, None)

    def disown_all(self) -> None:
        """The same for every key."""
        self._current.clear()

    async def close(self) -> None:
        """End the calls that are under way."""
        for task in self._tasks:
            task.cancel()
        await self.finish()

    async def finish(self) -> None:
        """Wait for the calls that are under way."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, key: Key, task: asyncio.Task[Value]) -> None:
        self._tasks.discard(task)
        if self._current.get(key) is task:
            del self._current[key]
        if not task.cancelled():
            # Marks a failure as seen: those who asked get it, and perhaps nobody waits any more.
            task.exception()


class Remembered(Generic[Key, Value]):
    """Answers to one kind of question.

    `ask`: finds out; what it raises is not kept.
    `keep`: seconds until an answer is asked for anew.
    """

    def __init__(
        self,
        ask: Callable[[Key], Awaitable[Value]],
        *,
        keep: float,
        clock: Clock = time.monotonic,
        most: int = MOST,
    ) -> None:
        self._ask = ask
        self._keep = keep
        self._clock = clock
        self._most = most
        self._answers: dict[Key, tuple[float, Value]] = {}
        self._shared: Shared[Key, Value] = Shared()

    async def get(self, key: Key) -> Value:
        """The answer, from memory when it is fresh. Raises what asking raises."""
        kept = self._answers.get(key)
        if kept is not None and self._clock() - kept[0] < self._keep:
            return kept[1]
        return await self._shared.ask(key, lambda: self._find_out(key))

    def known(self, key: Key) -> Value | None:
        """The answer if there was one, however old."""
        kept = self._answers.get(key)
        return kept[1] if kept else None

    def forget(self, key: Key) -> None:
        """It has changed: neither the answer nor one that is still on its way counts."""
        self._answers.pop(key, None)
        self._shared.disown(key)

    def forget_all(self) -> None:
        """The same for every key."""
        self._answers.clear()
        self._shared.disown_all()

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._shared.close()

    async def _find_out(self, key: Key) -> Value:
        answer = await self._ask(key)
        if self._shared.is_current(key):
            self._answers.pop(key, None)  # so that the dictionary is in the order of age
            self._answers[key] = (self._clock(), answer)
            if len(self._answers) > self._most:
                del self._answers[next(iter(self._answers))]
        return answer


async def _run(call: Callable[[], Awaitable[Value]]) -> Value:
    return await call()
