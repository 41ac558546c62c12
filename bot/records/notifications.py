"""What the processes on one PostgreSQL tell each other: keys, on channels, by NOTIFY.

Only keys are told, never what stands behind them: who hears one reads the records. NOTIFY takes a lock at its commit
that is one for the whole server, so it is never part of the transaction that it is about: it follows the commit, on a
connection of its own, for all that has come together meanwhile. What is told while nobody can be reached is told
later; what a listener could not hear, because its connection was broken, it learns as "something may have been missed".
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
import structlog

from bot.records.postgres_connections import BoundedConnection, connection_parameters
from bot.records.postgresql import connection_settings
from bot.repeated_failures import RepeatedFailure

log = structlog.get_logger(__name__)
LISTEN_SECONDS = 2.5
"""Seconds after which it is found out again whether the connection still leads anywhere: what is told to a silent one
is not heard until then."""
LISTENED_SECONDS = 2.5
"""Seconds that this may take."""
RECONNECT_SECONDS = 1.0
"""Seconds until a broken connection is made anew."""
TELL_SECONDS = 10.0
"""Seconds that telling may take."""
LAST_SECONDS = 1.0
"""Seconds that what is still to be told has when the process ends."""
LONGEST_KEY = 7_000
"""Bytes; NOTIFY takes 8,000."""
MOST_WAITING = 10_000
"""Keys that wait to be told: of more, listeners learn only that they have missed some."""
_MISSED = ""
"""Told instead of keys that cannot be."""
_TELL = (
    "SELECT pg_notify(channel, key) FROM unnest(%(channels)s::text[], %(keys)b::text[]) WITH ORDINALITY "
    "AS told (channel, key, number) ORDER BY number"
)


@dataclass(slots=True)
class _Batch:
    """What is told together."""

    keys: dict[tuple[str, str], None] = field(default_factory=dict)
    """Channel and key, in the order in which they came, each once."""
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    """Of those who wait until it is told."""

    def add(self, channel: str, key: str) -> None:
        """One more, unless it is too long, has a character that PostgreSQL does not take, or there are too many."""
        if len(key.encode()) > LONGEST_KEY or "\0" in key or len(self.keys) >= MOST_WAITING:
            key = _MISSED
        self.keys[channel, key] = None


@dataclass(frozen=True, slots=True)
class _Listener:
    told: Callable[[str], None]
    missed: Callable[[], None]


class Notifications:
    """Tells the other processes, and hears what they tell. `start` after everybody has subscribed.

    A key is told at least once to each process that listens, this one included, and in order. Whoever hears it acts on
    the records as they are then, so that hearing it twice does no harm.

    Args:
        address: of the database (`postgresql://…`); a direct one, since a pool of transactions cannot listen.
    """

    def __init__(self, address: str) -> None:
        self.name = secrets.token_hex(6)
        """Of this process, as long as it lives: for keys that it need not act on itself."""
        self._address = address
        self._listeners: dict[str, list[_Listener]] = {}
        self._batch = _Batch()
        self._is_something_to_tell = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def subscribe(self, channel: str, told: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Have `told` called with each key that is told on a channel, and `missed` when some may not have been heard:
        whenever the connection has been made, and for what could not be told. Neither may raise, nor take long.

        `channel`: at most 63 bytes; PostgreSQL has one space of names for them in a database.
        """
        if self._tasks:
            raise RuntimeError("it listens already")
        self._listeners.setdefault(channel, []).append(_Listener(told, missed))

    async def start(self) -> None:
        """Begin to listen and to tell; returns at once."""
        loops = {"listener": self._listen, "teller": self._keep_telling}
        self._tasks = [asyncio.create_task(loop(), name=f"notifications {name}") for name, loop in loops.items()]

    async def stop(self) -> None:
        """Tell what is still to be told, if that can be done soon, and hear nothing more."""
        self._stopping = True
        if self._tasks:
            self._is_something_to_tell.set()
            await asyncio.wait([self._tasks[1]], timeout=LAST_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def tell(self, channel: str, *keys: str) -> None:
        """Tell these keys soon. Returns at once."""
        for key in keys:
            self._batch.add(channel, key)
        if keys:
            self._is_something_to_tell.set()

    async def tell_now(self, channel: str, key: str, within: float) -> bool:
        """Tell a key, and wait until it is told; false when that took longer than so many seconds. It is told
        later then."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tell(channel, key)
        self._batch.waiting.append(told)
        await asyncio.wait([told], timeout=within)
        return told.done()

    # ------------------------------------------------------------------------------------------- telling

    async def _connect(self) -> BoundedConnection:
        parameters = connection_parameters(self._address, connection_settings())
        return await BoundedConnection.connect(autocommit=True, **parameters)

    async def _keep_telling(self) -> None:
        failure, loop = RepeatedFailure("replicas_not_told"), asyncio.get_running_loop()
        while not (self._stopping and not self._batch.keys):
            began = loop.time()
            try:
                async with await self._connect() as connection:
                    failure.worked()
                    await self._tell_on(connection)
            except Exception as error:  # noqa: BLE001  # the database fails in many ways, and may be back any time
                failure.failed(error)
                if loop.time() - began < RECONNECT_SECONDS:  # else it worked until now
                    await asyncio.sleep(RECONNECT_SECONDS)

    async def _tell_on(self, connection: BoundedConnection) -> None:
        while not (self._stopping and not self._batch.keys):
            await self._is_something_to_tell.wait()
            self._is_something_to_tell.clear()
            batch, self._batch = self._batch, _Batch()
            try:
                if batch.keys:
                    async with asyncio.timeout(TELL_SECONDS):
                        channels, keys = zip(*batch.keys, strict=True)
                        await connection.execute(_TELL, {"channels": list(channels), "keys": list(keys)})
            except BaseException:
                self._put_back(batch)
                raise
            for waiting in batch.waiting:
                if not waiting.done():
                    waiting.set_result(None)

    def _put_back(self, batch: _Batch) -> None:
        """What could not be told is told with what has come since, before it."""
        newer, self._batch = self._batch, batch
        for channel, key in newer.keys:
            batch.add(channel, key)
        batch.waiting += newer.waiting
        self._is_something_to_tell.set()

    # ------------------------------------------------------------------------------------------- hearing

    async def _listen(self) -> None:
        failure = RepeatedFailure("replicas_not_heard")
        while True:
            try:
                async with await self._connect() as connection:
                    for channel in self._listeners:
                        await connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
                    failure.worked()
                    for channel in self._listeners:
                        self._hear(channel, _MISSED)
                    while True:
                        async for told in connection.notifies(timeout=LISTEN_SECONDS):
                            self._hear(told.channel, told.payload)
                        async with asyncio.timeout(LISTENED_SECONDS):
                            await connection.execute("SELECT 1")
            except Exception as error:  # noqa: BLE001  # as above
                failure.failed(error)
            await asyncio.sleep(RECONNECT_SECONDS)

    def _hear(self, channel: str, key: str) -> None:
        for listener in self._listeners[channel]:
            try:
                if key == _MISSED:
                    listener.missed()
                else:
                    listener.told(key)
            except Exception:  # a defect of one must not keep others from hearing
                log.exception("notification_defect", channel=channel)
