"""One tool call outside of a conversation: the same steps as a branch of the graph, without a model and checkpoints.

Whoever drives a call keeps its `CallProgress` wherever it stops. After a crash it is driven on from what was kept last,
with the same answer: the steps since then are taken again, and what they had begun is found in the records of
approvals and in the ledger, as in the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphInterrupt
from langgraph.graph import END
from langgraph.types import Interrupt
from pydantic import TypeAdapter

from graph.branch import FIRST_STEP, branch_nodes
from graph.call_endings import changes_in_words, notes_in_words
from graph.interrupts import (
    Asked,
    InterruptAnswer,
    Superseded,
    approval_answer,
    asked_adapter,
    clarification_answer,
    elicitation_answer,
    outcome_answer,
    sign_in_answer,
)
from graph.ports import TRIED_BEFORE, Ports
from graph.state import RunContext, ToolCallState, Turn

MOST_STEPS_AT_ONCE = 100
"""Steps of a call between two stops; it takes three, and a few more each time that its policy or its tool changes."""
_ANSWERS: Mapping[str, TypeAdapter[Any]] = {
    "approval": approval_answer,
    "clarification": clarification_answer,
    "elicitation": elicitation_answer,
    "sign_in": sign_in_answer,
    "outcome": outcome_answer,
}
_APPENDED = frozenset(
    name
    for name, hint in get_type_hints(ToolCallState, include_extras=True).items()
    if getattr(hint, "__metadata__", ())
)
"""The keys of a state to whose lists a step adds; the others it replaces."""


@dataclass(frozen=True, slots=True)
class CallEnding:
    """What came of a call."""

    text: str
    """What a model is told of it."""
    failed: bool
    """Whether it was not made, failed, or has an outcome that nobody knows."""
    owner: str | None = None
    """Person id, when `text` and `returned` are for that person alone."""
    returned: Mapping[str, Any] | None = None
    """`content` and `structuredContent` as the server returned them; `None`: it returned nothing that was kept."""
    note: str = ""
    """What of `text` is ours beside `returned`: what approvers added, that it was made with other arguments, or that an
    earlier try of it may have taken effect. Empty without `returned`."""
    changed: bool = False
    """Whether it was to be made with other arguments than were asked for, as an approver wrote them."""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call is. Plain JSON once it is written (`to_json`)."""

    step: str
    """The step of the branch that is taken next; where it stops or has ended, the one at which it did."""
    state: ToolCallState
    stop: Asked | None = None
    """What it waits for."""
    ended: CallEnding | None = None
    """What came of it; `None`: it goes on, or waits."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON for `from_json`."""
        return {
            "step": self.step,
            "state": dict(self.state),
            "stop": self.stop.model_dump(mode="json") if self.stop else None,
            # Not `asdict`: it copies all that was returned.
            "ended": {each.name: getattr(self.ended, each.name) for each in fields(self.ended)} if self.ended else None,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> CallProgress:
        """Returns what was written. Raises `KeyError`, `TypeError` or `ValidationError` when it is none."""
        return cls(
            step=kept["step"],
            state=kept["state"],
            stop=asked_adapter.validate_python(kept["stop"]) if kept["stop"] else None,
            ended=CallEnding(**kept["ended"]) if kept["ended"] else None,
        )


def first_progress(turn: Turn, call_id: str, full_name: str, arguments: dict[str, Any]) -> CallProgress:
    """Returns a call that is to be judged first.

    Args:
        turn: whose call it is.
        call_id: ours, `{delivery}.0.0`: the ledger and the approvals know the call by it.
        full_name: the tool's, `{server}__{tool}`.
        arguments: as they were asked for.
    """
    call = {"id": call_id, "name": full_name, "args": arguments, "error": "", "quote": ""}
    state = ToolCallState(call=call, turn=turn, requesters=[turn["requester"]], spoken=[], said=[], before=0)
    return CallProgress(FIRST_STEP, state)


class SingleCalls:
    """Drives single calls. Of each call one at a time: the caller sees to that."""

    def __init__(self, ports: Ports) -> None:
        """`ports`: the model and the router of them are not used."""
        self._ports = ports

    async def advance(
        self, progress: CallProgress, context: RunContext, answer: InterruptAnswer | None = None
    ) -> CallProgress:
        """Drives a call until it stops or has ended, and returns how far it is then: to be kept before anything that
        brought about this drive counts as handled.

        A call that waits is returned as it is when there is no answer, and so is one that has ended. When its turn is
        being ended (`context.settling`) it ends, from wherever it is.

        Args:
            progress: as it was kept last.
            answer: what was decided about exactly what `progress.stop` asks (the round of the approval, the attempt,
                the number of the question, the link), from the records.

        Raises:
            ValueError: nothing waits for such an answer. Nothing was done.
            Exception: what `Ports.is_outage` knows as a failure of the records: to be tried again.
        """
        if progress.ended:
            return progress
        if answer is None and context.settling and progress.stop:
            answer = Superseded(reason=context.settling)
        if answer is not None:
            _check(progress, answer)
        elif progress.stop:
            return progress
        return await self._driven(progress, context, answer)

    async def _driven(
        self, progress: CallProgress, context: RunContext, answer: InterruptAnswer | None
    ) -> CallProgress:
        answers = [] if answer is None else [answer.model_dump(mode="json")]

        def put(asked: dict[str, Any]) -> Any:
            if not answers:  # it is of the stop that was left, alone
                raise GraphInterrupt([Interrupt(asked)])
            return answers.pop()

        nodes = branch_nodes(self._ports, put)
        step, state = progress.step, progress.state
        for _ in range(MOST_STEPS_AT_ONCE):
            try:
                then = await nodes[step].step(state, context)
            except GraphInterrupt as stop:
                return CallProgress(step, state, asked_adapter.validate_python(stop.args[0][0].value))
            update: Mapping[str, Any] = then.update or {}
            if then.goto == END:
                return CallProgress(step, state, ended=_ending(state, update["messages"][-1]))
            step, state = str(then.goto), _updated(state, update)
        raise RuntimeError(f"call {state['call']['id']} neither stops nor ends")


def _check(progress: CallProgress, answer: InterruptAnswer) -> None:
    if progress.stop is None:
        raise ValueError(f"the call is at {progress.step} and waits for no answer")
    _ANSWERS[progress.stop.kind].validate_python(answer.model_dump(mode="json"))


def _updated(state: ToolCallState, update: Mapping[str, Any]) -> ToolCallState:
    values: Any = {**state}
    for key, value in update.items():
        values[key] = [*values.get(key, ()), *value] if key in _APPENDED else value
    updated: ToolCallState = values
    return updated


def _ending(state: ToolCallState, message: ToolMessage) -> CallEnding:
    changes, returned = changes_in_words(state), message.artifact
    ours = [notes_in_words(state), changes, TRIED_BEFORE if message.text.endswith(TRIED_BEFORE) else ""]
    return CallEnding(
        text=message.text,
        failed=message.status == "error",
        owner=message.additional_kwargs.get("owner"),
        returned=returned,
        note=" ".join(filter(None, ours)) if returned is not None else "",
        changed=bool(changes),
    )
