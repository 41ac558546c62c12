"""Running and settling: the few verbs by which everything else drives the graph.

A thread is *at rest* when every open task waits on an interrupt, or none is open and the newest root checkpoint has
no pending writes. `aget_state().next` alone lies here: it is empty when the last task's writes are saved but its
step is not applied yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from graph.calls import current_turn, open_calls, spoken_in
from graph.interrupts import Asked, InterruptAnswer, Superseded, asked_adapter
from graph.ports import Live, Spoken, Unfinished
from graph.state import RunContext, Turn, turn_of
from graph.workflow import Workflow

RunVerb = Literal["run", "resume", "settle"]

RECURSION_LIMIT = 500
"""Steps of one run. The model's own limit (`MOST_STEPS`) ends a turn long before this does."""
_MOST_SETTLING_RUNS = 20
_INTERRUPTED = "__interrupt__"
"""Where LangGraph puts the interrupts in what a run returns."""


@dataclass(frozen=True, slots=True)
class PendingInterrupt:
    """An interrupt of the graph that waits for an answer."""

    interrupt_id: str
    asked: Asked


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """Where the graph of a thread stands."""

    delivery: str | None
    """The delivery that the newest root checkpoint was made for; None when there is no checkpoint."""
    verb: RunVerb | None
    """What that delivery did there."""
    at_rest: bool
    """False: a run was broken off in the middle."""
    interrupts: tuple[PendingInterrupt, ...]
    turn: Turn | None
    """The turn of the newest message; None when no message has begun, or the checkpoints are lost."""
    spoken: tuple[Spoken, ...]
    """What the model said in that turn."""
    branches: tuple[str, ...] = ()
    """The namespaces of the checkpoints of open tool calls."""

    def has_begun(self, delivery: str) -> bool:
        """Whether this message is in the conversation already: the newest root checkpoint is of its run (which may not
        have come to set the turn), or the turn is its own."""
        own_turn = self.turn is not None and self.turn["delivery"] == delivery
        return own_turn or (self.delivery, self.verb) == (delivery, "run")


class Checkpointer(Protocol):
    """What running needs of a saver besides being one."""

    async def has_pending_writes(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether something was written after this root checkpoint that no later checkpoint holds."""
        ...

    async def prune_thread(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        """Keep the newest checkpoint of the root and of each live namespace, from when the thread's checkpoints are put
        to disk next."""
        ...


class Agent:
    """The workflow with its checkpoints. One run at a time per thread: the caller sees to that."""

    def __init__(self, workflow: Workflow, checkpointer: Checkpointer, clock: Callable[[], float]) -> None:
        self._workflow = workflow
        self._checkpointer = checkpointer
        self._clock = clock

    async def status(self, thread_id: str) -> ThreadStatus:
        """Where the graph of the thread stands now; changes nothing."""
        snapshot = await self._workflow.aget_state(_config(thread_id))
        open_tasks = [t for t in snapshot.tasks if t.result is None]
        if open_tasks:
            at_rest = all(t.interrupts for t in open_tasks)
        else:
            at_rest = not snapshot.next and not await self._has_pending_writes(thread_id, snapshot)
        return _status_of(snapshot, at_rest=at_rest)

    async def begin(self, turn: Turn, text: str, live: Live, *, background: str = "") -> ThreadStatus:
        """A person's message as an ordinary new run. The thread must be at rest with nothing pending.

        `background`: what people said before it in the same thread, not to the bot.
        """
        said = {"name": turn["requester_name"]} | ({"background": background} if background else {})
        message = HumanMessage(text, id=turn["delivery"], additional_kwargs=said)
        given = {"messages": [message], "turn": turn, "categories": []}
        ended = await self._run(turn["thread_id"], given, turn["delivery"], "run", RunContext(live=live))
        if ended.get(_INTERRUPTED):
            return await self.status(turn["thread_id"])
        # Nothing was pending before and nothing stopped it: it ran to its end, and what it returned is the newest
        # checkpoint: reading it back would cost as much as the rest of our part of a short turn.
        return _ended(turn, turn["delivery"], "run", ended)

    async def go_on(self, thread_id: str, delivery: str, verb: RunVerb, live: Live) -> ThreadStatus:
        """Continue a run that was broken off, until it is at rest."""
        await self._run(thread_id, None, delivery, verb, RunContext(live=live))
        return await self.status(thread_id)

    async def resume(
        self, thread_id: str, delivery: str, answers: Mapping[str, InterruptAnswer], live: Live
    ) -> ThreadStatus:
        """Answer interrupts, by their ids. The model is asked only when every branch has finished."""
        resume = {interrupt_id: answer.model_dump(mode="json") for interrupt_id, answer in answers.items()}
        ended = await self._run(thread_id, Command(resume=resume), delivery, "resume", RunContext(live=live))
        if ended.get(_INTERRUPTED) or open_calls(ended["messages"]):
            return await self.status(thread_id)
        # No call is open any more and nothing stopped it: it ran to its end, as `begin` says.
        return _ended(turn_of(ended), delivery, "resume", ended)

    async def settle(
        self, thread_id: str, delivery: str, why: str, *, unfinished: Unfinished | None = None
    ) -> ThreadStatus:
        """End whatever is unfinished without asking the model: every call gets its answer, in valid order.

        `unfinished`: what the model was saying when the run was broken off; it becomes the message that it would have
        become, marked as not finished.
        """
        status = await self.status(thread_id)
        superseded = Superseded(reason=why).model_dump(mode="json")
        for _ in range(_MOST_SETTLING_RUNS):
            if status.at_rest and not status.interrupts:
                return status
            answers = {interrupt.interrupt_id: superseded for interrupt in status.interrupts}
            given: Command[Any] | None = Command(resume=answers) if answers and status.at_rest else None
            await self._run(thread_id, given, delivery, "settle", RunContext(settling=why, unfinished=unfinished))
            status = await self.status(thread_id)
        raise RuntimeError(f"thread {thread_id} does not settle")

    async def prune(self, thread_id: str, status: ThreadStatus) -> None:
        """Drop the checkpoints that nobody will read again. `status`: where the thread stands now."""
        await self._checkpointer.prune_thread(thread_id, status.branches if status.interrupts else ())

    async def _run(
        self,
        thread_id: str,
        given: Command[Any] | dict[str, Any] | None,
        delivery: str,
        verb: RunVerb,
        context: RunContext,
    ) -> dict[str, Any]:
        config = _config(thread_id, delivery=delivery, verb=verb)
        context = replace(context, now=self._clock(), clock=self._clock)
        ended: dict[str, Any] = await self._workflow.ainvoke(given, config, context=context, durability="sync")
        return ended

    async def _has_pending_writes(self, thread_id: str, snapshot: StateSnapshot) -> bool:
        checkpoint_id = snapshot.config["configurable"].get("checkpoint_id")
        return checkpoint_id is not None and await self._checkpointer.has_pending_writes(thread_id, checkpoint_id)


def _config(thread_id: str, *, delivery: str | None = None, verb: RunVerb | None = None) -> RunnableConfig:
    config = RunnableConfig(configurable={"thread_id": thread_id}, recursion_limit=RECURSION_LIMIT)
    if delivery is not None:
        config["metadata"] = {"delivery": delivery, "verb": verb}
    return config


def _ended(turn: Turn, delivery: str, verb: RunVerb, ended: Mapping[str, Any]) -> ThreadStatus:
    """The status after a run that came to its end, from what it returned."""
    spoken = spoken_in(current_turn(ended["messages"]))
    return ThreadStatus(delivery, verb, at_rest=True, interrupts=(), turn=turn, spoken=spoken)


def _status_of(snapshot: StateSnapshot, *, at_rest: bool) -> ThreadStatus:
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    return ThreadStatus(
        delivery=metadata.get("delivery"),
        verb=metadata.get("verb"),
        at_rest=at_rest,
        interrupts=tuple(PendingInterrupt(i.id, asked_adapter.validate_python(i.value)) for i in snapshot.interrupts),
        turn=snapshot.values.get("turn"),
        spoken=spoken_in(current_turn(snapshot.values.get("messages", []))),
        branches=tuple(t.state["configurable"]["checkpoint_ns"] for t in snapshot.tasks if isinstance(t.state, dict)),
    )
