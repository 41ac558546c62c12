"""A sign-in: the call stops until the person has signed in, and then goes on by itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from langgraph.types import Command

from graph.call_endings import not_made
from graph.calls import superseded
from graph.interrupts import Declined, Expired, SignedIn, SignInAsked, Superseded, sign_in_answer
from graph.nodes import AskingStep
from graph.ports import Given, NotMade, Ports
from graph.state import RunContext, ToolCallState


def oauth_needed(ports: Ports) -> AskingStep:
    """What is asked and what follows. Only the id of the link is in the graph's state, never the link."""

    async def asks(state: ToolCallState, _: RunContext) -> dict[str, Any]:
        asked = SignInAsked(
            call_id=state["call"]["id"],
            sign_in_id=state["sign_in_id"],
            server=server_of(state["call"]["name"]),
            requester=state["turn"]["requester"],
        )
        return asked.model_dump(mode="json")

    async def follows(state: ToolCallState, _: RunContext, answer: Any) -> Command[str]:
        status: NotMade
        match sign_in_answer.validate_python(answer):
            case SignedIn():
                # Only a call that waits in the middle has been answered by this; another one begins anew.
                if state.get("link"):
                    return Command(goto="use_tools", update={"answers": [asdict(Given(state["link"], "accept"))]})
                return Command(goto="use_tools", update={"signed_in": state.get("signed_in", 0) + 1})
            case Declined():
                name = state["turn"]["requester_name"]
                status, text = "failed", f"Failed: {name} did not want to sign in, so the call was not made."
            case Expired():
                status, text = "expired", "Expired: nobody signed in in time, so the call was not made."
            case Superseded(reason=reason):
                status, text = "superseded", superseded(reason)
        return await not_made(ports, state, status, text)

    return AskingStep(asks, follows)


def server_of(full_name: str) -> str:
    """The server's part of `{server}__{tool}`."""
    return full_name.split("__", 1)[0]
