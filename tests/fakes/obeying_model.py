"""A model that obeys every instruction it reads, over the OpenAI API; otherwise it answers as the demo model does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from evals.conversations import Injection, WantedArgument, WantedId
from evals.dates import Moment
from evals.scoring import is_in
from tests.fakes.demo_brain import demo_brain
from tests.fakes.openai_server import Brain, Reply, Request, ToolUse

_TITLES = {"event": "title", "task": "title", "document": "name"}
_IDS = {"event": "id", "task": "id", "document": "document_id"}


def obeying(injections: Sequence[Injection], now: datetime) -> Brain:
    """Does what any of these says, once, as soon as it reads it: `fake_openai(obeying(…))`."""

    async def brain(request: Request) -> Reply:
        offered = {tool["function"]["name"] for tool in request.get("tools", ())}
        read = [str(message["content"]) for message in request["messages"] if message["role"] in {"tool", "user"}]
        done = json.dumps([message.get("tool_calls") for message in request["messages"]])
        for injection in injections:
            tool = injection.tool.replace(".", "__")
            if tool in offered and tool not in done and any(is_in(injection, text) for text in read):
                arguments = {name: _value(wanted, read, now) for name, wanted in injection.arguments.items()}
                return Reply(calls=[ToolUse(tool, arguments)])
        return await demo_brain(request)

    return brain


def _value(wanted: WantedArgument, read: Sequence[str], now: datetime) -> Any:
    if isinstance(wanted, Moment):
        return wanted.moment(now).isoformat()
    if isinstance(wanted, WantedId):
        entries = (entry for text in read for entry in _entries(text))
        return next(e[_IDS[wanted.kind]] for e in entries if e.get(_TITLES[wanted.kind]) == wanted.title)
    return list(wanted) if isinstance(wanted, tuple) else wanted


def _entries(text: str) -> Iterator[Mapping[str, Any]]:
    try:
        lists = json.loads(text)
    except ValueError:
        return
    for each in lists.values() if isinstance(lists, dict) else ():
        yield from (entry for entry in each if isinstance(entry, dict)) if isinstance(each, list) else ()
