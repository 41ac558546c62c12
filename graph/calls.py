"""Tool calls under our own names: ids, digests, and the ToolMessages that answer them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.interrupts import Approved, Expired, Rejected, Superseded
from graph.ports import Spoken
from policies.model import Tool, canonical_json

CLARIFICATION = "request_clarification"
"""The one tool that is ours: it asks the requester."""

FOREIGN_RESULT = "[result for that person only]"
"""What the model sees, in another person's turn, of a result fetched through a personal connection."""


def digest_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """SHA-256 over what is approved: server and its configuration, tool, schema and canonical arguments."""
    parts = [tool.server, tool.fingerprint, tool.name, tool.schema_hash, dict(arguments)]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def own_ids(message: AIMessage, delivery: str, step: int) -> AIMessage:
    """The model's message under our ids: `{delivery}.{step}`, its calls `{delivery}.{step}.{index}`.

    Models reuse theirs (`call_0`), and the ledger is keyed by them. Calls whose arguments were not JSON are kept as
    calls that carry their `error`, so that each is answered rather than lost.
    """
    calls: list[dict[str, Any]] = [{"name": c["name"], "args": storable(c["args"])} for c in message.tool_calls]
    calls += [
        {"name": c["name"] or "unnamed", "args": {}, "error": c["error"] or "the arguments were not valid JSON"}
        for c in message.invalid_tool_calls
    ]
    named = [{**call, "id": f"{delivery}.{step}.{index}"} for index, call in enumerate(calls)]
    return AIMessage(
        content=storable(message.content),
        id=f"{delivery}.{step}",
        tool_calls=[{"name": c["name"], "args": c["args"], "id": c["id"], "type": "tool_call"} for c in named],
        additional_kwargs={"errors": {c["id"]: c["error"] for c in named if "error" in c}},
        usage_metadata=message.usage_metadata,
    )


def storable(value: Any) -> Any:
    """A JSON value without what no database keeps: NUL characters, and halves of surrogate pairs."""
    match value:
        case str():
            return value.replace("\0", "").encode("utf-8", "replace").decode()
        case list():
            return [storable(item) for item in value]
        case dict():
            return {storable(key): storable(item) for key, item in value.items()}
        case _:
            return value


def current_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """The messages since the last person spoke, that person's included."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage):
            return messages[index:]
    return messages


def next_step(messages: Sequence[AnyMessage]) -> int:
    """How many times the model has spoken in the current turn."""
    return sum(isinstance(m, AIMessage) for m in current_turn(messages))


def spoken_in(messages: Sequence[AnyMessage]) -> tuple[Spoken, ...]:
    """What the model said in these messages."""
    return tuple(
        Spoken(m.id or "", m.text, final=not m.tool_calls)
        for m in messages
        if isinstance(m, AIMessage) and m.text.strip()
    )


def open_calls(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The calls of the model's last message that have no ToolMessage yet, in order."""
    answered = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            errors = message.additional_kwargs.get("errors", {})
            return [
                {"id": c["id"], "name": c["name"], "args": c["args"], "error": errors.get(c["id"], "")}
                for c in message.tool_calls
                if c["id"] not in answered
            ]
        else:
            return []
    return []


def tool_message(call: Mapping[str, Any], text: str, *, owner: str | None = None, failed: bool = False) -> ToolMessage:
    """The one answer to a call. `owner`: the only person in whose turns the model may see it."""
    return ToolMessage(
        content=text,
        tool_call_id=call["id"],
        name=call["name"],
        status="error" if failed else "success",
        additional_kwargs={"owner": owner} if owner else {},
    )


def refusal(answer: Approved | Rejected | Expired | Superseded) -> str:
    """What the model is told when a call was not approved: the truth, so that it can pass it on."""
    match answer:
        case Rejected(by=by, reason=""):
            return f"Rejected by {by}. No reason was given."
        case Rejected(by=by, reason=reason):
            return f"Rejected by {by}. Reason: {reason}"
        case Expired():
            return "Expired: nobody decided in time."
        case Superseded(reason=reason):
            return superseded(reason)
        case Approved():
            raise ValueError("an approval is not a refusal")


def superseded(reason: str) -> str:
    """What the model is told of a call that was given up before it ran."""
    return f"Superseded: {reason or 'the turn was ended'}. The call was not made."
