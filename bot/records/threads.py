"""Rows of `threads`, `people` with their `feedback`, and `places`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain import ConversationReference, Feedback, Person, ThreadSummary
from bot.gateway.thread_ids import GATEWAY_MARK
from bot.records.database import Row, Transaction, insert_for, insert_new, reader, upsert
from bot.records.prefixes import from_to
from bot.records.statements import Prepared, PreparedForLists
from bot.records.tables import (
    OPEN,
    PENDING,
    UNKNOWN,
    approvals,
    attempts,
    clarifications,
    deliveries,
    feedback,
    gateway_calls,
    people,
    places,
    sign_ins,
    thread_owners,
    threads,
)
from bot.task_threads import TASK_MARK

LONGEST_TITLE = 80
"""Characters of a thread's title, which is the beginning of its first message."""


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """One conversation."""

    thread_id: str
    place: ConversationReference
    title: str
    requester: str | None
    turn: str | None
    updated_at: float
    unsettled: bool = False
    """A delivery was parked and what it left unfinished could not be ended; cleared when the thread is at rest."""


_thread = reader(ThreadRow, place=lambda place: ConversationReference(**place), unsettled=bool)
_PERSON = Prepared(sa.select(people).where(people.c.person_id == sa.bindparam("id")))
_BY_ID = Prepared(sa.select(threads).where(threads.c.thread_id == sa.bindparam("id")))
_THIS = sa.select(deliveries.c.seq).where(deliveries.c.key == sa.bindparam("this")).scalar_subquery()
_HEARD_BEFORE = (
    sa.select(deliveries.c.key)
    .where(deliveries.c.thread_id == sa.bindparam("id"), deliveries.c.kind == "message", deliveries.c.seq < _THIS)
    .order_by(deliveries.c.seq.desc())
    .limit(1)
    .scalar_subquery()
)
_OF_DELIVERY = Prepared(
    sa.select(threads, _HEARD_BEFORE.label("heard")).where(threads.c.thread_id == sa.bindparam("id"))
)
_OF_THREAD = sa.update(threads).where(threads.c.thread_id == sa.bindparam("id"))
_CLIENT = Prepared(sa.select(gateway_calls.c.client).where(gateway_calls.c.thread_id == sa.bindparam("thread")))
_SET_TURN = Prepared(_OF_THREAD)


def _ensuring(dialect: str) -> sa.Insert:
    insert = insert_for(dialect, threads)
    title = sa.func.coalesce(sa.func.nullif(threads.c.title, sa.literal_column("''")), insert.excluded.title)
    now = {"updated_at": insert.excluded.updated_at, "place": insert.excluded.place, "title": title}
    return insert.on_conflict_do_update(index_elements=[threads.c.thread_id], set_=now)


_ENSURE = Prepared(_ensuring)
_LET_GO = Prepared(_OF_THREAD.where(threads.c.requester == sa.bindparam("person")).values(requester=None))
_NAMES = PreparedForLists(
    lambda person_ids: sa.select(people.c.person_id, people.c.name).where(people.c.person_id.in_(person_ids))
)


def _newest_at(*conditions: sa.ColumnElement[bool]) -> Prepared:
    here = sa.select(threads.c.thread_id, threads.c.updated_at).where(
        threads.c.place_key == sa.bindparam("place"), *conditions
    )
    # By number, which is what the ids of one place end with: clocks may stand still or go back.
    return Prepared(here.order_by(sa.func.length(threads.c.thread_id).desc(), threads.c.thread_id.desc()).limit(1))


_NEWEST_AT = _newest_at()
_NEWEST_AT_OF = _newest_at(threads.c.requester == sa.bindparam("person"))


async def ensure(
    tx: Transaction,
    thread_id: str,
    place: ConversationReference,
    title: str,
    now: float,
    *,
    requester: str | None = None,
) -> None:
    """Make the thread, or note that something happened in it and how it is reached now (addresses change). One that
    has no title gets this one.

    `requester`: whose turn a new thread begins with; `None`: nobody's yet.
    """
    row = {
        "thread_id": thread_id,
        "platform": place.platform,
        "place_key": place.key,
        "place": asdict(place),
        "title": " ".join(title.split())[:LONGEST_TITLE],
        "requester": requester,
        "created_at": now,
        "updated_at": now,
    }
    await tx.run(_ENSURE, row)


async def get(tx: Transaction, thread_id: str) -> ThreadRow | None:
    """The thread, or none."""
    return await tx.first(_thread, _BY_ID, {"id": thread_id})


async def client_of(tx: Transaction, thread_id: str) -> str:
    """What the program calls itself that made the call which a thread belongs to; empty: the thread is no call's, or
    of one that was over long ago."""
    row = await tx.one(_CLIENT, {"thread": thread_id})
    return "" if row is None else str(row.client)


async def of_delivery(tx: Transaction, thread_id: str, key: str) -> tuple[ThreadRow | None, str | None]:
    """The thread of a delivery, or none; and the key of the message before it there. `None`: it is the first."""
    row = await tx.one(_OF_DELIVERY, {"id": thread_id, "this": key})
    return (None, None) if row is None else (_thread(row), row.heard)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One thread at a place that has no threads of its own."""

    thread_id: str
    updated_at: float


async def newest_session(tx: Transaction, place_key: str, *, of: str | None = None) -> SessionRow | None:
    """The newest thread at such a place; `of`: the newest whose requester is this person."""
    if of is None:
        row = await tx.one(_NEWEST_AT, {"place": place_key})
    else:
        row = await tx.one(_NEWEST_AT_OF, {"place": place_key, "person": of})
    return SessionRow(row.thread_id, row.updated_at) if row else None


async def set_turn(tx: Transaction, thread_id: str, requester: str, turn: str) -> None:
    """Keeps whose turn it is now. The thread is at rest."""
    await tx.run(_SET_TURN, {"id": thread_id, "requester": requester, "turn": turn, "unsettled": False})


async def leave_unsettled(tx: Transaction, thread_id: str) -> None:
    """What is unfinished in the thread is given up, and could not be ended: whoever comes next does that."""
    await tx.run(_SET_TURN, {"id": thread_id, "unsettled": True})


async def rename(tx: Transaction, thread_id: str, title: str) -> None:
    """The thread is called this from now on."""
    await tx.run(_SET_TURN, {"id": thread_id, "title": title[:LONGEST_TITLE]})


async def delete(tx: Transaction, thread_id: str, now: float) -> None:
    """Nobody is shown the thread any more; its rows stay."""
    await tx.run(_SET_TURN, {"id": thread_id, "deleted_at": now})


async def let_go(tx: Transaction, thread_id: str, person_id: str) -> None:
    """The thread is not this person's any more, if it was."""
    await tx.run(_LET_GO, {"id": thread_id, "person": person_id})


async def newest(tx: Transaction, platform: str, limit: int) -> tuple[ThreadSummary, ...]:
    """The conversations in which something happened last, with who began each and how many questions are open in it."""
    rows = await tx.all(_NEWEST, {"platform": platform, "limit": limit})
    return tuple(
        ThreadSummary(r.thread_id, r.title, r.updated_at, r.approvals + r.questions, r.questions, owner=r.name or "")
        for r in rows
    )


def approvals_waiting_in(threads: sa.Table) -> sa.ColumnElement[int]:
    """How many approvals wait in a thread."""
    return _open_in(threads, ((approvals, approvals.c.status == PENDING),))


def questions_in(threads: sa.Table) -> sa.ColumnElement[int]:
    """How many questions to its requester are open in a thread: everything but approvals."""
    return _open_in(
        threads,
        (
            (clarifications, clarifications.c.status == OPEN),
            (sign_ins, sign_ins.c.status == OPEN),
            (attempts, sa.and_(attempts.c.status == UNKNOWN, attempts.c.choice.is_(None))),
        ),
    )


def _open_in(threads: sa.Table, kinds: Iterable[tuple[sa.Table, sa.ColumnElement[bool]]]) -> sa.ColumnElement[int]:
    waiting: sa.ColumnElement[int] = sa.literal(0)
    for table, is_open in kinds:
        count = sa.select(sa.func.count()).where(table.c.thread_id == threads.c.thread_id, is_open)
        waiting = waiting + count.correlate(threads).scalar_subquery()
    return waiting


def _newest() -> sa.Select[Any]:
    return (
        sa.select(
            threads.c.thread_id,
            threads.c.title,
            threads.c.updated_at,
            approvals_waiting_in(threads).label("approvals"),
            questions_in(threads).label("questions"),
            people.c.name,
        )
        .join(thread_owners, thread_owners.c.thread_id == threads.c.thread_id, isouter=True)
        .join(people, people.c.person_id == thread_owners.c.owner, isouter=True)
        .where(
            threads.c.platform == sa.bindparam("platform"),
            threads.c.deleted_at.is_(None),
            ~threads.c.thread_id.contains(GATEWAY_MARK),
            ~threads.c.thread_id.contains(TASK_MARK),
        )
        .order_by(threads.c.updated_at.desc())
        .limit(sa.bindparam("limit"))
    )


_NEWEST = _newest()


async def remember(tx: Transaction, person: Person, now: float) -> None:
    """Keep what the platform says of a person; where it says no address now, the one that it said before stays.

    Writes nothing when that is kept already: `is_kept` looks into the table, since what a cache remembers to have
    written may have been overwritten by another (a name that changes and changes back).
    """
    if await is_kept(tx, person):
        return
    row = {**asdict(person), "seen_at": now}
    await upsert(tx, people, row, [k for k, v in row.items() if k != "person_id" and (k != "email" or v)])


async def introduce(tx: Transaction, person: Person, now: float) -> None:
    """Keep the name of a person of whom nothing is known. Of several, in the order of their ids: two transactions that
    keep the same people would wait for each other."""
    await insert_new(tx, people, {**asdict(person), "seen_at": now})


async def is_kept(tx: Transaction, person: Person) -> bool:
    """Whether all that is said here of a person is what is kept of them."""
    row = await tx.one(_PERSON, {"id": person.person_id})
    return row is not None and _is_same(row, person)


def _is_same(row: Row, person: Person) -> bool:
    kept = (row.name, row.time_zone, row.locale)
    return kept == (person.name, person.time_zone, person.locale) and person.email in {"", row.email}


async def person(tx: Transaction, person_id: str) -> Person | None:
    """What is known of a person."""
    row = await tx.one(_PERSON, {"id": person_id})
    return Person(row.person_id, row.name, row.time_zone, row.locale, row.email) if row else None


async def known_within(tx: Transaction, within: str, limit: int) -> Sequence[str]:
    """Ids of the people we know whose ids begin with this, in order."""
    query = sa.select(people.c.person_id).where(from_to(people.c.person_id, within, f"{within}\uffff"))
    return [row.person_id for row in await tx.all(query.order_by(people.c.person_id).limit(limit))]


async def with_address(tx: Transaction, email: str) -> Sequence[str]:
    """Ids of the people of whom a platform said this address when they were seen last."""
    rows = await tx.all(sa.select(people.c.person_id).where(people.c.email == email).order_by(people.c.person_id))
    return [row.person_id for row in rows]


_OTHERS = people.alias()
_SAME_ADDRESS = Prepared(
    sa.select(_OTHERS.c.person_id).where(
        people.c.person_id == sa.bindparam("person"), people.c.email != "", _OTHERS.c.email == people.c.email
    )
)


_WITH_ACCOUNTS = Prepared(
    sa.select(people, _OTHERS.c.person_id.label("account"))
    .join(_OTHERS, sa.and_(_OTHERS.c.email == people.c.email, people.c.email != ""), isouter=True)
    .where(people.c.person_id == sa.bindparam("id"))
)


async def kept_with_accounts(tx: Transaction, person: Person) -> tuple[str, ...] | None:
    """What `accounts_of` says of a person; `None` when not all that is said here of them is what is kept."""
    rows = await tx.all(_WITH_ACCOUNTS, {"id": person.person_id})
    if not rows or not _is_same(rows[0], person):
        return None
    return tuple(sorted({person.person_id, *(row.account for row in rows if row.account is not None)}))


async def accounts_of(tx: Transaction, person_id: str) -> tuple[str, ...]:
    """This person's id and those of their other accounts, in order: all of whom platforms said the same address when
    they were seen last. Good enough for counting; who may decide is for `bot.approvals.directory` to find out."""
    rows = await tx.all(_SAME_ADDRESS, {"person": person_id})
    return tuple(sorted({person_id, *(row.person_id for row in rows)}))


async def names(tx: Transaction, person_ids: Iterable[str]) -> Mapping[str, str]:
    """Names by person id; for somebody who was never seen, the last part of the id."""
    wanted = list(dict.fromkeys(person_ids))
    return shown_names(await known_names(tx, wanted), wanted)


def shown_names(known: Mapping[str, str], person_ids: Iterable[str]) -> Mapping[str, str]:
    """Names by person id, of those that are `known`; for somebody who was never seen, the last part of the id."""
    return {p: known.get(p, p.rsplit(":", 1)[-1]) for p in person_ids}


async def known_names(tx: Transaction, person_ids: Iterable[str]) -> Mapping[str, str]:
    """Names by person id of those, among them, who were ever seen or named."""
    rows = await tx.all(*_NAMES.of(list(person_ids)))
    return {r.person_id: r.name for r in rows}


# --------------------------------------------------------------------- where the bot was brought to

AT_ONCE = 500
"""Ids in one statement; SQLite takes 32,766."""


async def note_place(tx: Transaction, place: ConversationReference, now: float) -> bool:
    """Note that the bot is there; false when that was known."""
    return await insert_new(tx, places, {"place_key": place.key, "place": asdict(place), "arrived_at": now})


async def forget_place(tx: Transaction, place: ConversationReference) -> None:
    """The bot is not there any more."""
    await tx.run(sa.delete(places).where(places.c.place_key == place.key))


async def threads_at(tx: Transaction, place: ConversationReference, among: Collection[str]) -> Sequence[str]:
    """The threads, `among` these, that are held at a place, or in the channel that it is."""
    here = threads.c.place_key == place.key
    if place.channel:
        here |= threads.c.place["channel"].as_string() == place.channel
    query = sa.select(threads.c.thread_id).where(here)
    candidates, found = list(among), list[str]()
    for start in range(0, len(candidates), AT_ONCE):
        some = query.where(threads.c.thread_id.in_(candidates[start : start + AT_ONCE]))
        found += [row.thread_id for row in await tx.all(some)]
    return found


# --------------------------------------------------------------------- what people think of answers


async def keep_feedback(tx: Transaction, given: Feedback, now: float) -> None:
    """Keep what a person thinks of an answer; a later one of the same person replaces it."""
    said = {"verdict": given.verdict, "comment": given.comment, "at": now}
    await upsert(tx, feedback, {"post": given.post_id, "person_id": given.person.person_id, **said})
