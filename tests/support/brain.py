"""A model that does what the message says, so that a test reads as what happens.

`use make what=lamp; look what=lamp` calls those tools (of the workshop, or
`server__tool`) in one message; `ask WHAT` asks a question, `survey WHAT` eight at once;
anything else is answered. After the results it repeats them. Where a tool wants the requester's words
(`safeWrite`), it gets the whole message.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages.utils import convert_to_messages

from demo_model.memory import memory_answer
from graph.judging import QUOTE
from graph.memory import MEMORY_REQUEST
from tests.fakes.openai_server import Reply, Request, ToolUse

SERVER = "workshop"


def obedient(request: Request) -> Reply:
    """The answer to a request."""
    messages = request["messages"]
    last_person = max(i for i, m in enumerate(messages) if m["role"] == "user")
    results = [m["content"] for m in messages[last_person:] if m["role"] == "tool"]
    if results:
        return Reply(text="Results: " + " | ".join(results))
    text = messages[last_person]["content"]
    text = text.split(": ", 1)[-1] if ": " in text[:16] else text
    match text.split(" ", 1):
        case ["use", calls]:
            return Reply(text="On it.", calls=[_quoting(_call(c), text, request) for c in calls.split(";")])
        case ["ask", what]:
            fields = [{"name": "size", "label": "Size", "type": "number"}]
            arguments = {"question": f"Which {what}?", "fields": fields}
            return Reply(calls=[ToolUse("request_clarification", arguments)])
        case ["survey", what]:
            parts: list[dict[str, Any]] = [
                {"name": f"part{n}", "label": f"Part {n}", "required": n == 1} for n in range(1, 9)
            ]
            return Reply(
                calls=[
                    ToolUse("request_clarification", {"question": f"What is there to know of {what}?", "fields": parts})
                ]
            )
        case _:
            return Reply(text=f"You said: {text}")


def attentive(request: Request) -> Reply:
    """The same, and it says what is worth remembering as the demo model does."""
    messages = request["messages"]
    if not str(messages[0]["content"]).startswith(MEMORY_REQUEST):
        return obedient(request)
    return Reply(text=memory_answer(convert_to_messages(messages)))


def _quoting(call: ToolUse, text: str, request: Request) -> ToolUse:
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request.get("tools", [])}
    if QUOTE not in offered.get(call.name, {}).get("required", []):
        return call
    assert not isinstance(call.arguments, str)
    return ToolUse(call.name, {**call.arguments, QUOTE: text})


def _call(text: str) -> ToolUse:
    name, *pairs = text.split()
    arguments = dict(p.split("=", 1) for p in pairs)
    return ToolUse(
        name if "__" in name else f"{SERVER}__{name}",
        {k: int(v) if v.isdigit() else {"true": True, "false": False}.get(v, v) for k, v in arguments.items()},
    )
