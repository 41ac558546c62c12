"""The ledger: an attempt starts at most once, and what came of it is known, or known to be unknown.

Each end is written into the audit log in the transaction that records it.
"""

from __future__ import annotations

from bot.audit.log import AuditLog
from bot.clock import Clock
from bot.ids import NewId
from bot.posts import Posts
from bot.records import approvals, attempts
from bot.records.attempts import AttemptRow
from bot.records.database import Database, Transaction
from bot.records.posts import NewPost
from graph.ports import (
    Begun,
    CallRecord,
    Failed,
    NotPermitted,
    Recorded,
    Skipped,
    Succeeded,
    Undecided,
)


class AttemptLedger:
    """Fills `graph.ports.Ledger` from the `attempts` table; each verb is one transaction."""

    def __init__(self, database: Database, posts: Posts, clock: Clock, new_id: NewId, audit: AuditLog) -> None:
        self._database = database
        self._posts = posts
        self._clock = clock
        self._new_id = new_id
        self._audit = audit

    async def begin(self, record: CallRecord) -> Begun | Recorded | Undecided | Skipped | NotPermitted:
        """Start an attempt, unless the call has an outcome, waits for a person's word, or has no right to run."""
        async with self._database.writing() as tx:
            latest = await attempts.latest(tx, record.call_id)
            if latest is None:
                return await self._start(tx, record, 1)
            if latest.status == "started" and not record.tool.repeatable:
                # Only one run at a time touches a thread, so whoever started it is no more: nobody knows what came
                # of it, and only a person may say.
                await self._lose(tx, latest)
                return Undecided(latest.number)
            if latest.status == "started":
                await attempts.end(tx, record.call_id, latest.number, "unknown", now=self._clock())
                await self._audit.ended(tx, latest, "unknown")
                await attempts.choose(tx, latest.attempt_id, "try_again", None, key=record.call_id)  # nobody is asked
                return await self._start(tx, record, latest.number + 1)
            return await self._after(tx, record, latest)

    async def _after(
        self, tx: Transaction, record: CallRecord, latest: AttemptRow
    ) -> Begun | Recorded | Undecided | Skipped | NotPermitted:
        await self._note_choice(tx, latest)
        match latest.status, latest.choice:
            case (("done" | "failed"), _):
                return Recorded(_outcome(latest))
            case "unknown", ("it_was_done" | "skip") as choice:
                return Skipped(was_done=choice == "it_was_done", by=latest.choice_by or "")
            case "unknown", "superseded":
                return Recorded(Failed("the outcome of the call is unknown"))
            case "unknown", None if not record.tool.repeatable:
                return Undecided(latest.number)
            case _:  # the server did nothing, or a person chose to try again, or it may be repeated
                return await self._start(tx, record, latest.number + 1)

    async def _start(self, tx: Transaction, record: CallRecord, number: int) -> Begun | NotPermitted:
        if not record.permitted:
            return NotPermitted()
        approval_id = None
        if record.approval_round is not None:
            approval = await approvals.of_call(tx, record.call_id, record.approval_round)
            if approval is None or approval.status != "approved" or approval.approved_digest != record.digest:
                return NotPermitted()
            approval_id = approval.approval_id
        judged = await self._audit.begun(tx, record)
        await attempts.add(
            tx, self._new_id(), number, record, approval_id=approval_id, judged=judged, now=self._clock()
        )
        await self._posts.show_again(tx, [approval_id] if approval_id else [])
        return Begun(number)

    async def finish(self, record: CallRecord, attempt: int, outcome: Succeeded | Failed) -> None:
        """Record what came of an attempt, and show it on the card."""
        call_id = record.call_id
        async with self._database.writing() as tx:
            row = await attempts.of_call(tx, call_id, attempt)
            match outcome:
                case Succeeded(text=text, whole=whole, owner=owner):
                    status, output = "done", whole or text
                    kept = {"text": text, "whole": whole or None, "owner": owner}
                case Failed(text=text, owner=owner):
                    status, output, kept = "failed", text, {"text": text, "owner": owner}
            is_new = await attempts.end(tx, call_id, attempt, status, now=self._clock(), **kept)
            if row is not None and is_new:
                await self._audit.ended(tx, row, status, output)
            await self._posts.show_again(tx, await approvals.ids_of_call(tx, call_id))

    async def broke_off(self, record: CallRecord, attempt: int) -> None:
        """Nobody knows what came of the attempt: ask its requester."""
        async with self._database.writing() as tx:
            latest = await attempts.latest(tx, record.call_id)
            if latest is not None and (latest.number, latest.status) == (attempt, "started"):
                await self._lose(tx, latest)

    async def did_nothing(self, call_id: str, attempt: int) -> None:
        """The server itself said that it did nothing."""
        async with self._database.writing() as tx:
            await attempts.end(tx, call_id, attempt, "nothing", now=self._clock())
            await self._posts.show_again(tx, await approvals.ids_of_call(tx, call_id))

    async def close(self, call_id: str) -> Recorded | Undecided | Skipped | None:
        """What became of a call that shall not be started any more."""
        async with self._database.writing() as tx:
            latest = await attempts.latest(tx, call_id)
            if latest is None:
                return None
            if latest.status == "started":
                await self._lose(tx, latest)
                await attempts.choose(tx, latest.attempt_id, "superseded", None, key=call_id)
                return Undecided(latest.number)
            await self._note_choice(tx, latest)
            match latest.status, latest.choice:
                case (("done" | "failed"), _):
                    return Recorded(_outcome(latest))
                case "unknown", "it_was_done":
                    return Skipped(was_done=True, by=latest.choice_by or "")
                case "unknown", _:
                    return Undecided(latest.number)
                case _:
                    return None

    async def _note_choice(self, tx: Transaction, attempt: AttemptRow) -> None:
        """What a person said of a lost attempt is in the audit log before anything follows from it."""
        if attempt.status == "unknown" and attempt.choice is not None and attempt.choice_by is not None:
            await self._audit.settled(tx, attempt, attempt.choice, attempt.choice_by)

    async def _lose(self, tx: Transaction, attempt: AttemptRow) -> None:
        await attempts.end(tx, attempt.call_id, attempt.number, "unknown", now=self._clock())
        await self._audit.ended(tx, attempt, "unknown")
        card = NewPost(f"outcome:{attempt.attempt_id}", attempt.thread_id, "outcome", subject=attempt.attempt_id)
        await self._posts.say(tx, card)
        await self._posts.show_again(tx, await approvals.ids_of_call(tx, attempt.call_id))


def _outcome(row: AttemptRow) -> Succeeded | Failed:
    return Succeeded(row.text, owner=row.owner) if row.status == "done" else Failed(row.text, owner=row.owner)
