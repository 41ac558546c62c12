"""Stops until the person has signed in; the same call then goes on by itself."""

from __future__ import annotations

from langgraph.graph import END
from langgraph.types import Command, interrupt

from graph.calls import superseded, tool_message
from graph.interrupts import Declined, Expired, SignedIn, SignInAsked, Superseded, sign_in_answer
from graph.state import ToolCallState


async def oauth_needed(state: ToolCallState) -> Command[str]:
    """Wait for the sign-in. Only the id of the link is in the graph's state, never the link."""
    asked = SignInAsked(
        call_id=state["call"]["id"],
        sign_in_id=state["sign_in_id"],
        server=server_of(state["call"]["name"]),
        requester=state["turn"]["requester"],
    )
    match sign_in_answer.validate_python(interrupt(asked.model_dump(mode="json"))):
        case SignedIn():
            return Command(goto="use_tools")
        case Declined():
            text = f"Failed: {state['turn']['requester_name']} did not want to sign in, so the call was not made."
        case Expired():
            text = "Expired: nobody signed in in time, so the call was not made."
        case Superseded(reason=reason):
            text = superseded(reason)
    return Command(goto=END, update={"messages": [tool_message(state["call"], text, failed=True)]})


def server_of(full_name: str) -> str:
    """The server's part of `{server}__{tool}`."""
    return full_name.split("__", 1)[0]
