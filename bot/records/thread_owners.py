"""Rows of `thread_owners`, and of `conversation_numbers`: whose a conversation of the page or of a program is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from bot.domain import ThreadSummary
from bot.gateway.thread_ids import GATEWAY_MARK
from bot.records.approvals import ApprovalRow, without_arguments
from bot.records.database import Transaction, insert_new
from bot.records.statements import Prepared
from bot.records.tables import approvals, conversation_numbers, posts, thread_owners, threads, votes
from bot.records.threads import approvals_waiting_in, questions_in

MOST_LOOKED_AT = 500
"""Conversations of one person, those that they began last, among which the ones with the newest word are looked for."""

DELETED = "-"
"""Stands for the owner of a conversation that was deleted: nobody is called so, hence it is nobody's."""
_OWNER = Prepared(
    sa.select(
        sa.case(
            (threads.c.deleted_at.is_not(None), sa.literal(DELETED)),
            else_=sa.func.coalesce(thread_owners.c.owner, threads.c.requester, sa.literal("")),
        ).label("owner"),
        thread_owners.c.owner.label("kept"),
    )
    .select_from(threads)
    .join(thread_owners, thread_owners.c.thread_id == threads.c.thread_id, isouter=True)
    .where(threads.c.thread_id == sa.bindparam("thread"))
)


async def owner_of(tx: Transaction, thread_id: str) -> str | None:
    """Person id of who began a conversation; of one that an older version began, who asked there last; empty: nobody is
    known to; `DELETED`: it was deleted. `None`: there is no such conversation."""
    row = await tx.one(_OWNER, {"thread": thread_id})
    return None if row is None else str(row.owner)


async def owner_and_kept(tx: Transaction, thread_id: str) -> tuple[str, bool]:
    """As `owner_of`, empty where there is no such conversation; and whether that is kept, so that it stays."""
    row = await tx.one(_OWNER, {"thread": thread_id})
    return ("", False) if row is None else (str(row.owner), row.kept is not None)


async def begin(tx: Transaction, thread_id: str, owner: str, now: float) -> None:
    """Keep who began a conversation; who is kept already stays."""
    await insert_new(tx, thread_owners, {"thread_id": thread_id, "owner": owner, "since": now})


async def threads_of(tx: Transaction, owners: Collection[str], limit: int) -> tuple[ThreadSummary, ...]:
    """The conversations that these began in which something happened last, with how many questions are open in each;
    none that was deleted."""
    own = (
        sa.select(thread_owners.c.thread_id)
        .where(thread_owners.c.owner.in_(sorted(owners)))
        .order_by(thread_owners.c.since.desc())
        .limit(MOST_LOOKED_AT)
    )
    rows = await tx.all(
        sa.select(
            threads.c.thread_id,
            threads.c.title,
            threads.c.updated_at,
            approvals_waiting_in(threads).label("approvals"),
            questions_in(threads).label("questions"),
        )
        .where(
            threads.c.thread_id.in_(own), threads.c.deleted_at.is_(None), ~threads.c.thread_id.contains(GATEWAY_MARK)
        )
        .order_by(threads.c.updated_at.desc())
        .limit(limit)
    )
    return tuple(
        ThreadSummary(r.thread_id, r.title, r.updated_at, r.approvals + r.questions, r.questions) for r in rows
    )


async def approvals_in(tx: Transaction, thread_id: str, limit: int) -> Sequence[ApprovalRow]:
    """The newest approvals in a conversation, settled ones too, without their arguments."""
    cards = sa.select(posts.c.subject).where(posts.c.thread_id == thread_id, posts.c.kind == "approval")
    rows = await tx.all(cards.order_by(posts.c.seq.desc()).limit(limit))
    return await without_arguments(tx, dict.fromkeys(row.subject for row in rows))


async def voted_in(tx: Transaction, thread_id: str, people: Collection[str]) -> Sequence[tuple[str, str]]:
    """Approval id and call id of those in a conversation on which any of these has voted."""
    cards = sa.select(posts.c.subject).where(posts.c.thread_id == thread_id, posts.c.kind == "approval")
    query = (
        sa.select(approvals.c.approval_id, approvals.c.call_id)
        .join(votes, votes.c.approval_id == approvals.c.approval_id)
        .where(approvals.c.approval_id.in_(cards), votes.c.person_id.in_(sorted(people)))
    )
    return [(r.approval_id, r.call_id) for r in await tx.all(query)]


# ------------------------------------------------------------------------------ conversations by number


async def number_of(tx: Transaction, thread_id: str, owner: str) -> int:
    """The number of a conversation, which it gets now if it has none."""
    await insert_new(tx, conversation_numbers, {"thread_id": thread_id, "owner": owner})
    query = sa.select(conversation_numbers.c.number).where(conversation_numbers.c.thread_id == thread_id)
    row = await tx.one(query)
    if row is None:
        raise RuntimeError("a number that was just given is not there")
    return int(row.number)


async def of_number(tx: Transaction, number: int) -> tuple[str, str] | None:
    """Thread id and owner of the conversation with this number; `None`: there is none."""
    query = sa.select(conversation_numbers).where(conversation_numbers.c.number == number)
    row = await tx.one(query)
    return None if row is None else (row.thread_id, row.owner)
