"""What was asked of a service outside and is kept for a while: asked for once, however many want it, and bounded."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from bot.domain import Clock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_REMEMBERED = 10_000
"""Answers that a cache keeps at most; the oldest goes first."""
MEMORY = 3_600.0
"""Seconds for which a refusal counts. Afterwards it is tried again, since apps are upgraded, plans change and
administrators change their minds."""


class Remembered(Generic[Key, Value]):
    """Answers to one kind of question. A failure to find one out is not kept.

    Args:
        keep: Seconds for which an answer counts, or what says that of an answer.
        clock: Seconds; the same clock for all that is asked.
        most: Answers kept at most.
    """

    def __init__(
        self, *, keep: float | Callable[[Value], float], clock: Clock = time.monotonic, most: int = MOST_REMEMBERED
    ) -> None:
        self._keep = keep
        self._clock = clock
        self._answers: Newest[Key, tuple[float, Value]] = Newest(most)
        self._shared: Shared[Key, Value] = Shared()

    async def get(self, key: Key, ask: Callable[[Key], Awaitable[Value]]) -> Value:
        """Returns the answer, from memory while it counts. Raises what `ask` raises."""
        kept = self._answers.get(key)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        return await self._shared.ask(key, lambda: self._find_out(key, ask))

    def put(self, key: Key, answer: Value) -> None:
        """Remember what was found out in another way."""
        seconds = self._keep(answer) if callable(self._keep) else self._keep
        self._answers[key] = (self._clock() + seconds, answer)

    def known(self, key: Key, *, stale: bool = False) -> Value | None:
        """Returns the answer while it counts; with `stale`, however old it is."""
        kept = self._answers.get(key)
        return kept[1] if kept is not None and (stale or self._clock() < kept[0]) else None

    def forget(self, key: Key) -> None:
        """Forgets a key whose value has changed: neither the kept answer nor one on its way counts."""
        self._answers.pop(key, None)
        self._shared.disown(key)

    def forget_where(self, wanted: Callable[[Key], bool]) -> None:
        """Forgets every key for which `wanted` holds."""
        for key in [key for key in (*self._answers, *self._shared.current) if wanted(key)]:
            self.forget(key)

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._shared.close()

    async def _find_out(self, key: Key, ask: Callable[[Key], Awaitable[Value]]) -> Value:
        answer = await ask(key)
        if self._shared.current.get(key) is asyncio.current_task():  # it has not been disowned meanwhile
            self.put(key, answer)
        return answer


class Shared(Generic[Key, Value]):
    """Concurrent asks for one thing share one call. Who stops waiting does not stop the call for the others."""

    def __init__(self) -> None:
        self.current: dict[Key, asyncio.Task[Value]] = {}
        """The calls that whoever asks now shares."""
        self._tasks: set[asyncio.Task[Value]] = set()

    async def ask(self, key: Key, call: Callable[[], Awaitable[Value]]) -> Value:
        """Returns or raises what `call` does, or the call for `key` that is under way already."""
        return await asyncio.shield(self.start(key, call))

    def start(self, key: Key, call: Callable[[], Awaitable[Value]]) -> asyncio.Task[Value]:
        """Starts the call, or joins the one that runs, without waiting for it."""
        task = self.current.get(key)
        if task is None:
            task = self.current[key] = asyncio.ensure_future(_awaited(call))
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._done(key, done))
        return task

    def disown(self, key: Key) -> None:
        """Whoever asks from now on makes a call of their own."""
        self.current.pop(key, None)

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
        if self.current.get(key) is task:
            del self.current[key]
        if not task.cancelled():
            # Marks a failure as seen: those who asked get it, and perhaps nobody waits any more.
            task.exception()


class Newest(OrderedDict[Key, Value]):
    """A dictionary of the `most` entries that were set last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Refusals(Generic[Key]):
    """What was refused in the last `memory` seconds, by whatever refused it: a tenant, a conversation, a channel."""

    def __init__(self, clock: Clock, memory: float = MEMORY) -> None:
        self._clock = clock
        self._memory = memory
        self._until: dict[Key, float] = {}

    def remember(self, where: Key) -> None:
        """Notes that it was refused there."""
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until[where] = now + self._memory

    def hold(self, *where: Key) -> bool:
        """Whether it would be refused in any of these now."""
        now = self._clock()
        return any(self._until.get(each, now) > now for each in where)


async def _awaited(call: Callable[[], Awaitable[Value]]) -> Value:
    return await call()
