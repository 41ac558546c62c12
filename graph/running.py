"""Running and settling: the few verbs by which everything else drives the graph.

A thread is *at rest* when every open task waits on an interrupt, or none is open and the newest root checkpoint has
no pending writes. `aget_state().next` alone lies here: it is empty when the last task's writes are saved but its
step is not applied yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from graph.call_endings import as_told
from graph.calls import GIVEN_CALL, GivenCall, current_turn, open_calls, spoken_in
from graph.files import FILES, CarriedFile
from graph.interrupts import ApprovalAsked, Approved, Asked, InterruptAnswer, PlanEnded, Superseded, asked_adapter
from graph.nodes.use_tools import MakeCall
from graph.ports import Live, Spoken, Unfinished
from graph.state import BegunCall, RunContext, Silent, ToolCallState, Turn, turn_of
from graph.usage import NO_USAGE, Usage
from graph.workflow import Workflow
from policies.masking import Masker

RunVerb = Literal["run", "resume", "settle"]

RECURSION_LIMIT = 500
"""Steps of one run. The model's own limit (`MOST_STEPS`) ends a turn long before this does."""
CALLS_FIRST = 0.05
"""Seconds that a run waits, at most, for the requests of calls that were begun before it: what it computes meanwhile
would hold up each of their steps."""
ROUNDS_OF_A_REQUEST = 3
"""Rounds of the event loop from when a call is given to its session until the pipe has it."""
_MOST_SETTLING_RUNS = 20
_NO_PLANS: Mapping[str, PlanEnded] = {}
_INTERRUPTED = "__interrupt__"
"""Where LangGraph puts the interrupts in what a run returns."""


@dataclass(frozen=True, slots=True)
class PendingInterrupt:
    """An interrupt of the graph that waits for an answer."""

    interrupt_id: str
    asked: Asked
    call: ToolCallState | None = field(default=None, compare=False, repr=False)
    """The call for which approval was asked, where this process saw it stop."""


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
    usage: Usage = field(default_factory=dict)
    """What that turn has used of language models so far."""

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

    def __init__(
        self,
        workflow: Workflow,
        checkpointer: Checkpointer,
        clock: Callable[[], float],
        make_call: MakeCall,
        masker: Masker,
    ) -> None:
        self._workflow = workflow
        self._checkpointer = checkpointer
        self._clock = clock
        self._make_call = make_call
        self._masker = masker

    async def status(self, thread_id: str) -> ThreadStatus:
        """Where the graph of the thread stands now; changes nothing."""
        snapshot = await self._workflow.aget_state(_config(thread_id))
        open_tasks = [t for t in snapshot.tasks if t.result is None]
        if open_tasks:
            at_rest = all(t.interrupts for t in open_tasks)
        else:
            at_rest = not snapshot.next and not await self._has_pending_writes(thread_id, snapshot)
        return _status_of(snapshot, at_rest=at_rest)

    async def begin(
        self,
        turn: Turn,
        text: str,
        live: Live,
        *,
        background: str = "",
        files: Sequence[CarriedFile] = (),
        call: GivenCall | None = None,
    ) -> ThreadStatus:
        """A person's message as an ordinary new run. The thread must be at rest with nothing pending.

        Args:
            background: what people said before it in the same thread, not to the bot.
            files: what the person handed over with it.
            call: what the turn begins with, where the person wants exactly that; `None`: the model is asked.
        """
        said: dict[str, Any] = {"name": turn["requester_name"]} | ({"background": background} if background else {})
        if files:
            said[FILES] = list(files)
        if call is not None:
            said[GIVEN_CALL] = call
        message = HumanMessage(text, id=turn["delivery"], additional_kwargs=said)
        given = {"messages": [message], "turn": turn, "categories": [], "usage": {}}
        context = self._context(live, turn["delivery"])
        ended = await self._run(turn["thread_id"], given, turn["delivery"], "run", context)
        if ended.get(_INTERRUPTED):
            return _with_calls(await self.status(turn["thread_id"]), context)
        # Nothing was pending before and nothing stopped it: it ran to its end, and what it returned is the newest
        # checkpoint: reading it back would cost as much as the rest of our part of a short turn.
        return _ended(turn, turn["delivery"], "run", ended)

    async def go_on(self, thread_id: str, delivery: str, verb: RunVerb, live: Live) -> ThreadStatus:
        """Continue a run that was broken off, until it is at rest."""
        context = self._context(live, delivery)
        await self._run(thread_id, None, delivery, verb, context)
        return _with_calls(await self.status(thread_id), context)

    async def resume(
        self,
        thread_id: str,
        delivery: str,
        answers: Mapping[str, InterruptAnswer],
        live: Live,
        *,
        interrupts: Sequence[PendingInterrupt] = (),
    ) -> ThreadStatus:
        """Answer interrupts, by their ids. The model is asked only when every branch has finished.

        `interrupts`: those that wait. Where it is known of them which calls they are about, calls that are approved as
        they were asked are begun before the run makes its way to them, which takes LangGraph 3 ms. Nothing that it does
        before can change them, and what they rest on is on disk since they were asked about. A run after a crash finds
        them in the ledger.
        """
        resume = {interrupt_id: answer.model_dump(mode="json") for interrupt_id, answer in answers.items()}
        context = self._context(live, delivery)
        for interrupt in interrupts:
            if (call := _approved_as_asked(interrupt, answers.get(interrupt.interrupt_id))) is not None:
                self._begin_call(call, answers[interrupt.interrupt_id], context)
        begun = list(context.begun.values())
        try:
            if begun:
                await asyncio.wait([each.has_left for each in begun], timeout=CALLS_FIRST)
                for _ in range(ROUNDS_OF_A_REQUEST):
                    await asyncio.sleep(0)
            ended = await self._run(thread_id, Command(resume=resume), delivery, "resume", context)
        finally:  # of a run that was broken off, or failed; else they have ended
            for each in begun:
                each.ends.cancel()
            await asyncio.gather(*(each.ends for each in begun), return_exceptions=True)
        if ended.get(_INTERRUPTED) or open_calls(ended["messages"]):
            return _with_calls(await self.status(thread_id), context)
        # No call is open any more and nothing stopped it: it ran to its end, as `begin` says.
        return _ended(turn_of(ended), delivery, "resume", ended)

    def _begin_call(self, call: ToolCallState, answer: InterruptAnswer, context: RunContext) -> None:
        call_id, approved = call["call"]["id"], as_told(answer, self._masker).model_dump(mode="json")
        ends = asyncio.create_task(self._make_call({**call, "approved": approved}, context), name=f"call {call_id}")
        context.begun[call_id] = BegunCall(ends)

    async def settle(
        self,
        thread_id: str,
        delivery: str,
        why: str,
        *,
        unfinished: Unfinished | None = None,
        plans: Mapping[str, PlanEnded] = _NO_PLANS,
    ) -> ThreadStatus:
        """End whatever is unfinished without asking the model: every call gets its answer, in valid order.

        Args:
            unfinished: what the model was saying when the run was broken off; it becomes the message that it would have
                become, marked as not finished.
            plans: what came of plans that have ended or were stopped, by the ids of their calls.
        """
        status = await self.status(thread_id)
        superseded = Superseded(reason=why).model_dump(mode="json")
        for _ in range(_MOST_SETTLING_RUNS):
            if status.at_rest and not status.interrupts:
                return status
            answers = {interrupt.interrupt_id: superseded for interrupt in status.interrupts}
            given: Command[Any] | None = Command(resume=answers) if answers and status.at_rest else None
            context = replace(self._context(Silent(), delivery), settling=why, unfinished=unfinished, ended_plans=plans)
            await self._run(thread_id, given, delivery, "settle", context)
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
        ended: dict[str, Any] = await self._workflow.ainvoke(given, config, context=context, durability="sync")
        return ended

    def _context(self, live: Live, delivery: str) -> RunContext:
        return RunContext(live=live, now=self._clock(), clock=self._clock, delivery=delivery)

    async def _has_pending_writes(self, thread_id: str, snapshot: StateSnapshot) -> bool:
        checkpoint_id = snapshot.config["configurable"].get("checkpoint_id")
        return checkpoint_id is not None and await self._checkpointer.has_pending_writes(thread_id, checkpoint_id)


def _config(thread_id: str, *, delivery: str | None = None, verb: RunVerb | None = None) -> RunnableConfig:
    config = RunnableConfig(configurable={"thread_id": thread_id}, recursion_limit=RECURSION_LIMIT)
    if delivery is not None:
        config["metadata"] = {"delivery": delivery, "verb": verb}
    return config


def _with_calls(status: ThreadStatus, context: RunContext) -> ThreadStatus:
    """The status after a run that was stopped, with the calls that it stopped for."""
    interrupts = (
        replace(each, call=context.stopped.get(each.asked.call_id)) if isinstance(each.asked, ApprovalAsked) else each
        for each in status.interrupts
    )
    return replace(status, interrupts=tuple(interrupts))


def _approved_as_asked(interrupt: PendingInterrupt, answer: InterruptAnswer | None) -> ToolCallState | None:
    """The call that may be begun now, if one may. What was edited is judged anew first, by the run."""
    return interrupt.call if isinstance(answer, Approved) and answer.arguments is None else None


def _ended(turn: Turn, delivery: str, verb: RunVerb, ended: Mapping[str, Any]) -> ThreadStatus:
    """The status after a run that came to its end, from what it returned."""
    spoken = spoken_in(current_turn(ended["messages"]), turn)
    return ThreadStatus(delivery, verb, at_rest=True, interrupts=(), turn=turn, spoken=spoken, usage=_usage_in(ended))


def _status_of(snapshot: StateSnapshot, *, at_rest: bool) -> ThreadStatus:
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    turn: Turn | None = snapshot.values.get("turn")
    return ThreadStatus(
        delivery=metadata.get("delivery"),
        verb=metadata.get("verb"),
        at_rest=at_rest,
        interrupts=tuple(PendingInterrupt(i.id, asked_adapter.validate_python(i.value)) for i in snapshot.interrupts),
        turn=turn,
        spoken=spoken_in(current_turn(snapshot.values.get("messages", [])), turn),
        branches=tuple(t.state["configurable"]["checkpoint_ns"] for t in snapshot.tasks if isinstance(t.state, dict)),
        usage=_usage_in(snapshot.values),
    )


def _usage_in(values: Mapping[str, Any]) -> Usage:
    """None in checkpoints of versions that did not count it."""
    usage: Usage = values.get("usage") or NO_USAGE
    return usage
