"""The ledger: an attempt starts at most once, and what came of it is known, or known to be unknown.

Each outcome is written into the audit log in the transaction that records it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from bot.audit.log import AuditLog, judgement_of
from bot.crypto import NewId
from bot.domain import Clock
from bot.gateway.thread_ids import is_gateway_thread
from bot.outbox import MODEL_FIRST, OUTCOME_FIRST, Outbox, said
from bot.records import approvals, attempts, deliveries
from bot.records.attempts import AttemptRow
from bot.records.database import Database, Transaction
from bot.records.locks import person_lock
from bot.records.posts import NewPost, change_key
from bot.task_threads import turn_of_call
from graph.ports import (
    AttemptUnknown,
    Beginning,
    Begun,
    CallRecord,
    Existing,
    Failed,
    NotApproved,
    OutcomeUnknown,
    Recorded,
    SettledByPerson,
    Succeeded,
    of_last_try,
)
from policies.model import Allow
from policies.trust import call_known_to_read, known_to_read

_NOBODY_WAITS = Recorded(Failed("The call was not made: whoever asked for it has gone away."))
_NOTHING_KNOWN = OutcomeUnknown("")
"""Nothing is known of an attempt but that it had begun."""


@dataclass(frozen=True, slots=True)
class _Right:
    """Under what a call may run; nothing: a rule allows it."""

    approval_id: str | None = None
    grant_id: str | None = None

    @property
    def cards(self) -> Sequence[str]:
        """The approvals whose cards show it."""
        return () if self.approval_id is None else (self.approval_id,)


class AttemptLedger:
    """Fills `graph.ports.Ledger` from the `attempts` table. Each public method is one transaction."""

    def __init__(self, database: Database, outbox: Outbox, clock: Clock, new_id: NewId, audit: AuditLog) -> None:
        self._database = database
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id
        self._audit = audit

    async def recall(self, call_id: str, *, repeatable: bool) -> Beginning | Existing:
        """Returns what is known of a call, before anything is prepared for it.

        Args:
            repeatable: whether the operator lets the tool be called again (it only reads, or is idempotent).
        """
        at = self._clock()
        async with self._database.reading() as tx:
            latest = await attempts.latest(tx, call_id)
        beginning = Beginning(at, waits=latest is not None and latest.status == "asking")
        if latest is None or latest.status in {"nothing", "asking"} or (latest.status == "started" and repeatable):
            return beginning
        async with self._database.writing(latest.thread_id) as tx:
            latest = await attempts.latest(tx, call_id)
            if latest is None:
                return beginning
            if latest.status == "started":
                # Only one run at a time touches a thread, so whoever started it has died: nobody knows what came of
                # it, and only a person may say.
                return await self._record_unknown(tx, latest, _NOTHING_KNOWN)
            return await self._known(tx, latest, repeatable=repeatable) or beginning

    async def begin(self, record: CallRecord) -> Begun | Existing | NotApproved:
        """Starts an attempt, or lets the one go on that waits in the middle of the call.

        Returns:
            `Existing` when the call has an outcome, or one that a person has to settle first; `NotApproved` when it has
            no right to run. Nothing is started then.
        """
        async with self._beginning(record) as tx:
            return await self._begin(tx, record, self._clock())

    async def unsent(self, record: CallRecord, outcome: Failed | None) -> Begun | Existing | NotApproved:
        """Records an attempt that ended before its request left: it is never seen as started. Returns as `begin`, and
        `Recorded` where more is known than `outcome` says: an earlier try may have taken effect."""
        async with self._beginning(record) as tx:
            begun = await self._begin(tx, record, record.recalled_at)
            if isinstance(begun, Begun) and outcome is not None:
                await self._finish(tx, record.call_id, begun.attempt, outcome)
                if await attempts.was_repeated_unasked(tx, record.call_id, begun.attempt):
                    return Recorded(_of_last_try(outcome))
            elif isinstance(begun, Begun):
                await attempts.end(tx, record.call_id, begun.attempt, "nothing", now=self._clock())
            return begun

    async def finish(self, record: CallRecord, attempt: int, outcome: Succeeded | Failed) -> None:
        """Records what came of an attempt, and shows it: on its card or, of a change that nobody was asked about, in a
        line of its own."""
        async with self._database.writing(record.thread_id) as tx:
            ended = await self._finish(tx, record.call_id, attempt, outcome)
            if ended is not None and ended.approval_id is None and may_have_changed(record):
                for spoken in record.spoken:
                    await self._outbox.say(tx, said(ended.thread_id, spoken))
                key = change_key(ended.attempt_id, ended.grant_id)
                await self._outbox.say(tx, NewPost(key, ended.thread_id, "change", subject=ended.attempt_id))

    async def outcome_unknown(self, record: CallRecord, attempt: int, outcome: OutcomeUnknown) -> AttemptUnknown:
        """Records that nobody knows what came of the attempt, and asks its requester."""
        async with self._database.writing(record.thread_id) as tx:
            latest = await attempts.latest(tx, record.call_id)
            if latest is not None and (latest.number, latest.status) == (attempt, "started"):
                return await self._record_unknown(tx, latest, outcome)
        return AttemptUnknown(attempt, outcome.text, outcome.owner)

    async def unknown_after_question(self, record: CallRecord, outcome: OutcomeUnknown) -> Existing:
        """Records that a call which asked something no longer waits for the answer, and asks its requester
        what came of it. Returns what is known instead when it has ended meanwhile."""
        async with self._database.writing(record.thread_id) as tx:
            latest = await attempts.latest(tx, record.call_id)
            if latest is not None and latest.status not in {"started", "asking"}:
                known = await self._known(tx, latest, repeatable=False)
                if known is not None:
                    return known
            if latest is None or latest.status not in {"started", "asking"}:
                # Recorded by an earlier version, to which a question meant that nothing was done.
                await self._add(tx, record, latest.number + 1 if latest else 1, _Right(), self._clock())
            latest = await attempts.latest(tx, record.call_id)
            if latest is None:
                return AttemptUnknown(0, outcome.text, outcome.owner)
            return await self._record_unknown(tx, latest, outcome)

    async def waits(self, record: CallRecord, attempt: int) -> None:
        """Records that the attempt waits for its requester; the tool may have acted before it asked."""
        async with self._database.writing(record.thread_id) as tx:
            row = await attempts.of_call(tx, record.call_id, attempt)
            if row is not None:
                await attempts.move(tx, row.attempt_id, "started", "asking")
            await self._outbox.show_call_again(tx, record.call_id)

    async def did_nothing(self, record: CallRecord, attempt: int) -> None:
        """Records that nothing was done: the server said so by its protocol, or the request never left."""
        async with self._database.writing(record.thread_id) as tx:
            await attempts.end(tx, record.call_id, attempt, "nothing", now=self._clock())
            await self._outbox.show_call_again(tx, record.call_id)

    async def leave_off(self, tx: Transaction, turn: str, why: str) -> Sequence[AttemptRow]:
        """Records that nobody knows what came of the calls of a turn that had begun when all else of it was lost: they
        cannot go on, nor be tried again. Returns their attempts.

        Args:
            turn: key of its delivery.
            why: begins the sentence that is kept of each.
        """
        begun = await attempts.begun_in_turn(tx, turn)
        for attempt in begun:
            said = f"{why}: whether {attempt.server} did something is not known."
            await self._record_unknown(tx, attempt, OutcomeUnknown(said))
            await attempts.choose(tx, attempt.attempt_id, "superseded", None, key=attempt.call_id)
        # Also of those that did nothing yet: a card may say that a sign-in is waited for.
        await self._outbox.show_again(tx, await approvals.ids_in_turn(tx, turn))
        return begun

    async def break_off(
        self,
        thread_id: str,
        turn: str,
        is_repeatable: Callable[[str, str], Awaitable[bool]],
        *,
        begun_before: float = math.inf,
    ) -> bool:
        """Records that nobody knows what came of the calls of a turn that were under way when it was broken off, and
        asks their requester. The turn goes on later. One that may be made again without asking is, when it does.
        Returns whether there were any.

        Args:
            turn: key of its delivery.
            is_repeatable: whether a tool may be called again, by the names of its server and its own.
            begun_before: in seconds since the epoch; attempts that began later are left alone.
        """
        async with self._database.reading() as tx:
            begun = [each for each in await attempts.begun_in_turn(tx, turn) if each.status == "started"]
        lost = {
            each.attempt_id
            for each in begun
            if each.started_at < begun_before and not await is_repeatable(each.server, each.tool)
        }
        if lost:
            async with self._database.writing(thread_id) as tx:
                for attempt in await attempts.begun_in_turn(tx, turn):
                    if attempt.attempt_id in lost and attempt.status == "started":
                        await self._record_unknown(tx, attempt, _NOTHING_KNOWN)
        return bool(lost)

    async def close(self, call_id: str, *, repeatable: bool) -> Existing | None:
        """Ends a call that is not to be started, or to go on, any more. Returns what is known of it; `None` when it was
        never sent, or did nothing."""
        async with self._database.reading() as tx:
            latest = await attempts.latest(tx, call_id)
        if latest is None:
            return None
        async with self._database.writing(latest.thread_id) as tx:
            latest = await attempts.latest(tx, call_id) or latest
            if latest.status == "asking" and repeatable:
                # Nobody needs to be asked what came of it; but it may have acted before it asked.
                failed = Failed(
                    f"{latest.server} asked a question during the call and got no answer. It’s unknown whether "
                    "it did anything."
                )
                await self._finish(tx, call_id, latest.number, failed)
                return Recorded(failed)
            if latest.status in {"started", "asking"}:
                unknown = await self._record_unknown(tx, latest, _NOTHING_KNOWN)
                await attempts.choose(tx, latest.attempt_id, "superseded", None, key=call_id)
                return unknown
            await self._note_choice(tx, latest)
            match latest.status, latest.choice:
                case (("done" | "failed"), _):
                    return Recorded(await _outcome(tx, latest))
                case "unknown", "it_was_done":
                    return _skipped(latest)
                case "unknown", _:
                    if await attempts.choose(tx, latest.attempt_id, "superseded", None, key=call_id):
                        await self._outbox.show_again(tx, [latest.attempt_id])
                    return _attempt_unknown(latest)
                case _:
                    # Its card says what it waited for, which is over.
                    await self._outbox.show_call_again(tx, call_id)
                    if await attempts.was_repeated_unasked(tx, call_id, latest.number):
                        return Recorded(_of_last_try(Failed("the call was not made.")))
                    return None

    def _beginning(self, record: CallRecord) -> AbstractAsyncContextManager[Transaction]:
        """A transaction in which an attempt may start. Nobody revokes meanwhile what it starts under."""
        locks = [person_lock(record.requester)] if record.standing else []
        return self._database.writing(record.thread_id, *locks)

    async def _begin(self, tx: Transaction, record: CallRecord, at: float) -> Begun | Existing | NotApproved:
        latest = await attempts.latest(tx, record.call_id)
        if latest is None:
            return await self._start(tx, record, 1, at)
        if latest.status == "asking" and record.goes_on:
            return await self._go_on(tx, record, latest)
        if latest.status in {"started", "asking"} and not record.tool.repeatable:
            return await self._record_unknown(tx, latest, _NOTHING_KNOWN)
        if latest.status in {"started", "asking"}:
            await attempts.end(tx, record.call_id, latest.number, "unknown", now=self._clock())
            await self._audit.ended(tx, latest, "unknown")
            await attempts.choose(tx, latest.attempt_id, "try_again", None, key=record.call_id)  # nobody is asked
            return await self._start(tx, record, latest.number + 1, at)
        known = await self._known(tx, latest, repeatable=record.tool.repeatable)
        return known or await self._start(tx, record, latest.number + 1, at)

    async def _known(self, tx: Transaction, latest: AttemptRow, *, repeatable: bool) -> Existing | None:
        """What is known of a call whose latest attempt has ended; `None`: it may be made (again)."""
        await self._note_choice(tx, latest)
        match latest.status, latest.choice:
            case (("done" | "failed"), _):
                return Recorded(await _outcome(tx, latest))
            case "unknown", ("it_was_done" | "skip"):
                return _skipped(latest)
            case "unknown", "superseded":
                return Recorded(Failed("the outcome of the call is unknown"))
            case "unknown", None if not repeatable:
                return _attempt_unknown(latest)
            case _:  # nothing was done, or a person chose to try again, or it may be repeated
                return None

    async def _start(
        self, tx: Transaction, record: CallRecord, number: int, at: float
    ) -> Begun | Recorded | NotApproved:
        if await deliveries.exists(tx, deliveries.without_calls(turn_of_call(record.call_id))):
            return _NOBODY_WAITS
        right = await self._right(tx, record)
        if isinstance(right, NotApproved):
            return right
        await self._add(tx, record, number, right, at)
        return Begun(number)

    async def _go_on(self, tx: Transaction, record: CallRecord, latest: AttemptRow) -> Begun | NotApproved:
        right = await self._right(tx, record)
        if isinstance(right, NotApproved):
            return right
        await attempts.move(tx, latest.attempt_id, "asking", "started")
        await self._outbox.show_again(tx, right.cards, within=OUTCOME_FIRST)
        return Begun(latest.number)

    async def _right(self, tx: Transaction, record: CallRecord) -> _Right | NotApproved:
        """Under what the call may run now."""
        grant_id = None
        if not record.permitted:
            return NotApproved()
        if record.standing:
            whose, now = (record.requester, record.client), self._clock()
            grant_id = await approvals.granted_by(tx, *whose, record.digest, now)
            if grant_id is None:
                return NotApproved()  # it was revoked, or is over, since the call was judged
        if record.approval_round is None:
            return _Right(grant_id=grant_id)
        approval = await approvals.of_call(tx, record.call_id, record.approval_round)
        if approval is None or approval.status != "approved" or approval.approved_digest != record.digest:
            return NotApproved()
        return _Right(approval.approval_id)

    async def _add(self, tx: Transaction, record: CallRecord, number: int, right: _Right, at: float) -> None:
        await attempts.add(
            tx,
            self._new_id(),
            number,
            record,
            approval_id=right.approval_id,
            grant_id=right.grant_id,
            judged=judgement_of(record),
            now=at,
        )
        await self._outbox.show_again(tx, right.cards, within=OUTCOME_FIRST)

    async def _finish(
        self, tx: Transaction, call_id: str, attempt: int, outcome: Succeeded | Failed
    ) -> AttemptRow | None:
        """Returns the attempt; `None` when it had ended before."""
        match outcome:
            case Succeeded(text=text, whole=whole):
                status, output = "done", whole or text
            case Failed(text=text):
                status, output, whole = "failed", text, ""
        ended = await attempts.end(
            tx,
            call_id,
            attempt,
            status,
            now=self._clock(),
            text=text,
            whole=whole or None,
            owner=outcome.owner,
            returned=outcome.returned,
        )
        if ended is not None:
            await self._audit.ended(tx, ended, status, output)
        await self._outbox.show_call_again(tx, call_id, within=MODEL_FIRST)
        return ended

    async def _note_choice(self, tx: Transaction, attempt: AttemptRow) -> None:
        """Writes into the audit log what a person said of an unknown outcome, before anything follows from it."""
        if attempt.status == "unknown" and attempt.choice is not None and attempt.choice_by is not None:
            await self._audit.settled(tx, attempt, attempt.choice, attempt.choice_by)

    async def _record_unknown(self, tx: Transaction, attempt: AttemptRow, outcome: OutcomeUnknown) -> AttemptUnknown:
        """Records that the outcome is unknown, and posts the card that asks for it."""
        now, text, owner = self._clock(), outcome.text or None, outcome.owner
        await attempts.end(tx, attempt.call_id, attempt.number, "unknown", now=now, text=text, owner=owner)
        await self._audit.ended(tx, attempt, "unknown", outcome.text or None)
        card = NewPost(f"outcome:{attempt.attempt_id}", attempt.thread_id, "outcome", subject=attempt.attempt_id)
        await self._outbox.say(tx, card)
        await self._outbox.show_call_again(tx, attempt.call_id)
        return AttemptUnknown(attempt.number, outcome.text, outcome.owner)


def may_have_changed(record: CallRecord) -> bool:
    """Returns whether a call of our own agent that was made may have changed something. Calls of other agents are in no
    conversation that anybody reads."""
    if is_gateway_thread(record.thread_id):
        return False
    if record.judged is None:
        return not known_to_read(record.tool)
    verdict = record.judged.verdict
    by_rule = isinstance(verdict, Allow) and verdict.reads
    return not by_rule and not call_known_to_read(record.judged.call)


async def _outcome(tx: Transaction, row: AttemptRow) -> Succeeded | Failed:
    returned = await attempts.returned_by(tx, row.attempt_id)
    if row.status == "done":
        return Succeeded(row.text, owner=row.owner, returned=returned)
    failed = Failed(row.text, owner=row.owner, returned=returned)
    repeated = await attempts.was_repeated_unasked(tx, row.call_id, row.number)
    return _of_last_try(failed) if repeated else failed


def _of_last_try(failed: Failed) -> Failed:
    """A failure with what nobody knows of an earlier try, where the call was tried again without asking anybody."""
    return replace(failed, text=of_last_try(failed.text))


def _attempt_unknown(row: AttemptRow) -> AttemptUnknown:
    return AttemptUnknown(row.number, row.text, row.owner)


def _skipped(row: AttemptRow) -> SettledByPerson:
    return SettledByPerson(row.choice == "it_was_done", row.choice_by or "", row.text, row.owner)
