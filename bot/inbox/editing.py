"""Messages that their authors edit or delete while nobody has begun with them."""

from __future__ import annotations

from bot.accounts.listening import Codes
from bot.introductions import message_of
from bot.records import deliveries, threads
from bot.records.database import Database
from graph.calls import storable


class Editing:
    """Changes what is queued, and nothing else."""

    def __init__(self, database: Database, codes: Codes) -> None:
        self._database = database
        self._codes = codes

    async def amend(self, key: str, text: str) -> bool:
        """A message was edited. False: it is being handled or was, so the edit changes nothing."""
        async with self._database.writing_urgently() as tx:
            queued = await deliveries.queued(tx, key)
            if queued is None:
                return False
            thread = await threads.get(tx, queued.thread_id)
            # Edited into a code, it is for no record, model or log, as if it had been written so.
            if thread is not None and await self._codes.take(tx, message_of(queued, thread, text)):
                await deliveries.drop(tx, [key])
            else:
                await deliveries.set_body(tx, key, {**queued.body, "text": storable(text)})
        return True

    async def withdraw(self, key: str) -> bool:
        """A message was deleted. False: it is being handled or was, so that changes nothing."""
        async with self._database.writing_urgently() as tx:
            message = await deliveries.queued(tx, key)
            if message is not None:
                await deliveries.drop(tx, [key])
        return message is not None
