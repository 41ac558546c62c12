"""Stops until a person has said what came of a call that broke off."""

from __future__ import annotations

from langgraph.graph import END
from langgraph.types import Command, interrupt

from graph.calls import tool_message
from graph.interrupts import OutcomeAsked, Superseded, outcome_answer
from graph.nodes import Step
from graph.nodes.oauth_needed import server_of
from graph.nodes.use_tools import UNKNOWN
from graph.ports import Ports
from graph.state import ToolCallState


def outcome_unknown(ports: Ports) -> Step:
    """The node. Whatever the person says is in the ledger: `use_tools` reads it there and acts on it."""

    async def outcome_unknown(state: ToolCallState) -> Command[str]:
        call = state["call"]
        tool = ports.tools.find(call["name"])
        asked = OutcomeAsked(
            call_id=call["id"],
            attempt=state["attempt"],
            server=tool.server if tool else server_of(call["name"]),
            tool=tool.name if tool else call["name"],
            title=tool.title if tool else "",
            arguments=call["args"],
            requester=state["turn"]["requester"],
        )
        answer = outcome_answer.validate_python(interrupt(asked.model_dump(mode="json")))
        if isinstance(answer, Superseded):
            return Command(goto=END, update={"messages": [tool_message(call, UNKNOWN, failed=True)]})
        # Where it is tried again, nothing is left to find out about what was answered before.
        return Command(goto="use_tools", update={"over": len(state.get("answers", []))})

    return outcome_unknown
