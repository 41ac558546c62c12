"""A model that makes the plan that the message says, and agents that each do what they are told.

`plan a: use make what=lamp, b(a): use look what=lamp` hands over two tasks, of which the second depends on the first;
`unlucky` as a task has its model fail, and of `SURPRISE` it is told to make a lamp that nobody asked for. Everything
else is as `tests.support.brain` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse
from tests.support.brain import SERVER, obedient
from tests.support.fixtures import connect
from tests.support.product import ProductFolder
from tests.support.tools import Workshop

SURPRISE = "surprise me"
AGENTS = """
version: 1
agents:
  - name: worker
    description: Does what it is told.
    systemMessage: You are the worker.
    servers: [{server}]
"""
_LAMP = "use make what=lamp"
_TASK = re.compile(r"([a-z]+)(?:\(([a-z ]+)\))?: (.*)")


def with_worker(home: ProductFolder, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """Has a product ask this model, with one agent that can be given tasks, and that tool server."""
    connect(home, shop, model)
    return with_agents(home, SERVER)


def with_agents(home: ProductFolder, server: str) -> ProductFolder:
    """Has a product have one agent that can be given tasks, and has the tools of this server."""
    agents = home.folder / "agents.yaml"
    agents.write_text(AGENTS.format(server=server))
    home.variables["AGENTS_FILE"] = str(agents)
    return home


def planning(request: Request) -> Reply:
    """The answer to a request."""
    messages = request["messages"]
    last = max(n for n, m in enumerate(messages) if m["role"] == "user")
    text = str(messages[last]["content"])
    if "plan " in text[:16]:
        results = [m["content"] for m in messages[last:] if m["role"] == "tool"]
        if results:
            return Reply(text="Results: " + " | ".join(map(str, results)))
        plans = text.split("plan ", 1)[1].split(" and plan ")
        return Reply(calls=[_call(each) for each in plans])
    first = text.split("\n", 1)[0]
    if first == "unlucky":
        return Reply(status=401, error={"code": "invalid_api_key", "message": "Incorrect key"})
    told = [*messages[:last], {**messages[last], "content": first}, *messages[last + 1 :]]
    return obedient({**request, "messages": told})


def _call(text: str) -> ToolUse:
    if text.startswith("use "):
        name, *pairs = text.removeprefix("use ").split()
        return ToolUse(f"workshop__{name}", dict(pair.split("=", 1) for pair in pairs))
    return ToolUse("delegate", {"tasks": _tasks(text)})


def _tasks(text: str) -> Sequence[dict[str, Any]]:
    found = [match for each in text.split(", ") if (match := _TASK.fullmatch(each))]
    told = {SURPRISE: _LAMP}
    return [
        {
            "id": match[1],
            "agent": "worker",
            "instruction": told.get(match[3], match[3]),
            "depends_on": (match[2] or "").split(),
        }
        for match in found
    ]
