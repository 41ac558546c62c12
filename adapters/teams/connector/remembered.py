"""Answers that are asked for once and kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from bot.clock import Clock

Key = TypeVar("Key", bound=Hashable)
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
            task = self._current[key] = asyncio.ensure_future(_awaited(call))
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._done(key, done))
        return task

    def is_current(self, key: Key) -> bool:
        """Inside a call: whether it has not been disowned meanwhile."""
        return self._current.get(key) is asyncio.current_task()

    def disown(self, wanted: Callable[[Key], bool]) -> None:
        """Whoever asks from now on for one of these makes a call of their own."""
        for key in list(filter(wanted, self._current)):
            del self._current[key]

    async def close(self) -> None:
        """End the calls that are under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, key: Key, task: asyncio.Task[Value]) -> None:
        self._tasks.discard(task)
        if self._current.get(key) is task:
            del self._current[key]
        if not task.cancelled():
            # Marks a failure as seen: those who asked get it, and perhaps nobody waits any more.
            task.exception()


class Remembered(Generic[Key, Value]):
    """Answers to one kind of question; a failure to find one out is not kept.

    `keep`: seconds for which an answer counts.
    """

    def __init__(self, *, keep: Callable[[Value], float], clock: Clock) -> None:
        self._keep = keep
        self._clock = clock
        self._answers: dict[Key, tuple[float, Value]] = {}
        self._shared: Shared[Key, Value] = Shared()

    async def get(self, key: Key, ask: Callable[[], Awaitable[Value]]) -> Value:
        """The answer, from memory while it counts. Raises what asking raises."""
        kept = self._answers.get(key)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        return await self._shared.ask(key, lambda: self._find_out(key, ask))

    def put(self, key: Key, answer: Value) -> None:
        """Remember what was found out in another way."""
        self._answers.pop(key, None)  # so that the dictionary is in the order of age
        self._answers[key] = (self._clock() + self._keep(answer), answer)
        if len(self._answers) > MOST:
            del self._answers[next(iter(self._answers))]

    def known(self, key: Key) -> Value | None:
        """The answer while it counts."""
        kept = self._answers.get(key)
        return kept[1] if kept is not None and self._clock() < kept[0] else None

    def forget(self, wanted: Callable[[Key], bool]) -> None:
        """These have changed: neither the answers nor those that are still on their way count."""
        for key in list(filter(wanted, self._answers)):
            del self._answers[key]
        self._shared.disown(wanted)

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._shared.close()

    async def _find_out(self, key: Key, ask: Callable[[], Awaitable[Value]]) -> Value:
        answer = await ask()
        if self._shared.is_current(key):
            self.put(key, answer)
        return answer


async def _awaited(call: Callable[[], Awaitable[Value]]) -> Value:
    return await call()
