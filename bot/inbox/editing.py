"""Messages that their authors edit or delete while nobody has begun with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.accounts.codes import Codes
from bot.inbox.engine import Engine
from bot.introductions import message_of
from bot.records import deliveries, threads
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from graph.calls import storable


class Editing:
    """Changes what waits, and nothing else: also what is first in line, as long as it has not been begun."""

    def __init__(self, database: Database, codes: Codes, engine: Engine) -> None:
        self._database = database
        self._codes = codes
        self._engine = engine

    async def amend(self, key: str, text: str) -> bool:
        """A message was edited. False: it is being handled or was, so the edit changes nothing."""
        async with self._waiting(key) as (tx, message):
            if message is None:
                return False
            thread = await threads.get(tx, message.thread_id)
            # Edited into a code, it is for no record, model or log, as if it had been written so.
            if thread is not None and await self._codes.take(tx, message_of(message, thread, text)):
                await deliveries.drop(tx, [key])
            else:
                await deliveries.set_body(tx, key, {**message.body, "text": storable(text)})
        return True

    async def withdraw(self, key: str) -> bool:
        """A message was deleted. False: it is being handled or was, so that changes nothing."""
        async with self._waiting(key) as (tx, message):
            if message is not None:
                await deliveries.drop(tx, [key])
        return message is not None

    @asynccontextmanager
    async def _waiting(self, key: str) -> AsyncIterator[tuple[Transaction, Delivery | None]]:
        """A transaction in which nobody begins with the message; `None`: somebody has, or there is no such message."""
        async with self._database.reading() as tx:
            known = await deliveries.waiting_message(tx, key)
        async with self._engine.held_back(known.thread_id if known else ""), self._database.writing_urgently() as tx:
            message = await deliveries.waiting_message(tx, key)
            begun = message is not None and (message.tries > 0 or self._engine.has_begun(message))
            yield tx, None if begun else message
