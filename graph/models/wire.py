"""The conversation as it goes out to a service."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
"""Characters of a function's name, https://platform.openai.com/docs/api-reference/chat/create."""
_NO_TEXT = "[a message without text]"
AnyToolCall = ToolCall | InvalidToolCall
ChunkSlot = tuple[str, str]
"""A call that waits for its answer: our id, and the id on the wire."""


def wire_messages(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Returns the messages in the form that OpenAI's services take; others take it too.

    - Call ids become `call_` and 24 hexadecimal digits of their SHA-256 (OpenAI takes 40 characters, ours are longer).
    - The answers to a message's calls follow it at once, in the order of its calls.
    - Calls whose arguments were not JSON go out as calls whose arguments are an object that holds what was written.
    - Message ids, metadata and everything else of our own stay at home.

    No message is dropped, and none is made up: a call without an answer stays without one, and an answer to no call
    stays where it is.
    """
    slots = [_slots(message) for message in messages]
    answers, answering = _match(messages, slots)
    result: list[AnyMessage] = []
    for position, message in enumerate(messages):
        if position in answering:
            continue
        result.append(_bare(message, slots[position]))
        for number, (_, wire_id) in enumerate(slots[position]):
            answer = answers.get((position, number))
            if answer is not None:
                result.append(_answer(answer, wire_id))
    return result


def said_messages(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Returns the same messages without texts that say nothing, which Anthropic and Google refuse: a model's message
    that is nothing else is left out, a person's becomes `_NO_TEXT`."""
    result: list[AnyMessage] = []
    for message in messages:
        if message.text.strip():
            result.append(message)
        elif isinstance(message, HumanMessage):
            result.append(HumanMessage(_NO_TEXT))
        elif isinstance(message, ToolMessage):
            result.append(message)
        elif isinstance(message, AIMessage) and _calls(message):
            result.append(message.model_copy(update={"content": ""}))
    return result


def wire_id(call_id: str) -> str:
    """A call's id as it goes out: 29 characters, the same for the same id."""
    return f"call_{hashlib.sha256(call_id.encode(errors='surrogatepass')).hexdigest()[:24]}"


def _calls(message: AIMessage) -> list[AnyToolCall]:
    return [*message.tool_calls, *message.invalid_tool_calls]


def _slots(message: AnyMessage) -> list[ChunkSlot]:
    if not isinstance(message, AIMessage):
        return []
    seen: dict[str, int] = {}
    slots: list[ChunkSlot] = []
    for call in _calls(message):
        own = call["id"] or ""
        seen[own] = seen.get(own, 0) + 1
        # An id that a model used twice in one message would be refused: the second one gets its own.
        slots.append((own, wire_id(own if seen[own] == 1 else f"{own}#{seen[own]}")))
    return slots


def _match(
    messages: Sequence[AnyMessage], slots: Sequence[Sequence[ChunkSlot]]
) -> tuple[dict[tuple[int, int], ToolMessage], set[int]]:
    """Which answer belongs to which call (position of the message, number of the call), and where answers stand.

    Ids may come again in a later message (models reuse theirs): an answer belongs to the newest open call before it.
    """
    open_calls: dict[str, list[tuple[int, int]]] = {}
    answers: dict[tuple[int, int], ToolMessage] = {}
    answering: set[int] = set()
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            waiting = open_calls.get(message.tool_call_id)
            if waiting:
                newest = max(place for place, _ in waiting)
                call = min(c for c in waiting if c[0] == newest)
                waiting.remove(call)
                answers[call] = message
                answering.add(position)
        for number, (own, _) in enumerate(slots[position]):
            open_calls.setdefault(own, []).append((position, number))
    return answers, answering


def _bare(message: AnyMessage, slots: Sequence[ChunkSlot]) -> AnyMessage:
    match message:
        case AIMessage():
            pairs = zip(_calls(message), slots, strict=True)
            # Text only: other blocks (reasoning, a provider's own call blocks) hold ids that no longer fit.
            return AIMessage(content=message.text, tool_calls=[_call(call, out) for call, (_, out) in pairs])
        case ToolMessage():
            return _answer(message, wire_id(message.tool_call_id))
        case HumanMessage():
            return HumanMessage(content=message.content)
        case SystemMessage():
            return SystemMessage(content=message.content)
        case _:
            return message.model_copy(update={"id": None, "additional_kwargs": {}, "response_metadata": {}})


def _answer(message: ToolMessage, out: str) -> ToolMessage:
    return ToolMessage(content=message.content, tool_call_id=out, name=message.name, status=message.status)


def _call(call: AnyToolCall, out: str) -> ToolCall:
    name = _NOT_IN_NAMES.sub("_", call["name"] or "unnamed")[:_LONGEST_NAME]
    args = call["args"] if isinstance(call["args"], dict) else {"unreadable_arguments": call["args"] or ""}
    return ToolCall(name=name, args=args, id=out, type="tool_call")
