"""The port of whatever sees to it that deliveries are handled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.records.deliveries import Delivery

Handler = Callable[[Delivery], Awaitable[None]]
"""Handles a delivery and marks it as done in the same transaction as its effects."""


class Engine(Protocol):
    """Hands each thread's deliveries to the handler, one at a time, oldest first; threads wait for nobody else."""

    def wake(self, thread_id: str) -> None:
        """There is something to handle in this thread; returns at once."""
        ...

    def look_again(self) -> None:
        """A timer was set: see when the next one is due."""
        ...

    def held_back(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Within it, nothing is begun in this thread. What is being handled goes on."""
        ...

    def has_begun(self, delivery: Delivery) -> bool:
        """Whether the handler was given this delivery, which still waits, or may have been before the last start."""
        ...

    def interrupt(self, thread_id: str) -> None:
        """Break off what is being handled in this thread now. What is broken off is not handled again if its delivery
        is no longer waiting."""
        ...
