"""The end of a call that was not made: the model is told why, and the audit log keeps it."""

from __future__ import annotations

from langgraph.graph import END
from langgraph.types import Command

from graph.calls import tool_message
from graph.interrupts import Expired, Rejected, Superseded, Withdrawn
from graph.judging import Judged
from graph.models.arguments import trouble_with
from graph.ports import NotMade, Ports, Unmade
from graph.state import ToolCallState


async def not_made(
    ports: Ports, state: ToolCallState, status: NotMade, text: str, judged: Judged | None = None
) -> Command[str]:
    """End the branch with `text`. `judged`: what the policy said of the call, where it was asked."""
    call, turn, asked = state["call"], state["turn"], state.get("asked")
    await ports.tools.give_up(call["id"])  # it may have been begun, and wait for somebody
    await ports.audit.not_made(
        Unmade(
            call_id=call["id"],
            thread_id=turn["thread_id"],
            requester=turn["requester"],
            name=call["name"],
            tool=judged.call.tool if judged else ports.tools.find(call["name"]),
            # What JSON cannot carry has no digest and no place in a record.
            arguments={} if trouble_with(call["args"]) else call["args"],
            status=status,
            text=text,
            mode=ports.mode,
            verdict=judged.verdict if judged else None,
            approval_round=asked["round"] if asked else None,
            facts=judged.facts if judged else None,
            quote=judged.quote if judged else "",
        )
    )
    return Command(goto=END, update={"messages": [tool_message(call, text, failed=True)]})


def status_of(answer: Rejected | Expired | Withdrawn | Superseded) -> NotMade:
    """Why a call that was asked about was not made, as the audit log calls it."""
    return answer.kind
