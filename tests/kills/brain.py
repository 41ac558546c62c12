"""A model without moods: the same conversation gets the same answer, so asking it again after a kill changes nothing.

`do KEY`: two acts that need approval and a free look, then `done KEY`. `try KEY` and `change KEY`: one call of
`attempt`, or of `change`, then `done KEY`. `ask KEY`: a clarification, then `noted KEY: …`. Anything else: `hello` and
the last word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graph.calls import CLARIFICATION
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, wire_problem

ACTS = 2
"""Calls of one `do` that need approval."""
_ORDER = re.compile(r"\b(do|try|change|ask) (\S+)$")


def brain(request: Request) -> Reply:
    """The answer to a chat completions request. Call ids are `call_0`… in every message, as some services do."""
    messages = request["messages"]
    last_person = max(n for n, m in enumerate(messages) if m["role"] == "user")
    text = str(messages[last_person]["content"])
    if not request.get("tools"):
        return Reply(text="A summary.")
    order = _ORDER.search(text)
    results = [m for m in messages[last_person:] if m["role"] == "tool"]
    match order and order[1]:
        case "do":
            return _do(text[order.start(2) :], results) if order else Reply()
        case "try":
            key = text[order.start(2) :] if order else ""
            return _call("attempt", {"title": key, "key": f"{key}/try"}, key, results)
        case "change":
            key = text[order.start(2) :] if order else ""
            return _call("change", {"key": f"{key}/change"}, key, results)
        case "ask":
            return _ask(text[order.start(2) :], results) if order else Reply()
        case _:
            return Reply(text=f"hello {text.rsplit(maxsplit=1)[-1]}")


def _do(key: str, results: Sequence[Mapping[str, Any]]) -> Reply:
    if results:
        return Reply(text=f"done {key}")
    acts = [ToolUse("effects__act", {"key": f"{key}/{n}"}) for n in range(ACTS)]
    return Reply(text=f"working on {key}", calls=[*acts, ToolUse("effects__look", {"key": key})])


def _call(tool: str, arguments: dict[str, Any], key: str, results: Sequence[Mapping[str, Any]]) -> Reply:
    return Reply(text=f"done {key}") if results else Reply(calls=[ToolUse(f"effects__{tool}", arguments)])


def _ask(key: str, results: Sequence[Mapping[str, Any]]) -> Reply:
    if results:
        return Reply(text=f"noted {key}: {results[-1]['content']}")
    return Reply(calls=[ToolUse(CLARIFICATION, {"question": f"What of {key}?"})])


def wire_problems(server: FakeOpenAI) -> list[str]:
    """What OpenAI would have refused in everything this server was ever sent."""
    return [problem for body in server.requests if (problem := wire_problem(body["messages"]))]
