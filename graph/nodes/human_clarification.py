"""Stops for a question to the requester."""

from __future__ import annotations

from itertools import islice
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import ValidationError

from graph.calls import CLARIFICATION, WITHOUT_TOOLS, answered, open_calls, superseded, tool_message
from graph.interrupts import Answered, ClarificationAsked, FormField, as_far_as_offered, clarification_answer
from graph.options import has_tools, may_ask
from graph.state import RunContext, State, turn_of

MOST_FIELDS = 20
"""Inputs of one form; what goes beyond is dropped (a Slack modal holds 100 blocks, a person's patience less)."""

_NOBODY_ANSWERS = (
    "Failed: nobody can answer now, since nobody is asked anything in this turn. Go on with what you know, and say "
    "what you would need to know."
)


async def human_clarification(state: State, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask the first open clarification of the model's message. One interrupt at a time: two could answer each other."""
    call = next(c for c in open_calls(state["messages"]) if c["name"] == CLARIFICATION)
    if runtime.context.settling:
        return {"messages": [tool_message(call, superseded(runtime.context.settling), failed=True)]}
    if not has_tools(turn_of(state)):
        return {"messages": [tool_message(call, WITHOUT_TOOLS, failed=True)]}
    if not may_ask(turn_of(state)):
        return {"messages": [tool_message(call, _NOBODY_ANSWERS, failed=True)]}
    if call.get("error"):
        return {"messages": [tool_message(call, f"Failed: {call['error']}", failed=True)]}
    asked = asked_of(call, turn_of(state)["requester"])
    if asked is None:
        return {"messages": [tool_message(call, "Failed: a clarification needs a question.", failed=True)]}
    answer = clarification_answer.validate_python(interrupt(asked.model_dump(mode="json")))
    if not isinstance(answer, Answered):
        return {"messages": [tool_message(call, superseded(answer.reason), failed=True)]}
    return {"messages": [answered(call, answer, asked.fields)]}


def asked_of(call: dict[str, Any], requester: str) -> ClarificationAsked | None:
    """The question in the model's arguments, forgiving about its form; `None` when there is none."""
    args = call["args"]
    question = args.get("question")
    if not isinstance(question, str) or not question.strip():
        return None
    context = args.get("context")
    return ClarificationAsked(
        call_id=call["id"],
        question=question.strip(),
        context=context.strip() if isinstance(context, str) else "",
        fields=_fields(args.get("fields")),
        requester=requester,
    )


def _fields(raw: Any) -> tuple[FormField, ...]:
    fields: dict[str, FormField] = {}
    for item in raw if isinstance(raw, list) else []:
        try:
            field = FormField.model_validate(item)
        except ValidationError:
            continue
        fields.setdefault(field.name, field)
    return as_far_as_offered(islice(fields.values(), MOST_FIELDS))
