"""What a test makes go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.teams.refused import STATUSES

CODES = {
    412: "PreconditionFailed",
    429: "TooManyRequests",
    502: "BadGateway",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
}
"""What Teams calls a status that is not about the request."""


@dataclass
class Fault:
    """One way of failing, for so many calls of a verb."""

    verb: str
    status: int = 0
    code: str = ""
    retry_after: float | None = None
    drop: bool = False
    """Act, then cut the connection, so that the caller does not know."""
    times: float = 1
    when: Callable[[dict[str, Any]], bool] = lambda _body: True

    def __post_init__(self) -> None:
        if not (self.status or self.code or self.drop):
            raise ValueError("a fault has a status, a code, or drops the connection")
        self.status = self.status or STATUSES.get(self.code, 400)
        self.code = self.code or CODES.get(self.status, "ServiceError")


@dataclass
class Held:
    """Calls of a verb that are held back until they are released."""

    verb: str
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
        """Called by the server for every call of the verb."""
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
        """Later faults wait until earlier ones of the verb are used up."""
        self._faults.append(fault)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._faults.clear()

    def hold(self, verb: str) -> Held:
        """Hold the verb's calls from now on."""
        held = Held(verb)
        self._holds.append(held)
        return held

    def release_all(self) -> None:
        """At the end of the fake: nobody waits for it."""
        for held in self._holds:
            held.release()

    async def held(self, verb: str) -> None:
        """Wait while the verb is held."""
        for held in self._holds:
            if held.verb == verb:
                await held.hold()

    def of(self, verb: str, body: dict[str, Any]) -> Fault | None:
        """The fault of this call, which uses it up once."""
        for fault in self._faults:
            if fault.verb == verb and fault.times > 0 and fault.when(body):
                fault.times -= 1
                return fault
        return None
