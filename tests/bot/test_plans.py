"""Plans in the records: for whom results are, how much of them is kept, and which turn a call of a task belongs to."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from bot.domain import PlanView
from bot.plans import Plans, task_key
from bot.records import attempts, plans, threads
from bot.records.locks import UNLOCKED
from bot.task_threads import task_thread_id, turn_of_call
from bot.views import plan_view
from graph.interrupts import PlanAsked, PlannedTask
from graph.plans import LONGEST_RESULT
from graph.ports import CallRecord
from tests.audit.calls import tool
from tests.bot.conftest import place
from tests.bot.rows import DIGEST
from tests.bot.services_stage import ANA, THREAD, Stage
from tests.bot.stubs import NotedEngine

PLAN = "m1.0.0"
SECRET = "Ana earns 4,711 a month"
TURN: dict[str, Any] = {
    "delivery": "m1",
    "requester": ANA.person_id,
    "requester_name": "Ana",
    "time_zone": "UTC",
    "platform": "chat",
    "channel": "C1",
    "thread_id": THREAD,
}


async def run(stage: Stage, owner: str | None) -> PlanView:
    """A plan of three tasks of which each works on the result before it, the first over `owner`'s account."""
    tasks = (
        PlannedTask(id="read", agent="files", instruction="Read it."),
        PlannedTask(id="sum", agent="files", instruction="Sum it up.", depends_on=("read",)),
        PlannedTask(id="tell", agent="files", instruction="Tell it.", depends_on=("sum",)),
        PlannedTask(id="other", agent="files", instruction="Something else."),
    )
    asked = PlanAsked(call_id=PLAN, tasks=tasks, requester=ANA.person_id, turn=TURN)
    made = Plans(stage.outbox, NotedEngine(), stage.clock)
    async with stage.database.writing(THREAD) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock())
        await made.record(tx, THREAD, asked)
        record = CallRecord(
            thread_id=task_thread_id(THREAD, PLAN, "read"),
            call_id=f"{task_key(PLAN, 'read')}.0.0",
            requester=ANA.person_id,
            tool=tool(),
            arguments={},
            digest=DIGEST,
            approval_round=None,
        )
        await attempts.add(tx, "t1", 1, record, approval_id=None, judged=None, now=stage.clock())
        await attempts.end(tx, record.call_id, 1, "done", now=stage.clock(), text=SECRET, owner=owner)
        for task in tasks:
            own = task_thread_id(THREAD, PLAN, task.id)
            await made.at_rest(tx, own, task_key(PLAN, task.id), SECRET, waits=False)
        ended = await made.answer_of(tx, PLAN)
        view = await plan_view(tx, PLAN)
        assert {each.owner for each in await plans.tasks_of(tx, PLAN) if each.task_id != "other"} == {owner}
    assert ended is not None and view is not None
    return view


@pytest.mark.parametrize("owner", [ANA.person_id, None])
async def test_what_depends_on_a_personal_result_is_shown_to_nobody_else(stage: Stage, owner: str | None) -> None:
    """Rule 11: neither what came of a task over somebody's own account, nor what follows from it."""
    view = await run(stage, owner)
    assert {task.status for task in view.tasks} == {"done"}
    shown = [task.task_id for task in view.tasks if SECRET in task.result]
    assert shown == (["other"] if owner else ["read", "sum", "tell", "other"])


async def test_of_a_long_result_as_much_is_kept_as_others_are_given(stage: Stage) -> None:
    """A service may let a model say as much as it likes."""
    tasks = tuple(PlannedTask(id=each, agent="files", instruction=each) for each in ("read", "tell"))
    asked = PlanAsked(call_id=PLAN, tasks=tasks, requester=ANA.person_id, turn=TURN)
    made = Plans(stage.outbox, stage.engine, stage.clock)
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock())
        await made.record(tx, THREAD, asked)
        own = task_thread_id(THREAD, PLAN, "read")
        await made.at_rest(tx, own, task_key(PLAN, "read"), "x" * (LONGEST_RESULT + 7), waits=False)
        kept = (await plans.tasks_of(tx, PLAN))[0].text
    assert kept == "x" * LONGEST_RESULT + "\n[cut: 7 more characters]"


@pytest.mark.parametrize("way", ["failed", "stopped"])
async def test_of_a_task_that_is_broken_off_the_calls_are_told_that_it_made_all_the_same(
    stage: Stage, way: Literal["failed", "stopped"]
) -> None:
    """The model that made the plan would have them made again."""
    tasks = tuple(PlannedTask(id=each, agent="files", instruction=each) for each in ("pay", "tell"))
    asked = PlanAsked(call_id=PLAN, tasks=tasks, requester=ANA.person_id, turn=TURN)
    made = Plans(stage.outbox, NotedEngine(), stage.clock)
    own = task_thread_id(THREAD, PLAN, "pay")
    async with stage.database.writing(THREAD) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock())
        await made.record(tx, THREAD, asked)
        for number, (name, status) in enumerate((("pay", "unknown"), ("flag", "done"), ("look", "failed"))):
            record = CallRecord(
                thread_id=own,
                call_id=f"{task_key(PLAN, 'pay')}.0.{number}",
                requester=ANA.person_id,
                tool=tool(name=name),
                arguments={},
                digest=DIGEST,
                approval_round=None,
            )
            await attempts.add(tx, f"t{number}", 1, record, approval_id=None, judged=None, now=stage.clock())
            await attempts.end(tx, record.call_id, 1, status, now=stage.clock(), text="", owner=None)
        if way == "failed":
            await made.failed(tx, own, "It took too long.")
        else:
            await made.stop(tx, THREAD, "stop")
        kept = (await plans.tasks_of(tx, PLAN))[0]
    server = tool().server
    assert (kept.status, kept.sources) == (way, (f"{server} › pay (outcome unknown)", f"{server} › flag"))


@pytest.mark.parametrize("turn", ["web:t:m", "T1:C2:1.2", "teams:19:a/b.0@thread.tacv2:1", "retry:1"])
def test_a_call_of_a_task_is_one_of_the_turn_that_made_the_plan(turn: str) -> None:
    call = f"{turn}.0.2"
    assert turn_of_call(call) == turn
    assert turn_of_call(f"{task_key(call, 'a-B_9')}.11.0") == turn
