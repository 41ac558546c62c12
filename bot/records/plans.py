"""Rows of `plans` and `plan_tasks`: what an agent handed over to others, and how far that is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from bot.records.database import Transaction, insert_new, reader
from bot.records.prefixes import of_turn
from bot.records.statements import Prepared
from bot.records.tables import OPEN, plan_tasks, plans
from bot.task_threads import task_thread_id
from graph.interrupts import PlanAsked, TaskEnding

TaskStatus = Literal["blocked", "running", "waiting", "done", "failed", "not_run", "stopped"]
"""`blocked`: what it depends on is not done yet; `waiting`: for people."""
UNDER_WAY: tuple[TaskStatus, ...] = ("running", "waiting")


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan."""

    plan_id: str
    thread_id: str
    requester: str
    status: Literal["open", "ended", "superseded"]
    asked: PlanAsked
    settled_key: str | None
    begun_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task of a plan."""

    thread_id: str
    plan_id: str
    task_id: str
    number: int
    agent: str
    status: TaskStatus
    text: str
    sources: tuple[str, ...]
    owner: str | None
    begun_at: float | None
    ended_at: float | None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status not in ("blocked", *UNDER_WAY)


_plan = reader(PlanRow, asked=PlanAsked.model_validate)
_task = reader(TaskRow, text=lambda text: text or "", sources=lambda sources: tuple(sources or ()))
_PLAN = Prepared(sa.select(plans).where(plans.c.plan_id == sa.bindparam("plan")))
_TASKS = Prepared(
    sa.select(plan_tasks).where(plan_tasks.c.plan_id == sa.bindparam("plan")).order_by(plan_tasks.c.number)
)
_OF_THREAD = Prepared(sa.select(plan_tasks).where(plan_tasks.c.thread_id == sa.bindparam("thread")))
_OPEN_IN = Prepared(sa.select(plans).where(plans.c.thread_id == sa.bindparam("thread"), plans.c.status == OPEN))


async def add(tx: Transaction, thread_id: str, asked: PlanAsked, now: float) -> bool:
    """Keeps a plan and its tasks, of which none has begun. Returns False when it is there already."""
    plan = {
        "plan_id": asked.call_id,
        "thread_id": thread_id,
        "requester": asked.requester,
        "status": "open",
        "asked": asked.model_dump(mode="json"),
        "begun_at": now,
    }
    if not await insert_new(tx, plans, plan):
        return False
    for number, task in enumerate(asked.tasks):
        row = {
            "thread_id": task_thread_id(thread_id, asked.call_id, task.id),
            "plan_id": asked.call_id,
            "task_id": task.id,
            "number": number,
            "agent": task.agent,
            "status": "blocked",
        }
        await insert_new(tx, plan_tasks, row)
    return True


async def get(tx: Transaction, plan_id: str) -> PlanRow | None:
    """The plan, or none."""
    return await tx.first(_plan, _PLAN, {"plan": plan_id})


async def tasks_of(tx: Transaction, plan_id: str) -> Sequence[TaskRow]:
    """The tasks of a plan, each after those that it depends on."""
    return [_task(row) for row in await tx.all(_TASKS, {"plan": plan_id})]


async def tasks_of_turn(tx: Transaction, turn: str) -> Sequence[TaskRow]:
    """The tasks of the plans of a turn, in their order."""
    query = sa.select(plan_tasks).where(of_turn(plan_tasks.c.plan_id, turn))
    return [_task(row) for row in await tx.all(query.order_by(plan_tasks.c.plan_id, plan_tasks.c.number))]


async def task_of_thread(tx: Transaction, thread_id: str) -> TaskRow | None:
    """The task that a thread belongs to, or none."""
    return await tx.first(_task, _OF_THREAD, {"thread": thread_id})


async def failed_among(tx: Transaction, thread_ids: Collection[str]) -> frozenset[str]:
    """Those of these threads that are of tasks which failed."""
    query = sa.select(plan_tasks.c.thread_id).where(plan_tasks.c.thread_id.in_(list(thread_ids)))
    return frozenset([row.thread_id for row in await tx.all(query.where(plan_tasks.c.status == "failed"))])


async def open_in(tx: Transaction, thread_id: str) -> Sequence[PlanRow]:
    """The plans of a conversation that have not ended."""
    return [_plan(row) for row in await tx.all(_OPEN_IN, {"thread": thread_id})]


async def begin_task(tx: Transaction, thread_id: str, now: float) -> bool:
    """A task begins. Returns False when it has, or never will."""
    return await tx.changes(
        sa.update(plan_tasks)
        .where(plan_tasks.c.thread_id == thread_id, plan_tasks.c.status == "blocked")
        .values(status="running", begun_at=now)
    )


async def set_waiting(tx: Transaction, thread_id: str, *, waits: bool) -> bool:
    """A task waits for people now, or no longer. Returns whether that is new."""
    before, after = ("running", "waiting") if waits else ("waiting", "running")
    return await tx.changes(
        sa.update(plan_tasks)
        .where(plan_tasks.c.thread_id == thread_id, plan_tasks.c.status == before)
        .values(status=after)
    )


async def end_task(tx: Transaction, thread_id: str, ending: TaskEnding, now: float) -> bool:
    """A task has ended. Returns False when it had before."""
    return await tx.changes(
        sa.update(plan_tasks)
        .where(plan_tasks.c.thread_id == thread_id, plan_tasks.c.status.in_(("blocked", *UNDER_WAY)))
        .values(status=ending.state, text=ending.text, sources=list(ending.sources), owner=ending.owner, ended_at=now)
    )


async def end(tx: Transaction, plan_id: str, status: Literal["ended", "superseded"], key: str, now: float) -> bool:
    """A plan has ended by this delivery. Returns False when it had before."""
    return await tx.changes(
        sa.update(plans)
        .where(plans.c.plan_id == plan_id, plans.c.status == "open")
        .values(status=status, settled_key=key, ended_at=now)
    )
