"""Stops until the people who may decide have decided."""

from __future__ import annotations

from langgraph.graph import END
from langgraph.types import Command, interrupt

from graph.calls import refusal, tool_message
from graph.interrupts import Approved, approval_answer
from graph.state import ToolCallState


async def human_confirmation(state: ToolCallState) -> Command[str]:
    """Wait for the decision. What was approved is what runs; edited arguments are judged anew first."""
    answer = approval_answer.validate_python(interrupt(state["asked"]))
    if not isinstance(answer, Approved):
        message = tool_message(state["call"], refusal(answer), failed=True)
        return Command(goto=END, update={"messages": [message]})
    approved = answer.model_dump(mode="json")
    if answer.arguments is None:
        return Command(goto="use_tools", update={"approved": approved})
    requesters = list(dict.fromkeys([*state["asked"]["requesters"], answer.edited_by]))  # type: ignore[index]  # set before this node
    edited = {**state["call"], "args": answer.arguments}
    return Command(goto="policy_gate", update={"call": edited, "approved": approved, "requesters": requesters})
