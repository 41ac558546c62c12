"""Everything that waits for people in a thread, and whose turn runs or waits there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records import approvals, attempts, clarifications, deliveries, overviews, sign_ins, tables, threads
from bot.records.approvals import ApprovalRow
from bot.records.attempts import AttemptRow
from bot.records.clarifications import ClarificationRow
from bot.records.database import Transaction
from bot.records.sign_ins import SignInRow


@dataclass(frozen=True, slots=True)
class Waiting:
    """The open questions of a thread; false when there are none."""

    approvals: Sequence[ApprovalRow] = ()
    clarifications: Sequence[ClarificationRow] = ()
    sign_ins: Sequence[SignInRow] = ()
    outcomes: Sequence[AttemptRow] = ()

    def __bool__(self) -> bool:
        return bool(self.approvals or self.clarifications or self.sign_ins or self.outcomes)

    @property
    def requesters(self) -> frozenset[str]:
        """Whose requests these are: person ids."""
        return frozenset(
            [row.asked.requesters[0] for row in self.approvals]
            + [row.requester for row in self.clarifications]
            + [row.person_id for row in self.sign_ins]
            + [row.requester for row in self.outcomes]
        )


def _any_open() -> sa.Select[Any]:
    # Literals, not parameters: otherwise SQLite cannot use the partial indexes, and reads whole tables.
    conditions = (
        (tables.approvals, "status = 'pending'"),
        (tables.clarifications, "status = 'open'"),
        (tables.sign_ins, "status = 'open'"),
        (tables.attempts, "status = 'unknown' AND choice IS NULL"),
    )
    found = (
        sa.exists().where(table.c.thread_id == sa.bindparam("thread"), sa.text(is_open))
        for table, is_open in conditions
    )
    return sa.select(sa.or_(*found).label("any"))


_ANY_OPEN = _any_open()


async def anything_in(tx: Transaction, thread_id: str) -> bool:
    """Whether anything is open in a thread."""
    row = await tx.one(_ANY_OPEN, {"thread": thread_id})
    return row is not None and bool(row.any)


async def in_thread(tx: Transaction, thread_id: str) -> Waiting:
    """What is open in a thread."""
    if not await anything_in(tx, thread_id):  # as it mostly is, and one question costs less than four
        return Waiting()
    return Waiting(
        approvals=await approvals.pending_in(tx, thread_id),
        clarifications=await clarifications.open_in(tx, thread_id),
        sign_ins=await sign_ins.open_in(tx, thread_id),
        outcomes=await attempts.undecided_in(tx, thread_id),
    )


async def superseded_by(tx: Transaction, thread_id: str, key: str) -> bool:
    """Whether this delivery gave up anything that was open in a thread."""
    given_up = (
        (tables.approvals, tables.approvals.c.status),
        (tables.clarifications, tables.clarifications.c.status),
        (tables.sign_ins, tables.sign_ins.c.status),
        (tables.attempts, tables.attempts.c.choice),
    )
    for table, ending in given_up:
        query = sa.select(table.c.thread_id).where(
            table.c.thread_id == thread_id, table.c.settled_key == key, ending == "superseded"
        )
        if await tx.one(query.limit(1)) is not None:
            return True
    return False


async def requesters(tx: Transaction, thread_id: str) -> frozenset[str]:
    """Whose turn it is in a thread, from what waits for people or is being handled; empty: nobody's."""
    if pending := await in_thread(tx, thread_id):
        return pending.requesters
    if not await deliveries.is_busy(tx, thread_id):
        return frozenset()
    thread = await threads.get(tx, thread_id)
    author = await deliveries.first_author(tx, thread_id) or (thread.requester if thread else None)
    return frozenset([author] if author else [])


async def is_with_us(tx: Transaction, thread_id: str, person_id: str) -> bool:
    """Whether the bot is in a conversation with this person in a thread, so that they need not address it: the thread's
    requester, somebody it waits for, or somebody whose message waits to be handled."""
    thread = await threads.get(tx, thread_id)
    if thread is None:
        return False
    if thread.requester == person_id or person_id in (await in_thread(tx, thread_id)).requesters:
        return True
    return any(author == person_id for _, author in await deliveries.waiting_messages(tx, thread_id))


async def turns_of(tx: Transaction, person_id: str, within: str) -> tuple[str, ...]:
    """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
    candidates = [*await deliveries.threads_waiting(tx, within), *await overviews.threads_of_questions(tx, within)]
    return tuple([t for t in dict.fromkeys(candidates) if person_id in await requesters(tx, t)])
