"""What becomes of a delivery that cannot be handled: tried later, given up with one sentence, or parked."""

from __future__ import annotations

import structlog

from bot.clock import Clock
from bot.endings import Endings
from bot.engine import Engine
from bot.failures import MAX_OUTAGE_TRIES, MAX_TRIES, PAUSES, cause_of, reference_of, regret
from bot.outbox import Outbox, pause_between
from bot.platform import PostFailed
from bot.records import deliveries, threads
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.threads import ThreadRow
from bot.waits import Waits
from graph.models import ModelProblem, Trouble
from graph.ports import Spoken, Unfinished

_NOT_KEPT = frozenset({Trouble.FILTERED, Trouble.TOO_MUCH})
STATE_LOST = "What I knew of this conversation is lost"

log = structlog.get_logger(__name__)


class Failing:
    """Sees to it that no failure is swallowed and none holds up its thread for good."""

    def __init__(
        self, endings: Endings, database: Database, outbox: Outbox, waits: Waits, *, engine: Engine, clock: Clock
    ) -> None:
        self._endings = endings
        self._database = database
        self._outbox = outbox
        self._waits = waits
        self._engine = engine
        self._clock = clock

    async def after_failure(self, delivery: Delivery, thread: ThreadRow, cause: Exception) -> None:
        """Try it again a few times, with pauses."""
        if delivery.tries + 1 >= MAX_TRIES:
            await self.park(delivery, thread, cause_of(cause))
            return
        await self._try_later(delivery, PAUSES[min(delivery.tries, len(PAUSES) - 1)], cause)

    async def after_outage(self, delivery: Delivery, thread: ThreadRow, failure: PostFailed) -> None:
        """The platform could not be asked. Nor could it be told of a failure, so there is no hurry to give up."""
        log.warning("platform_not_reached", cause=str(failure), reference=reference_of(delivery))
        before = deliveries.outages(delivery)
        if failure.permanent or before + 1 >= MAX_OUTAGE_TRIES:
            await self.park(delivery, thread, cause_of(failure))
            return
        due_at = self._clock() + pause_between(before, failure.retry_after)
        async with self._database.writing() as tx:
            await deliveries.put_off(tx, delivery, due_at, cause_of(failure))
            tx.afterwards(self._engine.look_again)

    async def give_up(self, delivery: Delivery, problem: ModelProblem, said: Spoken | None) -> None:
        """The turn cannot go on, and trying again would not help: say so in one sentence. `said`: the model's answer as
        far as people saw it written, which stays, unless it is not to be seen or is too much."""
        kept = Unfinished(said, "broken off here") if said and problem.trouble not in _NOT_KEPT else None
        look = await self._endings.settle(delivery, "the turn could not go on", unfinished=kept)
        await self._endings.conclude(delivery, look, regret(delivery, problem.sentence))

    async def state_lost(self, delivery: Delivery) -> None:
        """The records know of something that waits, and no checkpoint does: what it was about is gone. Nothing runs,
        and people are told."""
        log.error("thread_state_lost", reference=reference_of(delivery))
        async with self._database.writing() as tx:
            await self._waits.void(tx, delivery.thread_id, delivery.key, STATE_LOST)
            await self._outbox.say(tx, regret(delivery, f"{STATE_LOST}, so nothing was run. Please ask again."))
            await deliveries.done(tx, delivery.key)

    async def park(self, delivery: Delivery, thread: ThreadRow | None, cause: str) -> None:
        """Keep the delivery with its cause, tell its author, and let the thread go on."""
        log.error("delivery_parked", cause=cause, reference=reference_of(delivery))
        settled_too = True
        if thread is not None:
            try:
                await self._endings.settle(delivery, "something went wrong")
            except Exception:
                # The next message settles again before it begins; the delivery must be out of its way first.
                log.exception("parked_thread_not_settled", reference=reference_of(delivery))
                settled_too = False
        async with self._database.writing() as tx:
            if thread is not None:
                await self._outbox.say(tx, regret(delivery, "Something went wrong on my side, and I gave up."))
            await deliveries.park(tx, delivery.key, cause)
            if not settled_too:
                await threads.leave_unsettled(tx, delivery.thread_id)
        log.info("thread_goes_on", settled=settled_too)

    async def _try_later(self, delivery: Delivery, seconds: float, cause: Exception) -> None:
        async with self._database.writing() as tx:
            await deliveries.retry(tx, delivery.key, self._clock() + seconds, cause_of(cause))
            tx.afterwards(self._engine.look_again)
