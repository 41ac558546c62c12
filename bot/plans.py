"""Plans: the tasks of each are begun as soon as they can be, and the run that made it goes on when all have ended.

Each task is a turn in a thread of its own, which is handled as any other. Nothing here waits: what comes of a task is
kept in the transaction that ends its delivery, with what follows from it for the other tasks and the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from bot.domain import Clock, ConversationReference
from bot.outbox import Outbox
from bot.records import attempts, deliveries, plans, threads
from bot.records.attempts import AttemptRow
from bot.records.database import Transaction
from bot.records.deliveries import Delivery
from bot.records.plans import PlanRow, TaskRow
from bot.records.posts import NewPost
from bot.task_threads import task_thread_id
from bot.turns.engine import Engine, resume_thread
from graph.interrupts import PlanAsked, PlanEnded, PlannedTask, TaskEnding
from graph.plans import instruction_of, shortened
from translations import gettext as _
from translations import in_shared_language, ngettext

if TYPE_CHECKING:  # what takes messages in starts before the graph is imported
    from graph.state import Turn

TASK = "task"
"""In the body of the message that begins a task: its `graph.state.Turn`, but for the delivery."""


def is_task(delivery: Delivery) -> bool:
    """Returns whether a message begins a task: the agent that made the plan wrote it, and nobody introduces it."""
    return TASK in delivery.body


def turn_of_task(delivery: Delivery) -> Turn:
    """Returns the turn that such a message begins."""
    turn: Turn = dict(delivery.body[TASK])  # type: ignore[assignment]  # as it was kept
    turn["delivery"], turn["thread_id"] = delivery.key, delivery.thread_id
    return turn


def task_key(plan_id: str, task_id: str) -> str:
    """Returns the key of the message that begins a task. It begins with that of the turn that made the plan, and so do
    the ids of all calls: what is listed of the turn lists those of its tasks."""
    return f"{plan_id}/{task_id}"


class Plans:
    """Keeps plans, and has their tasks done."""

    def __init__(self, outbox: Outbox, engine: Engine, clock: Clock) -> None:
        self._outbox = outbox
        self._engine = engine
        self._clock = clock

    async def record(self, tx: Transaction, thread_id: str, asked: PlanAsked) -> None:
        """Keeps a plan, shows it, and begins the tasks that depend on no other. One that is kept already stays as it
        is."""
        if await plans.add(tx, thread_id, asked, self._clock()):
            await self._outbox.say(tx, NewPost(f"plan:{asked.call_id}", thread_id, "plan", subject=asked.call_id))
            await self._begin_what_can(tx, thread_id, asked)

    async def answer_of(self, tx: Transaction, plan_id: str) -> tuple[PlanEnded, str | None] | None:
        """What came of a plan, for the run that made it, and the key of what ended it; `None`: it has not ended."""
        plan = await plans.get(tx, plan_id)
        if plan is None or plan.status == "open":
            return None
        return await self._ended(tx, plan), plan.settled_key

    async def at_rest(self, tx: Transaction, thread_id: str, delivery: str, said: str, *, waits: bool) -> None:
        """A delivery in the thread of a task has been handled, and nothing runs there any more.

        Args:
            delivery: key of the message that began the task.
            said: what its agent said last.
            waits: whether it waits for people; else it has ended.
        """
        task = await plans.task_of_thread(tx, thread_id)
        if task is None or task.has_ended:
            return
        if waits:
            if await plans.set_waiting(tx, thread_id, waits=True):
                await self._show_again(tx, task)
            return
        made = await attempts.in_turn(tx, delivery)
        owners = [*(each.owner for each in made), *await self._owners_of_what_it_was_told(tx, task)]
        answered = [each for each in made if each.status == "done"]
        ending = TaskEnding(
            id=task.task_id,
            agent=task.agent,
            state="done",
            text=shortened(said) or _nothing_said(),  # all of a plan are read with each message and each change of it
            sources=_named(answered),
            owner=next((each for each in owners if each is not None), None),
        )
        await self._end(tx, task, ending)

    async def _owners_of_what_it_was_told(self, tx: Transaction, task: TaskRow) -> Sequence[str | None]:
        """For whom alone the results are that a task was given: what its agent says of them is for nobody else."""
        plan = await plans.get(tx, task.plan_id)
        planned = plan.asked.tasks if plan is not None else ()
        given = {each for one in planned if one.id == task.task_id for each in one.depends_on}
        return [each.owner for each in await plans.tasks_of(tx, task.plan_id) if each.task_id in given]

    async def goes_on(self, tx: Transaction, thread_id: str) -> None:
        """A task that waited for people goes on."""
        task = await plans.task_of_thread(tx, thread_id)
        if task is not None and await plans.set_waiting(tx, thread_id, waits=False):
            await self._show_again(tx, task)

    async def failed(self, tx: Transaction, thread_id: str, why: str) -> None:
        """A task could not be done.

        Args:
            why: a sentence, for people and for the model.
        """
        task = await plans.task_of_thread(tx, thread_id)
        if task is not None and not task.has_ended:
            await self._end(tx, task, await self._unfinished(tx, task, "failed", why))

    async def stop(self, tx: Transaction, thread_id: str, key: str) -> Sequence[str]:
        """Stops the plans of a conversation: no task of them begins any more, and what runs of them is broken off.
        Returns the threads of the tasks that were under way: what they have asked of people is for the caller to end.

        Args:
            key: of the delivery that does it.
        """
        under_way = []
        for plan in await plans.open_in(tx, thread_id):
            await plans.end(tx, plan.plan_id, "superseded", key, self._clock())
            for task in await plans.tasks_of(tx, plan.plan_id):
                if task.has_ended:
                    continue
                if task.status != "blocked":
                    under_way.append(task.thread_id)
                    await self._break_off(tx, task.thread_id, key, plan.asked.turn)
                ending = await self._unfinished(tx, task, "stopped", _stopped())
                await plans.end_task(tx, task.thread_id, ending, self._clock())
            await self._outbox.show_again(tx, [plan.plan_id])
        return under_way

    async def _unfinished(
        self, tx: Transaction, task: TaskRow, state: Literal["failed", "stopped"], why: str
    ) -> TaskEnding:
        """What came of a task that was broken off. What it had called by then is told: the model that made the plan
        would have it done again."""
        made = [
            each
            for each in await attempts.in_turn(tx, task_key(task.plan_id, task.task_id))
            if each.status in ("started", "done", "unknown")
        ]
        return TaskEnding(id=task.task_id, agent=task.agent, state=state, text=why, sources=_named(made))

    async def _break_off(self, tx: Transaction, thread_id: str, key: str, turn: Mapping[str, Any]) -> None:
        """What runs in the thread of a task ends, and what waits there is dropped."""
        now = self._clock()
        await deliveries.drop(tx, [each for each, _author in await deliveries.waiting_messages(tx, thread_id)])
        await deliveries.drop_resumes(tx, thread_id)
        body = {"person": turn["requester"], "name": turn["requester_name"], "text": ""}
        await deliveries.add(tx, Delivery(f"{key}@{thread_id}", thread_id, "stop", body, True, now, now))
        tx.afterwards(lambda: self._engine.interrupt(thread_id))
        tx.afterwards(lambda: self._engine.wake(thread_id))

    # ------------------------------------------------------------------------------------------- tasks

    async def _end(self, tx: Transaction, task: TaskRow, ending: TaskEnding) -> None:
        """Keeps what came of a task, and does what follows: others begin, or never will, or all have ended."""
        if not await plans.end_task(tx, task.thread_id, ending, self._clock()):
            return
        plan = await plans.get(tx, task.plan_id)
        if plan is None or plan.status != "open":
            return
        await self._begin_what_can(tx, plan.thread_id, plan.asked)
        if all(each.has_ended for each in await plans.tasks_of(tx, plan.plan_id)):
            await plans.end(tx, plan.plan_id, "ended", f"resume:{plan.plan_id}", self._clock())
            await resume_thread(tx, self._engine, plan.thread_id, plan.plan_id, now=self._clock())
        await self._show_again(tx, task)

    async def _begin_what_can(self, tx: Transaction, thread_id: str, asked: PlanAsked) -> None:
        """Begins the tasks whose results are all there, and gives up those for which one never will be."""
        endings = {task.task_id: _ending(task) for task in await plans.tasks_of(tx, asked.call_id) if task.has_ended}
        for task in asked.tasks:  # in order, so that what depends on what is given up is given up, too
            if task.id in endings:
                continue
            undone = [each for each in task.depends_on if each in endings and endings[each].state != "done"]
            if undone:
                endings[task.id] = TaskEnding(id=task.id, agent=task.agent, state="not_run", text=_not_run(undone))
                own = task_thread_id(thread_id, asked.call_id, task.id)
                await plans.end_task(tx, own, endings[task.id], self._clock())
            elif all(each in endings for each in task.depends_on):
                await self._begin(tx, thread_id, asked, task, [endings[each] for each in task.depends_on])

    async def _begin(
        self,
        tx: Transaction,
        thread_id: str,
        asked: PlanAsked,
        task: PlannedTask,
        before: Sequence[TaskEnding],
    ) -> None:
        own, now = task_thread_id(thread_id, asked.call_id, task.id), self._clock()
        if not await plans.begin_task(tx, own, now):
            return
        conversation = await threads.get(tx, thread_id)
        if conversation is None:
            raise ValueError(f"the plan's conversation {thread_id} is not known")
        await threads.ensure(tx, own, _place_of_task(conversation.place, own), task.id, now, requester=asked.requester)
        turn: dict[str, Any] = {**asked.turn, "agent": task.agent, "said": list(asked.said), "tasks": len(asked.tasks)}
        body = {
            "person": asked.requester,
            "name": turn["requester_name"],
            "time_zone": turn["time_zone"],
            "text": instruction_of(task, before),
            "addressed": True,
            TASK: turn,
        }
        message = Delivery(task_key(asked.call_id, task.id), own, "message", body, False, now, now)
        await deliveries.add(tx, message)
        tx.afterwards(lambda: self._engine.wake(own))

    async def _ended(self, tx: Transaction, plan: PlanRow) -> PlanEnded:
        return PlanEnded(tasks=tuple(_ending(task) for task in await plans.tasks_of(tx, plan.plan_id)))

    async def _show_again(self, tx: Transaction, task: TaskRow) -> None:
        await self._outbox.show_again(tx, [task.plan_id])


def _named(made: Sequence[AttemptRow]) -> tuple[str, ...]:
    """The tools that were called, for models: each once, and again where nobody knows what came of a call."""
    named = (f"{each.server} › {each.tool}{'' if each.status == 'done' else ' (outcome unknown)'}" for each in made)
    return tuple(dict.fromkeys(named))


def _not_run(undone: Sequence[str]) -> str:
    with in_shared_language():
        told = ngettext("Not begun: {tasks} was not done.", "Not begun: {tasks} were not done.", len(undone))
        return told.format(tasks=", ".join(undone))


def _stopped() -> str:
    with in_shared_language():
        return _("Stopped before its end. What it had done by then stays done.")


def _nothing_said() -> str:
    with in_shared_language():
        return _("It ended without a word.")


def _place_of_task(conversation: ConversationReference, thread_id: str) -> ConversationReference:
    """The place of a task: reached as its conversation is, and no session of it."""
    return replace(conversation, key=thread_id, has_threads=True)


def _ending(task: TaskRow) -> TaskEnding:
    return TaskEnding.model_validate(
        {
            "id": task.task_id,
            "agent": task.agent,
            "state": task.status,
            "text": task.text,
            "sources": task.sources,
            "owner": task.owner,
        }
    )
