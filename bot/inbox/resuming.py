"""What was settled lets its thread go on."""

from __future__ import annotations

from bot.clock import Clock
from bot.inbox.engine import Engine
from bot.records import deliveries
from bot.records.database import Transaction
from bot.records.deliveries import Delivery


class Resuming:
    """Keeps the deliveries by which threads go on; they carry nothing but the id of what was settled."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def resume(self, tx: Transaction, thread_id: str | None, *settled: str) -> None:
        """These were settled, once and for all: let their thread go on, once for all of them. What was settled by an
        earlier delivery of the same click has had its turn."""
        if thread_id is None:
            return
        now = self._clock()
        for each in settled:
            if await deliveries.add(tx, Delivery(f"resume:{each}", thread_id, "resume", {}, False, now, now)):
                break
        tx.afterwards(lambda: self._engine.wake(thread_id))
