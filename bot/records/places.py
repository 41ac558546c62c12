"""What there is to do in places, and their jobs, on PostgreSQL: several processes look after places there.

A job of Procrastinate is a mere wake-up. What has to be done stands in `deliveries` and `posts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.claims import Claim
from bot.records.deliveries import Delivery
from bot.records.postgresql import PostgresTransaction
from bot.records.statements import Prepared
from bot.records.tables import TIMER, WAITING, deliveries, locks, posts, threads

INDEXES = (
    "CREATE INDEX IF NOT EXISTS ix_deliveries_place ON deliveries (split_part(thread_id, '#', 1)) "
    "WHERE status = 'waiting'",
    "CREATE INDEX IF NOT EXISTS ix_posts_place ON posts (split_part(lane, '#', 1)) WHERE sent_revision < revision",
)
"""What finds the work of a place. SQLite has no use for it."""


def _place(name: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    return sa.func.split_part(name, sa.literal_column("'#'"), sa.literal_column("1"))


_before = deliveries.alias("before")
_DUE = (
    deliveries.c.status == WAITING,
    deliveries.c.due_at <= sa.bindparam("now"),
    # What waits to be tried again holds back what came after it; timers hold back nothing.
    ~sa.exists().where(
        _before.c.thread_id == deliveries.c.thread_id,
        _before.c.status == WAITING,
        _before.c.kind != TIMER,
        _before.c.due_at > sa.bindparam("now"),
        sa.or_(
            _before.c.urgent > deliveries.c.urgent,
            sa.and_(_before.c.urgent == deliveries.c.urgent, _before.c.seq < deliveries.c.seq),
        ),
    ),
)
_DUE_IN = Prepared(
    sa.select(deliveries.c.thread_id, sa.func.bool_or(deliveries.c.kind == sa.literal_column("'stop'")).label("stops"))
    .where(_place(deliveries.c.thread_id) == sa.bindparam("place"), *_DUE)
    .group_by(deliveries.c.thread_id)
)
_UNSENT = sa.and_(
    posts.c.sent_revision < posts.c.revision,
    # Nobody could show it otherwise.
    sa.or_(posts.c.place.is_not(None), sa.exists().where(threads.c.thread_id == posts.c.lane)),
)
_UNSENT_IN = Prepared(
    sa.select(posts.c.lane).where(_place(posts.c.lane) == sa.bindparam("place"), _UNSENT).group_by(posts.c.lane)
)
_ALL_DUE = Prepared(
    sa.select(deliveries.c.thread_id, sa.func.bool_or(deliveries.c.kind == sa.literal_column("'stop'")).label("stops"))
    .where(*_DUE)
    .group_by(deliveries.c.thread_id)
)
_ALL_UNSENT = Prepared(sa.select(posts.c.lane).where(_UNSENT).group_by(posts.c.lane))
_BEGIN = Prepared(sa.update(deliveries).where(deliveries.c.key == sa.bindparam("of")).values(begun=True))
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
    due = await tx.all(_DUE_IN, {"place": place, "now": now})
    unsent = await tx.all(_UNSENT_IN, {"place": place})
    return Work({row.thread_id: row.stops for row in due}, [row.lane for row in unsent])


async def all_work(tx: PostgresTransaction, now: float) -> Work:
    """What there is to do anywhere."""
    due = await tx.all(_ALL_DUE, {"now": now})
    unsent = await tx.all(_ALL_UNSENT)
    return Work({row.thread_id: row.stops for row in due}, [row.lane for row in unsent])


async def begin(tx: PostgresTransaction, delivery: Delivery) -> None:
    """Notes that the handler is given a message, unless that is noted already: nobody may change it any more. Nobody
    changes what is no message."""
    if delivery.kind == "message" and not delivery.begun:
        await tx.run(_BEGIN, {"of": delivery.key})


async def release(tx: PostgresTransaction, claim: Claim) -> None:
    """Nothing is left in the middle there."""
    await tx.run(_RELEASE, {"of": claim.place})


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
_TAKE_AWAY = sa.text(
    "DELETE FROM procrastinate_jobs WHERE id = :job AND status = 'doing' AND worker_id IS NOT DISTINCT FROM :worker "
    "RETURNING id"
)
_WAKE = """
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT %(queue)s, %(task)s, place, place, jsonb_build_object('place', place) FROM unnest(%(places)s::text[]) AS place
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING
"""
QUEUE = "places"
TASK = "run_place"


async def wake(driver: Any, names: Sequence[str]) -> None:
    """Has somebody look after these places, by a job each, where none waits. As Procrastinate defers one, but without
    an error, and a savepoint for it, where one waits."""
    await driver.execute(_WAKE, {"queue": QUEUE, "task": TASK, "places": list(names)})


async def jobless(tx: PostgresTransaction, among: Collection[str]) -> Sequence[str]:
    """The places, among these, that nobody looks after or is going to."""
    return [row.place for row in await tx.all(_JOBLESS, {"places": sorted(among)})]


async def drop_waiting_job(tx: PostgresTransaction, place: str) -> None:
    """Nobody needs to look after the place: nothing is to do there. The place is locked."""
    await tx.run(_UNWANTED, {"place": place})


async def take_away_job(tx: PostgresTransaction, job: int, worker: int | None) -> bool:
    """Takes a job from the worker that has died with it; false when somebody else has done that."""
    return await tx.one(_TAKE_AWAY, {"job": job, "worker": worker}) is not None
