"""Accepting: one row, one commit, before anything is acknowledged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import structlog

from bot.clock import Clock
from bot.domain import Message
from bot.inbox.sessions import Belonging, Sessions
from bot.records import deliveries, threads
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.turns import is_with_us
from graph.calls import storable

log = structlog.get_logger(__name__)

BATCH = 64
"""Messages kept in one commit when many arrive at once: a commit costs the same for one as for all of them."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message at the door."""

    thread_id: str
    is_new: bool


_Arrival = tuple[Message, asyncio.Future[Accepted]]


class Acceptance:
    """Keeps messages durably. Those that arrive while a commit is under way share the next one."""

    def __init__(self, database: Database, sessions: Sessions, clock: Clock) -> None:
        self._database = database
        self._sessions = sessions
        self._clock = clock
        self._arrived: list[_Arrival] = []
        self._keeper: asyncio.Task[None] | None = None

    async def accept(self, message: Message) -> Accepted:
        """Keep a message; returns when it is on disk. Raises what the database raises."""
        kept: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._arrived.append((keepable(message), kept))
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep(), name="acceptance")
        return await kept

    async def _keep(self) -> None:
        while self._arrived:
            batch: list[_Arrival] = []
            try:
                async with self._database.writing_urgently() as tx:
                    batch, self._arrived = self._arrived[:BATCH], self._arrived[BATCH:]
                    results = [await self._keep_one(tx, message) for message, _ in batch]
            except Exception as cause:  # noqa: BLE001  # every waiting caller gets it; nobody else could
                await self._keep_apart(batch, cause)
                continue
            for (_, kept), accepted in zip(batch, results, strict=True):
                if not kept.done():
                    kept.set_result(accepted)

    async def _keep_apart(self, batch: list[_Arrival], cause: Exception) -> None:
        """The commit for all of them failed: one of them may be at fault, so each is kept by itself."""
        if not batch:  # not even the transaction could be begun
            batch, self._arrived = self._arrived, []
        for message, kept in batch:
            if kept.done():
                continue
            if len(batch) == 1:
                kept.set_exception(cause)
                continue
            try:
                async with self._database.writing_urgently() as tx:
                    accepted = await self._keep_one(tx, message)
            except Exception as own_cause:  # noqa: BLE001  # as above
                kept.set_exception(own_cause)
            else:
                kept.set_result(accepted)

    async def _keep_one(self, tx: Transaction, message: Message) -> Accepted:
        now = self._clock()
        if not message.place.has_threads and await deliveries.exists(tx, message.key):
            return Accepted("", is_new=False)
        belongs = await self._sessions.thread_for(tx, message, now)
        thread_id = belongs.thread_id
        if not message.addressed and not await is_with_us(tx, thread_id, message.author.person_id):
            return Accepted("", is_new=False)  # people talking to each other: not ours to keep
        is_new = await deliveries.add(tx, message_delivery(message, belongs, now))
        if is_new:
            requester = message.author.person_id if message.addressed else None
            await threads.ensure(tx, thread_id, message.place, message.text, now, requester=requester)
        if message.author.name:  # without a name they are introduced later
            await threads.remember(tx, message.author, now)
        return Accepted(thread_id, is_new)


def keepable(message: Message) -> Message:
    """The message without what no database and no model takes: NUL characters, and halves of surrogate pairs."""
    author = replace(message.author, name=storable(message.author.name))
    return replace(message, author=author, text=storable(message.text))


def message_delivery(message: Message, belongs: Belonging, now: float) -> Delivery:
    """A message as a row of the inbox."""
    return Delivery(
        key=message.key,
        thread_id=belongs.thread_id,
        kind="message",
        body={
            "person": message.author.person_id,
            "name": message.author.name,
            "time_zone": message.author.time_zone,
            "text": message.text,
            "addressed": message.addressed,
            "origin": dict(message.origin),
            "at": message.at,
            "begins": belongs.begins,
        },
        urgent=False,
        accepted_at=now,
        due_at=now,
    )
