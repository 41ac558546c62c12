"""Stops until the requester has answered what a tool asked in the middle of its call; the same call then goes on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from langgraph.types import Command, interrupt

from graph.calls import superseded
from graph.fields import FormField
from graph.interrupts import Answered, Dismissed, ElicitationAsked, Superseded, elicitation_answer
from graph.nodes import Step
from graph.nodes.oauth_needed import server_of
from graph.not_made import not_made
from graph.ports import Given, Ports, QuestionPut
from graph.state import ToolCallState


def elicitation_needed(ports: Ports) -> Step:
    """The node. A no is told to the tool too: what it does without an answer is its own affair."""

    async def elicitation_needed(state: ToolCallState) -> Command[str]:
        question = state["question"]
        asked = ElicitationAsked(
            call_id=state["call"]["id"],
            number=question["number"],
            server=server_of(state["call"]["name"]),
            message=question["message"],
            fields=tuple(FormField.model_validate(field) for field in question["fields"]),
            schema_=question["schema"],
            requester=state["turn"]["requester"],
        )
        match elicitation_answer.validate_python(interrupt(asked.model_dump(mode="json"))):
            case Answered(values=values):
                given = Given(asked.number, "accept", values, question["digest"])
            case Dismissed(action=action):
                given = Given(asked.number, action, digest=question["digest"])
            case Superseded(reason=reason):
                return await not_made(ports, state, "superseded", superseded(reason))
        return Command(goto="use_tools", update={"answers": [asdict(given)]})

    return elicitation_needed


def as_json(question: QuestionPut) -> dict[str, Any]:
    """What the state keeps of a question."""
    return {
        "number": question.number,
        "message": question.message,
        "fields": [field.model_dump(mode="json") for field in question.fields],
        "schema": dict(question.schema),
        "digest": question.digest,
    }
