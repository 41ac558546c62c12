"""Judges one tool call: it runs, it waits for people, or it is blocked."""

from __future__ import annotations

from datetime import UTC, datetime

from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command

from graph.calls import digest_of, superseded, tool_message
from graph.interrupts import ApprovalAsked
from graph.nodes import Step
from graph.ports import Ports, Spoken
from graph.state import RunContext, ToolCallState, Turn
from policies.deciding import edit_needs_no_new_asking
from policies.model import Allow, Ask, Call, Deny, Facts, Mode, Tool
from policies.trust import risks


def policy_gate(ports: Ports) -> Step:
    """The node. What must be asked is recorded and shown here, at once, before the next node stops for it."""

    async def policy_gate(state: ToolCallState, runtime: Runtime[RunContext]) -> Command[str]:
        call, turn = state["call"], state["turn"]
        if runtime.context.settling:
            return _end(state, superseded(runtime.context.settling))
        if call.get("error"):
            return _end(state, f"Failed: {call['error']}")
        tool = ports.tools.find(call["name"])
        if tool is None:
            return _end(state, f"Failed: there is no tool called {call['name']} (any more).")
        match ports.judge(Call(tool, call["args"]), facts_of(turn, ports.mode, runtime.context.now)):
            case Deny(reason=reason):
                return _end(state, f"Blocked by policy: {reason}")
            case Allow():
                return Command(goto="use_tools", update={"asked": None, "approved": None})
            case Ask() as ask:
                if _still_covered(state, ask):
                    return Command(goto="use_tools")
                asked = _asked(state, tool, ask)
                spoken = tuple(Spoken(**said) for said in state.get("spoken", []))
                await ports.approvals.ask(turn["thread_id"], asked, spoken)
                update = {"asked": asked.model_dump(mode="json"), "approved": None}
                return Command(goto="human_confirmation", update=update)

    return policy_gate


def facts_of(turn: Turn, mode: Mode, now: float) -> Facts:
    """What is known when a call of this turn is judged. `now`: seconds since the epoch."""
    return Facts(
        mode=mode,
        requester=turn["requester"],
        platform=turn["platform"],
        place=turn["channel"],
        at=datetime.fromtimestamp(now, UTC),
    )


def _end(state: ToolCallState, text: str) -> Command[str]:
    return Command(goto=END, update={"messages": [tool_message(state["call"], text, failed=True)]})


def _still_covered(state: ToolCallState, ask: Ask) -> bool:
    """Whether the approval that is given suffices for the call as it was edited."""
    if not state.get("approved") or not state.get("asked"):
        return False
    given = ApprovalAsked.model_validate(state["asked"])
    return edit_needs_no_new_asking(given.ask, ask)


def _asked(state: ToolCallState, tool: Tool, ask: Ask) -> ApprovalAsked:
    call, before = state["call"], state.get("asked")
    return ApprovalAsked(
        call_id=call["id"],
        round=before["round"] + 1 if before else 1,
        server=tool.server,
        tool=tool.name,
        title=tool.title,
        arguments=call["args"],
        digest=digest_of(tool, call["args"]),
        risk=risks(tool),
        ask=ask,
        requesters=tuple(state.get("requesters") or [state["turn"]["requester"]]),
    )
