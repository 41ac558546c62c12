"""Handling a delivery in the thread of another agent's call: drive the call on, and keep how far it is.

Whatever is killed when, handling the delivery again ends in the same place: the call is driven on from what was kept
last, and the approvals and the ledger know what was asked and begun since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from bot.approvals.requests import timer_kind
from bot.domain import Clock
from bot.gateway.calls import BEGINS, ledger_call_id
from bot.gateway.changes import CallChanges
from bot.gateway.views import GatewayResult, result_json
from bot.logs import log_context
from bot.records import deliveries, gateway_calls
from bot.records.claims import Claim, Overtaken, current_claim
from bot.records.database import Database, Transaction, is_away
from bot.records.deliveries import Delivery
from bot.records.gateway_calls import GatewayCallRow
from bot.turns.decision import DIED_TOO_OFTEN, MOST_DEATHS, Park, TryLater
from bot.turns.engine import Engine
from bot.turns.failures import MOST_OUTAGE_TRIES, after_failure, reference_of
from bot.turns.open_requests import OpenRequests
from graph.calls import REJECTED, SKIPPED
from graph.interrupts import ApprovalAsked, Asked, InterruptAnswer
from graph.observing import NOBODY, DeliveryHandled, GraphRun, HandlingEnding, Observer
from graph.running import PendingInterrupt
from graph.single_calls import CallEnding, CallProgress, SingleCalls, first_progress
from graph.state import RunContext
from policies.masking import Masker
from translations import gettext as _

log = structlog.get_logger(__name__)
_AFTER_A_REJECTION = (
    "Do not try to get the same done in another way; ask the person you work for what they want instead."
)
MOST_ANSWERS = 100
"""Answers that one delivery may lead to, before it is parked; each belongs to another question."""
NOBODY_TO_ASK = GatewayResult(
    is_error=True,
    text="The call was not made: people have to approve it, and there is no place where they could be asked. Whoever "
    "runs Countersign can name one: by routeTo in the policy, by GATEWAY_PLACE, or by turning on the page or a chat.",
)
_NO_OUTAGE: tuple[str, int, Claim | None] = "", 0, None


class TooManyAnswersError(Exception):
    """A call asks again and again, and is answered each time without anybody being asked."""


@dataclass(slots=True, eq=False)
class GatewayCallHandler:
    """Handles deliveries of kind `call`, `resume`, `timer` and `stop` in threads of calls, one at a time per thread
    (the engine sees to that)."""

    database: Database
    calls: SingleCalls
    requests: OpenRequests
    engine: Engine
    clock: Clock
    changes: CallChanges
    masker: Masker
    observer: Observer = NOBODY
    _began: dict[str, float] = field(default_factory=dict, init=False)
    """Thread → when its delivery began to be handled."""
    _outages: dict[str, tuple[str, int, Claim | None]] = field(default_factory=dict, init=False)
    """Thread → the delivery in which the records went away last, how many tries of it in a row have ended so, and the
    claim."""
    _made_at: float = field(init=False)
    """When the process began to handle deliveries, in seconds since the epoch."""

    def __post_init__(self) -> None:
        self._made_at = self.clock()

    async def handle(self, delivery: Delivery) -> None:
        """See a delivery through: to its effects, or to the next try, or parked.

        Raises only if not even that can be recorded, or the records went away meanwhile, which is no try.
        """
        self._began[delivery.thread_id] = self.clock()
        with log_context(thread_id=delivery.thread_id, delivery=delivery.key):
            claim = current_claim()
            failed, outages, failed_under = self._outages.pop(delivery.thread_id, _NO_OUTAGE)
            outages = outages if failed == delivery.key and failed_under is claim else 0
            try:
                await self._handle(delivery, outages)
            except Overtaken:
                raise
            except Exception as cause:
                if is_away(cause) and outages < MOST_OUTAGE_TRIES:
                    self._outages[delivery.thread_id] = delivery.key, outages + 1, claim
                    raise  # the engine tries again, once the records are back
                log.exception("delivery_failed", tries=delivery.tries + 1, reference=reference_of(delivery))
                await self._fail(delivery, cause)
            finally:
                del self._began[delivery.thread_id]

    async def _handle(self, delivery: Delivery, outages: int) -> None:
        async with self.database.reading() as tx:
            row = await gateway_calls.of_thread(tx, delivery.thread_id)
        if row is None:
            await self._done(delivery)  # nothing is known of it any more, so nobody waits for it
            return
        if await self._has_died_too_often(delivery, outages):
            await self._park(delivery, DIED_TOO_OFTEN)
            return
        if delivery.kind == "stop":
            ending = await self._settle(row, delivery.key, _("{name} took it back").format(name=row.client))
            if ending is None:
                await self._done(delivery)
            else:
                await self._end(row, delivery, ending)  # what was taken back stays so; any other call ends here
            return
        if delivery.kind == "timer" and not await self._expires(delivery):
            return
        if row.is_under_way:
            await self._go_on(row, delivery)
        else:
            await self._done(delivery)

    async def _has_died_too_often(self, delivery: Delivery, outages: int) -> bool:
        """Counts a try where an earlier process may have died in one."""
        claim = current_claim()
        is_taken_over = claim is not None and claim.taken_over
        if delivery.accepted_at >= self._made_at and not is_taken_over:
            return False
        if not outages:
            async with self.database.writing(delivery.thread_id) as tx:
                await deliveries.count_try(tx, delivery.key)
        return delivery.tries >= MOST_DEATHS

    async def _expires(self, timer: Delivery) -> bool:
        """Does what a timer of an approval is for. Returns whether its call goes on by it; it is done otherwise."""
        if timer_kind(timer) != "expire":
            async with self.database.writing(timer.thread_id) as tx:
                await self.requests.on_timer(tx, timer)
                await deliveries.done(tx, timer.key)
            return False
        async with self.database.writing(timer.thread_id) as tx:
            expired = await self.requests.on_timer(tx, timer)
            if not expired:
                await deliveries.done(tx, timer.key)
        return expired

    # ------------------------------------------------------------------------------------------- the call

    async def _go_on(self, row: GatewayCallRow, delivery: Delivery) -> None:
        """Drives a call on until it waits for people or has ended."""
        progress, before = _progress_of(row), row.status
        for _answers in range(MOST_ANSWERS):
            answer = await self._answer(row, progress.stop) if progress.stop else None
            if progress.stop and answer is None and before == "waiting":
                await self._done(delivery)  # as it stands is kept
                return
            if progress.stop and answer is None:
                await self._wait(row, delivery, progress)
                return
            before = "running"
            progress = await self.calls.advance(progress, self._context(delivery.key), answer)
            if progress.ended is not None:
                await self._end(row, delivery, progress.ended)
                return
        raise TooManyAnswersError

    def _context(self, delivery: str, settling: str | None = None) -> RunContext:
        return RunContext(settling=settling, now=self.clock(), clock=self.clock, delivery=delivery)

    async def _answer(self, row: GatewayCallRow, stop: Asked) -> InterruptAnswer | None:
        """What was decided about exactly what is asked, from its row."""
        interrupt = PendingInterrupt(row.gateway_call_id, stop)
        async with self.database.reading() as tx:
            found = await self.requests.answers(tx, [interrupt])
        recorded = found.get(interrupt.interrupt_id)
        return recorded.answer if recorded is not None else None

    async def _wait(self, row: GatewayCallRow, delivery: Delivery, progress: CallProgress) -> None:
        """Keeps what people are asked, and how far the call is. What they decide meanwhile comes as a delivery of its
        own."""
        if progress.stop is None:
            raise ValueError("the call does not stop")
        async with self.database.writing(row.thread_id) as tx:
            await self.requests.record(tx, row.thread_id, [PendingInterrupt(row.gateway_call_id, progress.stop)])
            kept = progress.to_json()
            if await gateway_calls.waits(tx, row.gateway_call_id, progress.step, kept, now=self.clock()):
                self._tell_of(tx, row)
            await deliveries.done(tx, delivery.key)
        self._note(delivery, row, "waits")

    async def _end(self, row: GatewayCallRow, delivery: Delivery, ending: CallEnding) -> None:
        result = NOBODY_TO_ASK if ending.text.startswith(SKIPPED) else result_of(ending)
        async with self.database.writing(row.thread_id) as tx:
            await self._keep(tx, row, result)
            await deliveries.done(tx, delivery.key)
        self._note(delivery, row, "done")

    def _note(self, delivery: Delivery, row: GatewayCallRow | None, ending: HandlingEnding, trouble: str = "") -> None:
        """Tells whoever measures turns of a try: a call is one of its own."""
        progress = _progress_of(row) if row is not None and row.state is not None else None
        began, now = self._began.get(delivery.thread_id, self.clock()), self.clock()
        ran: GraphRun = "began" if delivery.kind == "call" else "was ended" if delivery.kind == "stop" else "resumed"
        stop = progress.stop if progress is not None and ran == "resumed" else None
        self.observer.note(
            DeliveryHandled(
                delivery.key,
                delivery.kind,
                delivery.thread_id,
                "mcp",
                progress.state["turn"] if progress is not None else None,
                ran,
                ending,
                delivery.accepted_at,
                began,
                max(now - began, 0.0),
                resumed=[(stop.call_id, stop.round)] if isinstance(stop, ApprovalAsked) else (),
                trouble=trouble,
            )
        )

    async def _keep(self, tx: Transaction, row: GatewayCallRow, result: GatewayResult) -> None:
        now = self.clock()
        # Who waits here hands it out as soon as it is on disk.
        handed_at = now if self.changes.is_watched(row.gateway_call_id) else None
        if await gateway_calls.end(tx, row.gateway_call_id, result_json(result), now=now, handed_at=handed_at):
            self._tell_of(tx, row)

    def _tell_of(self, tx: Transaction, row: GatewayCallRow) -> None:
        tx.afterwards(lambda: self.changes.tell(row.gateway_call_id))

    async def _done(self, delivery: Delivery) -> None:
        async with self.database.writing(delivery.thread_id) as tx:
            await deliveries.done(tx, delivery.key)

    async def _settle(self, row: GatewayCallRow, key: str, why: str) -> CallEnding | None:
        """Ends a call from wherever it is: nobody is asked any more, and nothing is begun. Returns what came of it;
        `None`: that was kept before.

        Args:
            key: of the delivery that does it.
            why: shown on the cards.
        """
        async with self.database.writing(row.thread_id) as tx:
            await self.requests.supersede(tx, row.thread_id, key, why)
        if row.state is None:
            return None
        progress = await self.calls.advance(_progress_of(row), self._context(key, settling=why))
        return progress.ended

    # ------------------------------------------------------------------------------------------- failures

    async def _fail(self, delivery: Delivery, cause: Exception) -> None:
        match after_failure(delivery, cause, None, self.masker):
            case TryLater(seconds=seconds, cause=said):
                self._note(delivery, None, "tried again", type(cause).__name__)
                async with self.database.writing(delivery.thread_id) as tx:
                    await deliveries.retry(tx, delivery.key, self.clock() + seconds, said)
                    tx.afterwards(self.engine.timer_was_set)
            case Park(cause=said):
                await self._park(delivery, said)
            case other:
                raise TypeError(f"a call has no {type(other).__name__}")

    async def _park(self, delivery: Delivery, cause: str) -> None:
        """Gives a call up: its caller is told so, and what is known of it."""
        log.error("delivery_parked", cause=cause, reference=reference_of(delivery))
        async with self.database.reading() as tx:
            row = await gateway_calls.of_thread(tx, delivery.thread_id)
        ending = None
        if row is not None and row.is_under_way and delivery.tries <= MOST_DEATHS:  # else to end it kills, too
            try:
                ending = await self._settle(row, delivery.key, _("Something went wrong"))
            except Exception:
                log.exception("parked_call_not_settled", reference=reference_of(delivery))
        async with self.database.writing(delivery.thread_id) as tx:
            if row is not None:
                await self._keep(tx, row, _given_up(delivery, ending))
            await deliveries.park(tx, delivery.key, cause)
        self._note(delivery, row, "parked", "parked")


def _progress_of(row: GatewayCallRow) -> CallProgress:
    kept: Mapping[str, Any] = row.state or {}
    if row.step != BEGINS:
        return CallProgress.from_json(kept)
    return first_progress(kept["turn"], ledger_call_id(row.gateway_call_id), kept["name"], kept["arguments"])


def result_of(ending: CallEnding) -> GatewayResult:
    """What the caller gets of what came of a call: what the tool returned as it is, or else a sentence."""
    if ending.returned is None:
        rejected = ending.failed and ending.text.startswith(REJECTED)
        text = f"{ending.text}\n\n{_AFTER_A_REJECTION}" if rejected else ending.text
        return GatewayResult(ending.failed, text=text, changed=ending.changed)
    return GatewayResult(
        ending.failed,
        text=ending.note,
        content=ending.returned.get("content") or (),
        structured=ending.returned.get("structuredContent"),
        changed=ending.changed,
    )


def _given_up(delivery: Delivery, ending: CallEnding | None) -> GatewayResult:
    known = f" {ending.text}" if ending is not None else " What came of the call is not known."
    told = f"Something went wrong on Countersign's side, and the call was given up.{known}"
    return GatewayResult(is_error=True, text=f"{told} (Reference {reference_of(delivery)})")
