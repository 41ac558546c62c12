"""A service may let a model say as much as it likes: of what came of a task no more is kept than others are given."""

from __future__ import annotations

from bot.plans import Plans, task_key
from bot.records import plans, threads
from bot.records.locks import UNLOCKED
from bot.task_threads import task_thread_id
from graph.interrupts import PlanAsked, PlannedTask
from graph.plans import LONGEST_RESULT
from tests.bot.conftest import place
from tests.bot.services_stage import ANA, THREAD, Stage
from tests.bot.test_plans_of_personal_results import PLAN, TURN


async def test_of_a_long_result_as_much_is_kept_as_others_are_given(stage: Stage) -> None:
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
