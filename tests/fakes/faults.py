"""What a test makes go wrong in the fake of a chat service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Fault:
    """One way of failing, for so many of the same calls."""

    call: str
    error: str = ""
    """The service's word for it."""
    status: int = 0
    retry_after: float | None = None
    drop: bool = False
    """Act, then cut the connection, so that the caller does not know."""
    times: float = 1
    when: Callable[[Json], bool] = lambda _: True


@dataclass
class Held:
    """The same calls, which are held back until they are released."""

    call: str
    waiting: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let them go on, and all that come later."""
        self._released.set()

    async def reached(self, *, within: float = 10.0) -> None:
        """Wait until one is held. Raises `TimeoutError`."""
        async with asyncio.timeout(within):
            await self._arrived.wait()

    async def hold(self) -> None:
        """Called by the server for every one of them."""
        if self._released.is_set():
            return
        self.waiting += 1
        self._arrived.set()
        try:
            await self._released.wait()
        finally:
            self.waiting -= 1


class Faults:
    """The faults and the holds of one fake."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._holds: list[Held] = []

    def add(self, fault: Fault) -> None:
        """Later faults wait until earlier ones of the same call are used up."""
        self._faults.append(fault)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._faults.clear()

    def hold(self, call: str) -> Held:
        """Hold these calls from now on."""
        held = Held(call)
        self._holds.append(held)
        return held

    def release_all(self) -> None:
        """At the end of the fake: nobody waits for it."""
        for held in self._holds:
            held.release()

    async def held(self, call: str) -> None:
        """Wait while such calls are held."""
        for held in self._holds:
            if held.call == call:
                await held.hold()

    def of(self, call: str, arguments: Json) -> Fault | None:
        """The fault of this call, which uses it up once."""
        for fault in self._faults:
            if fault.call == call and fault.times > 0 and fault.when(arguments):
                fault.times -= 1
                return fault
        return None
