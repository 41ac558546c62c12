"""“Stop” ends a plan at once: nobody decides anything of it afterwards."""

from __future__ import annotations

import pytest

from bot.domain import AlreadySettled, Choice, Decision, Settled
from bot.plans import Plans
from bot.records import threads
from bot.records.locks import UNLOCKED
from bot.task_threads import task_thread_id
from graph.interrupts import PlanAsked, PlannedTask
from tests.bot.conftest import place
from tests.bot.services_stage import ANA, THREAD, Stage
from tests.bot.test_plans import PLAN, TURN


@pytest.fixture
async def task(stage: Stage) -> str:
    """The thread of a task that waits for an approval, in a plan of Ana's."""
    tasks = tuple(PlannedTask(id=each, agent="files", instruction=each) for each in ("read", "tell"))
    asked = PlanAsked(call_id=PLAN, tasks=tasks, requester=ANA.person_id, turn=TURN)
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock(), requester=ANA.person_id)
        await Plans(stage.outbox, stage.engine, stage.clock).record(tx, THREAD, asked)
    own = task_thread_id(THREAD, PLAN, "tell")
    await stage.waiting(own)
    await stage.ask("a1", thread_id=own)
    return own


async def test_what_a_task_asks_cannot_be_approved_once_stop_was_acknowledged(stage: Stage, task: str) -> None:
    assert await stage.services.inbox.stop("stop", THREAD, ANA) == Settled("Stopped.")
    click = Decision("click", ANA, (Choice("a1", "approve"),))
    result = (await stage.services.approvals.decide(click))["a1"]
    assert isinstance(result, AlreadySettled), result
    # The first that is handled there ends it; nothing resumes it.
    assert await stage.waiting(task) == [f"stop@{task}"]
