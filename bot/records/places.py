"""What there is to do in places, and their jobs, on PostgreSQL: several processes look after places there.

A job of Procrastinate is a mere wake-up. What has to be done stands in `deliveries` and `posts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.claims import Claim
from bot.records.deliveries import Delivery, head_of, next_two
from bot.records.postgresql import PostgresTransaction
from bot.records.statements import Prepared
from bot.records.tables import TIMER, WAITING, deliveries, locks, posts, threads

INDEXES = {
    "ix_deliveries_place": "deliveries (split_part(thread_id, '#', 1)) WHERE status = 'waiting'",
    "ix_posts_place": "posts (split_part(lane, '#', 1)) WHERE sent_revision < revision",
}
"""What finds the work of a place. SQLite has no use for it."""


def _place(name: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    return sa.func.split_part(name, sa.literal_column("'#'"), sa.literal_column("1"))


def _due(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Threads in which something is due, and whether one of these is a stop. Each row is read once: how many wait in a
    thread is up to people."""
    now: sa.BindParameter[float] = sa.bindparam("now")
    # What waits to be tried again holds back what came after it; timers hold back nothing.
    held_back = sa.func.bool_or(sa.and_(deliveries.c.kind != TIMER, deliveries.c.due_at > now)).over(
        partition_by=deliveries.c.thread_id, order_by=(deliveries.c.urgent.desc(), deliveries.c.seq), rows=(None, 0)
    )
    waiting = (
        sa.select(deliveries.c.thread_id, deliveries.c.kind, deliveries.c.due_at, held_back.label("held_back"))
        .where(deliveries.c.status == WAITING, sa.or_(deliveries.c.kind != TIMER, deliveries.c.due_at <= now), *where)
        .subquery()
    )
    stops = sa.func.bool_or(waiting.c.kind == sa.literal_column("'stop'"))
    return (
        sa.select(waiting.c.thread_id.label("name"), stops.label("stops"))
        .where(waiting.c.due_at <= now, ~waiting.c.held_back)
        .group_by(waiting.c.thread_id)
    )


_UNSENT = sa.and_(
    posts.c.sent_revision < posts.c.revision,
    # Nobody could show it otherwise.
    sa.or_(posts.c.place.is_not(None), sa.exists().where(threads.c.thread_id == posts.c.lane)),
)
_IN_PLACE = sa.union_all(
    _due(_place(deliveries.c.thread_id) == sa.bindparam("place")),
    sa.select(posts.c.lane, sa.cast(sa.null(), sa.Boolean))
    .where(_place(posts.c.lane) == sa.bindparam("place"), _UNSENT)
    .group_by(posts.c.lane),
)
"""Threads, and lanes, of which nothing stops."""
_WORK_IN = Prepared(_IN_PLACE)
_found = _IN_PLACE.cte("found")
_next = next_two(_found.c.name).lateral("next")
_first = next_two(_found.c.name).limit(1).lateral("first")
_begun = (
    sa.update(deliveries)
    .where(
        deliveries.c.seq.in_(
            sa.select(_first.c.seq)
            .select_from(_found.join(_first, _found.c.stops.is_not(None)))
            .where(_first.c.due_at <= sa.bindparam("now"), _first.c.kind == "message", _first.c.begun.is_not(True))
        )
    )
    .values(begun=True)
    .returning(deliveries.c.seq)
    .cte("begun")
)
_BEGIN_WORK = Prepared(
    sa.select(_found.c.name, _found.c.stops, *_next.c)
    .join(_next, _found.c.stops.is_not(None), isouter=True)
    .add_cte(_begun)
)
"""Its parts see the rows as they were before it."""
_with_due = deliveries.alias("with_due")
_ALL_DUE = Prepared(
    _due(
        deliveries.c.thread_id.in_(
            sa.select(_with_due.c.thread_id).where(
                _with_due.c.status == WAITING, _with_due.c.due_at <= sa.bindparam("now")
            )
        )
    )
)
_ALL_UNSENT = Prepared(sa.select(posts.c.lane).where(_UNSENT).group_by(posts.c.lane))
_BEGIN = Prepared(sa.update(deliveries).where(deliveries.c.key == sa.bindparam("of")).values(begun=True))
_HOLD = Prepared(sa.update(locks).where(locks.c.name == sa.bindparam("of")).values(held=True))
_RELEASE = Prepared(sa.update(locks).where(locks.c.name == sa.bindparam("of")).values(held=False))


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do now."""

    threads: Mapping[str, bool]
    """Threads in which something is due → whether one of these is a stop."""
    lanes: Sequence[str]
    """Lanes in which something has to be shown."""

    def __bool__(self) -> bool:
        return bool(self.threads or self.lanes)


async def work_in(tx: PostgresTransaction, place: str, now: float) -> Work:
    """What there is to do in a place."""
    return _work(await tx.all(_WORK_IN, {"place": place, "now": now}))


async def begin_work(tx: PostgresTransaction, place: str, now: float) -> tuple[Work, dict[str, tuple[Delivery, bool]]]:
    """The same, with the heads of its threads, and whether anything waits behind each. Of these it is noted that they
    are begun, as by `begin`; they are returned as they were before."""
    found = await tx.all(_BEGIN_WORK, {"place": place, "now": now})
    heads = {}
    for thread_id in (work := _work(found)).threads:
        here = (row for row in found if row.name == thread_id and row.seq is not None)
        rows = sorted(here, key=lambda row: (not row.urgent, row.seq))
        head, more = head_of(rows, now)
        if head is not None:
            heads[thread_id] = head, more
    return work, heads


def _work(found: Sequence[Any]) -> Work:
    threads = {row.name: row.stops for row in found if row.stops is not None}
    return Work(threads, [row.name for row in found if row.stops is None])


async def all_work(tx: PostgresTransaction, now: float) -> Work:
    """What there is to do anywhere."""
    due = await tx.all(_ALL_DUE, {"now": now})
    unsent = await tx.all(_ALL_UNSENT)
    return Work({row.name: row.stops for row in due}, [row.lane for row in unsent])


async def begin(tx: PostgresTransaction, delivery: Delivery) -> None:
    """Notes that the handler is given a message, unless that is noted already: nobody may change it any more. Nobody
    changes what is no message."""
    if delivery.kind == "message" and not delivery.begun:
        await tx.run(_BEGIN, {"of": delivery.key})


async def hold(tx: PostgresTransaction, claim: Claim) -> None:
    """Something may be left in the middle there, as since the claim."""
    await tx.run(_HOLD, {"of": claim.place})


async def release(tx: PostgresTransaction, claim: Claim) -> None:
    """Nothing is left in the middle there."""
    await tx.run(_RELEASE, {"of": claim.place})


async def leave(tx: PostgresTransaction, place: str) -> None:
    """Nothing is left there, neither to do nor in the middle: the last statement of a transaction that has locked the
    place. It does not wait for the disk; what is lost of this is found out."""
    await tx.execute(_LEAVE, {"place": place})


async def epochs(tx: PostgresTransaction, names: Collection[str]) -> Mapping[str, int]:
    """The epochs of these places."""
    found = await tx.all(sa.select(locks.c.name, locks.c.epoch).where(locks.c.name.in_(names)))
    return {row.name: row.epoch for row in found}


# ----------------------------------------------------------------------------------------- the jobs
# Statements of our own where Procrastinate has none that name what they rely on.

_JOBLESS = sa.text(
    "SELECT place FROM unnest(cast(:places AS text[])) AS place WHERE NOT EXISTS "
    "(SELECT 1 FROM procrastinate_jobs WHERE lock = place AND status IN ('todo', 'doing'))"
)
_UNWANTED = sa.text("DELETE FROM procrastinate_jobs WHERE queueing_lock = :place AND status = 'todo'")
_GIVEN_TO = sa.text("SELECT id, lock FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = :worker")
_TAKE_AWAY = sa.text(
    "DELETE FROM procrastinate_jobs WHERE id = :job AND status = 'doing' AND worker_id IS NOT DISTINCT FROM :worker "
    "RETURNING id"
)
# One place each: PostgreSQL plans a statement that unnests an array anew for every execution, and planning takes longer
# than executing.
_WAKE = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, status, worker_id)
SELECT %(queue)s, %(task)s, %(priority)s, place, place, jsonb_build_object('place', place),
    CASE WHEN taker IS NULL THEN 'todo' ELSE 'doing' END::procrastinate_job_status, taker
FROM (SELECT %(place)s::text AS place, (
    SELECT id FROM procrastinate_workers WHERE id = %(taker)s AND NOT EXISTS (
        SELECT FROM procrastinate_jobs WHERE lock = %(place)s AND status IN ('todo', 'doing')
    ) FOR KEY SHARE SKIP LOCKED
) AS taker) AS job
ON CONFLICT DO NOTHING
RETURNING id, status, task_name, priority, lock, queueing_lock, args, scheduled_at, queue_name, attempts, worker_id
"""
_LEAVE = """
WITH released AS (
    UPDATE locks SET held = false WHERE name = %(place)s RETURNING set_config('synchronous_commit', 'off', true)
)
DELETE FROM procrastinate_jobs WHERE queueing_lock = %(place)s AND status = 'todo'
"""
NO_TAKERS: Mapping[str, int] = {}
QUEUE = "places"
TASK = "run_place"


async def wake(
    tx: PostgresTransaction, woken: Mapping[str, bool], takers: Mapping[str, int] = NO_TAKERS
) -> Sequence[dict[str, Any]]:
    """Has somebody look after these places, by a job each, where none waits. As Procrastinate defers one, but without
    an error, and a savepoint for it, where one waits. Places in which there is nothing to handle go first: what is to
    be shown there takes a moment, and turns may keep all workers for long.

    Args:
        takers: workers that have the jobs of these places from the start, if they are still known, and nobody looks
            after the place or is going to.

    Returns:
        The jobs that they have, as Procrastinate fetches them.
    """
    given = []
    for place, handles in woken.items():
        values = {"place": place, "priority": 0 if handles else 1, "taker": takers.get(place)}
        cursor = await tx.execute(_WAKE, {"queue": QUEUE, "task": TASK, **values})
        made = await cursor.fetchone()
        if place in takers and made is not None:
            job = dict(zip((column.name for column in cursor.description), made, strict=True))
            given += [job] if job["status"] == "doing" else []
    return given


async def jobless(tx: PostgresTransaction, among: Collection[str]) -> Sequence[str]:
    """The places, among these, that nobody looks after or is going to."""
    return [row.place for row in await tx.all(_JOBLESS, {"places": sorted(among)})]


async def drop_waiting_job(tx: PostgresTransaction, place: str) -> None:
    """Nobody needs to look after the place: nothing is to do there. The place is locked."""
    await tx.run(_UNWANTED, {"place": place})


async def jobs_given_to(tx: PostgresTransaction, worker: int) -> Mapping[int, str]:
    """The jobs that a worker has, as the database knows it, each with its place."""
    return {row.id: row.lock for row in await tx.all(_GIVEN_TO, {"worker": worker})}


async def take_away_job(tx: PostgresTransaction, job: int, worker: int | None) -> bool:
    """Takes a job from a worker that will not end it; false when somebody else has done that."""
    return await tx.one(_TAKE_AWAY, {"job": job, "worker": worker}) is not None
