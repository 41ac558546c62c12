"""Between the graph's interrupts and the rows that people decide: rows are made from interrupts, answers from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot import questions as clarification_book
from bot.accounts import sign_ins as sign_in_book
from bot.accounts.sign_ins import SignIns
from bot.approvals import requests as approval_book
from bot.approvals.requests import ApprovalRequests
from bot.ledger import AttemptLedger
from bot.outbox import Outbox
from bot.plans import Plans
from bot.questions import Questions
from bot.records import approvals, attempts, clarifications, sign_ins, waiting
from bot.records.attempts import AttemptRow
from bot.records.database import Transaction
from bot.records.deliveries import Delivery
from graph.interrupts import (
    ApprovalAsked,
    Asked,
    ClarificationAsked,
    ElicitationAsked,
    InterruptAnswer,
    OutcomeSettled,
    OutcomeUnknownAsked,
    PlanAsked,
    PlanEnded,
    SignInAsked,
    Superseded,
)

if TYPE_CHECKING:  # runs are for turns; what takes messages in starts before the graph is imported
    from graph.running import PendingInterrupt


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer to an interrupt, as its row has it."""

    answer: InterruptAnswer
    key: str | None
    """Key of the delivery or click that settled the row."""


class OpenRequests:
    """What a thread waits for: approvals, clarifications, sign-ins, unknown outcomes, and plans, treated alike."""

    def __init__(
        self,
        approvals: ApprovalRequests,
        clarifications: Questions,
        sign_ins: SignIns,
        ledger: AttemptLedger,
        outbox: Outbox,
        *,
        plans: Plans,
    ) -> None:
        self._approvals = approvals
        self._clarifications = clarifications
        self._sign_ins = sign_ins
        self._ledger = ledger
        self._plans = plans
        self._outbox = outbox

    async def record(self, tx: Transaction, thread_id: str, interrupts: Iterable[PendingInterrupt]) -> None:
        """Make the rows that are missing: those of interrupts can always be made from the checkpoint."""
        for interrupt in interrupts:
            match interrupt.asked:
                case ApprovalAsked() as asked:
                    await self._approvals.record(tx, thread_id, asked)
                case ClarificationAsked() | ElicitationAsked() as asked:
                    await self._clarifications.record(tx, thread_id, asked)
                case PlanAsked() as asked:
                    await self._plans.record(tx, thread_id, asked)
                case SignInAsked() | OutcomeUnknownAsked():
                    pass  # recorded in the transaction that led to the interrupt: it knows what the graph must not

    async def answers(self, tx: Transaction, interrupts: Sequence[PendingInterrupt]) -> Mapping[str, RecordedAnswer]:
        """The answers that there are, by interrupt id; always from the rows, never from a delivery."""
        found = {interrupt.interrupt_id: await self._answer(tx, interrupt.asked) for interrupt in interrupts}
        return {interrupt_id: answer for interrupt_id, answer in found.items() if answer is not None}

    async def on_timer(self, tx: Transaction, timer: Delivery) -> bool:
        """A timer of an approval is due: remind, escalate or expire. Whether the approval has expired by it, so that
        its thread goes on now."""
        return await self._approvals.on_timer(tx, timer)

    async def void(
        self, tx: Transaction, thread_id: str, key: str, why: str, *, turn: str | None
    ) -> Sequence[AttemptRow]:
        """Nothing in a thread can go on: its approvals become void, what came of calls that have begun is unknown, and
        everything else that is open is superseded. Returns the attempts at those calls.

        `key`, `why`: as for `supersede`. `turn`: key of the delivery whose turn it was, where there was one."""
        begun = await self._ledger.leave_off(tx, turn, why) if turn is not None else ()
        await self._approvals.void(tx, thread_id, key, why)
        await self.supersede(tx, thread_id, key, why)
        return begun

    async def supersede(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """Supersede everything that is open in a thread, and what was approved there and has not been started. The
        tasks of its plans end, too.

        `key`: of the delivery that does it. `why`: shown on the cards."""
        await self.stop_plans(tx, thread_id, key, why)
        open_ = await waiting.in_thread(tx, thread_id)
        await self._approvals.supersede_unused(tx, thread_id, key, why)
        for approval in open_.approvals:
            await self._approvals.supersede(tx, approval, key, why)
        for question in open_.clarifications:
            await self._clarifications.supersede(tx, question, key)
        for sign_in in open_.sign_ins:
            await self._sign_ins.supersede(tx, sign_in, key)
        for attempt in open_.outcomes:
            await attempts.choose(tx, attempt.attempt_id, "superseded", None, key=key)
            await self._outbox.show_again(tx, [attempt.attempt_id])

    async def stop_plans(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """End the plans of a thread: what runs of their tasks is broken off, and what is open there superseded. `key`,
        `why`: as for `supersede`."""
        for of_task in await self._plans.stop(tx, thread_id, key):
            await self.supersede(tx, of_task, key, why)

    async def ended_plans(self, tx: Transaction, interrupts: Sequence[PendingInterrupt]) -> Mapping[str, PlanEnded]:
        """What came of the plans for which these interrupts wait, by the ids of their calls, stopped or not."""
        plans = [each.asked for each in interrupts if isinstance(each.asked, PlanAsked)]
        found = {each.call_id: await self._answer(tx, each) for each in plans}
        return {plan: ended.answer for plan, ended in found.items() if ended and isinstance(ended.answer, PlanEnded)}

    async def _answer(self, tx: Transaction, asked: Asked) -> RecordedAnswer | None:
        if isinstance(asked, PlanAsked):
            ended = await self._plans.answer_of(tx, asked.call_id)
            return RecordedAnswer(*ended) if ended is not None else None
        return await _answer(tx, asked)


async def _answer(
    tx: Transaction, asked: ApprovalAsked | ClarificationAsked | ElicitationAsked | SignInAsked | OutcomeUnknownAsked
) -> RecordedAnswer | None:
    answer: InterruptAnswer | None
    match asked:
        case ApprovalAsked(call_id=call_id, round=round_):
            approval = await approvals.of_call(tx, call_id, round_)
            answer = await approval_book.answer_of(tx, approval) if approval else None
            key = approval.settled_key if approval else None
        case ClarificationAsked(call_id=call_id):
            question = await clarifications.of_call(tx, call_id)
            answer = clarification_book.answer_of(question) if question else None
            key = question.settled_key if question else None
        case ElicitationAsked(call_id=call_id, number=number):
            question = await clarifications.of_call(tx, call_id, number)
            answer = clarification_book.answer_of(question) if question else None
            key = question.settled_key if question else None
        case SignInAsked(sign_in_id=sign_in_id):
            sign_in = await sign_ins.get(tx, sign_in_id)
            answer = sign_in_book.answer_of(sign_in) if sign_in else Superseded()
            key = sign_in.settled_key if sign_in else None
        case OutcomeUnknownAsked(call_id=call_id, attempt=number):
            # Not the latest: when the process dies in the attempt that was chosen, the interrupt still shows as open.
            attempt = await attempts.of_call(tx, call_id, number)
            answer = _outcome_answer(attempt) if attempt else Superseded()
            key = attempt.settled_key if attempt else None
    return RecordedAnswer(answer, key) if answer is not None else None


def _outcome_answer(row: AttemptRow) -> InterruptAnswer | None:
    match row.choice:
        case "it_was_done" | "try_again" | "skip":
            return OutcomeSettled(choice=row.choice, by=row.choice_by or "")
        case "superseded":
            return Superseded()
        case _:
            return None
