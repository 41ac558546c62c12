"""Rows of `threads` and `people`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.tables import approvals, attempts, clarifications, people, sign_ins, threads
from bot.records.upsert import insert
from bot.vocabulary import Person, Place, ThreadSummary

TITLE_LIMIT = 80
"""Characters of a thread's title, which is the beginning of its first message."""


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """One conversation."""

    thread_id: str
    place: Place
    title: str
    requester: str | None
    turn: str | None
    updated_at: float


async def ensure(tx: Transaction, thread_id: str, place: Place, title: str, now: float) -> None:
    """Make the thread, or note that something happened in it."""
    row = {
        "thread_id": thread_id,
        "platform": place.platform,
        "place_key": place.key,
        "place": asdict(place),
        "title": " ".join(title.split())[:TITLE_LIMIT],
        "created_at": now,
        "updated_at": now,
    }
    statement = insert(tx, threads).values(row)
    await tx.run(statement.on_conflict_do_update(index_elements=["thread_id"], set_={"updated_at": now}))


async def get(tx: Transaction, thread_id: str) -> ThreadRow | None:
    """The thread, or none."""
    row = await tx.one(sa.select(threads).where(threads.c.thread_id == thread_id))
    if row is None:
        return None
    return ThreadRow(row.thread_id, Place(**row.place), row.title, row.requester, row.turn, row.updated_at)


async def newest_session(tx: Transaction, place_key: str) -> tuple[str, float] | None:
    """Id and time of the newest thread at a place that has no threads of its own."""
    query = sa.select(threads.c.thread_id, threads.c.updated_at).where(threads.c.place_key == place_key)
    row = await tx.one(query.order_by(threads.c.created_at.desc()).limit(1))
    return (row.thread_id, row.updated_at) if row else None


async def set_turn(tx: Transaction, thread_id: str, requester: str, turn: str) -> None:
    """Whose turn it is now."""
    await tx.run(sa.update(threads).where(threads.c.thread_id == thread_id).values(requester=requester, turn=turn))


async def newest(tx: Transaction, platform: str, limit: int) -> tuple[ThreadSummary, ...]:
    """The threads in which something happened last, with how many questions are open in each."""
    waiting: sa.ColumnElement[int] = sa.literal(0)
    for table, is_open in (
        (approvals, approvals.c.status == "pending"),
        (clarifications, clarifications.c.status == "open"),
        (sign_ins, sign_ins.c.status == "open"),
        (attempts, sa.and_(attempts.c.status == "unknown", attempts.c.choice.is_(None))),
    ):
        count = sa.select(sa.func.count()).where(table.c.thread_id == threads.c.thread_id, is_open)
        waiting = waiting + count.correlate(threads).scalar_subquery()
    query = (
        sa.select(threads.c.thread_id, threads.c.title, threads.c.updated_at, waiting.label("waiting"))
        .where(threads.c.platform == platform)
        .order_by(threads.c.updated_at.desc())
        .limit(limit)
    )
    rows = await tx.all(query)
    return tuple(ThreadSummary(r.thread_id, r.title, r.updated_at, r.waiting) for r in rows)


async def remember(tx: Transaction, person: Person, now: float) -> None:
    """Keep what the platform says of a person."""
    row = {**asdict(person), "seen_at": now}
    statement = insert(tx, people).values(row)
    update = {k: v for k, v in row.items() if k != "person_id"}
    await tx.run(statement.on_conflict_do_update(index_elements=["person_id"], set_=update))


async def person(tx: Transaction, person_id: str) -> Person | None:
    """What is known of a person."""
    row = await tx.one(sa.select(people).where(people.c.person_id == person_id))
    return Person(row.person_id, row.name, row.time_zone, row.locale) if row else None


async def names(tx: Transaction, person_ids: Iterable[str]) -> Mapping[str, str]:
    """Names by person id; for somebody who was never seen, the last part of the id."""
    wanted = list(dict.fromkeys(person_ids))
    rows = await tx.all(sa.select(people.c.person_id, people.c.name).where(people.c.person_id.in_(wanted)))
    known = {r.person_id: r.name for r in rows}
    return {p: known.get(p, p.rsplit(":", 1)[-1]) for p in wanted}
