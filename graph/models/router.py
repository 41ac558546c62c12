"""Asks a model which tool types a request needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from graph.models.streaming import Retry, stream_message, tokens_of
from graph.ports import Picked, Router

CHOOSE = "choose_tool_types"
_RECENT = 6
"""Messages of the conversation that the router sees: enough to understand "and the other one too"."""
_RULES = (
    "Choose the tool types that may be needed to handle the person's last message. "
    f"Call {CHOOSE} once. When in doubt, choose more rather than fewer; choose none for small talk."
)


def create_router(model: BaseChatModel, retry: Retry) -> Router:
    """A router over a model. It raises `ModelProblem`; an answer that makes no sense picks everything."""

    async def route(messages: Sequence[AnyMessage], categories: Sequence[str]) -> Picked:
        recent = [m for m in messages if isinstance(m, HumanMessage)][-_RECENT:]
        bound = model.bind_tools([_tool(categories)])
        answer = await stream_message(bound, [SystemMessage(_RULES), *recent], lambda _: None, retry=retry)
        picked = [c for call in answer.tool_calls if call["name"] == CHOOSE for c in _listed(call["args"])]
        known = [c for c in categories if c in picked]
        return Picked(known or list(categories), tokens_of(answer))

    return route


def _listed(arguments: dict[str, Any]) -> list[Any]:
    types = arguments.get("types")
    return types if isinstance(types, list) else []


def _tool(categories: Sequence[str]) -> dict[str, Any]:
    types = {"type": "array", "items": {"type": "string", "enum": list(categories)}}
    return {
        "type": "function",
        "function": {
            "name": CHOOSE,
            "description": "Say which types of tools the request may need.",
            "parameters": {"type": "object", "properties": {"types": types}, "required": ["types"]},
        },
    }
