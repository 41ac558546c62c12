"""How a delivery ends: everything that follows from it in one transaction, or what is unfinished given up."""

from __future__ import annotations

from bot.outbox import Outbox, said
from bot.records import deliveries, threads
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.waits import Waits
from graph.ports import Unfinished
from graph.running import Agent, Look


class Endings:
    """Concludes deliveries and settles threads."""

    def __init__(self, database: Database, agent: Agent, outbox: Outbox, waits: Waits) -> None:
        self._database = database
        self._agent = agent
        self._outbox = outbox
        self._waits = waits

    async def settle(self, delivery: Delivery, why: str, *, unfinished: Unfinished | None = None) -> Look:
        """End whatever is unfinished without asking the model. `unfinished`: what it was saying."""
        async with self._database.writing() as tx:
            await self._waits.supersede(tx, delivery.thread_id, delivery.key, why)
        return await self._agent.settle(delivery.thread_id, delivery.key, why, unfinished=unfinished)

    async def conclude(self, delivery: Delivery, look: Look, *more: NewPost) -> None:
        """Everything that follows from a delivery, in the transaction that marks it as done."""
        async with self._database.writing() as tx:
            await self.say(tx, delivery.thread_id, look)
            for post in more:
                await self._outbox.say(tx, post)
            await self._waits.record(tx, delivery.thread_id, look.waits)
            if look.turn is not None:
                await threads.set_turn(tx, delivery.thread_id, look.turn["requester"], look.turn["delivery"])
            await deliveries.done(tx, delivery.key)
        await self._agent.prune(delivery.thread_id, look)

    async def turn_away(self, delivery: Delivery, told: NewPost) -> None:
        """Its author may not use the bot: they are told so, and what they go on saying in the thread is not to us. What
        there is in the thread is others', and stays as it is."""
        async with self._database.writing() as tx:
            await self._outbox.say(tx, told)
            await threads.let_go(tx, delivery.thread_id, delivery.body["person"])
            await deliveries.done(tx, delivery.key)

    async def say(self, tx: Transaction, thread_id: str, look: Look) -> None:
        """Keep what the model said in the turn; what was kept before stays as it is."""
        for spoken in look.spoken:
            await self._outbox.say(tx, said(thread_id, spoken))
