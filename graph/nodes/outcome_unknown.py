"""Stops until a person has said what came of a call that broke off."""

from __future__ import annotations

from langgraph.types import Command, interrupt

from graph.interrupts import OutcomeAsked, Superseded, outcome_answer
from graph.nodes import Step
from graph.nodes.oauth_needed import server_of
from graph.not_made import answered
from graph.ports import Ports, Undecided
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
            return answered(state, Undecided(state["attempt"], state.get("known", ""), state.get("known_to")))
        # Where it is tried again, nothing is left to find out about what was answered before.
        return Command(goto="use_tools", update={"over": len(state.get("answers", [])), "signed_in": 0})

    return outcome_unknown
