"""A request with several parts, two agents that share it, and a model that always does the same with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.calls import CLARIFICATION
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse
from tests.support.forks import quick_python
from tests.support.product import ProductFolder

REQUEST = "find the three open invoices in the finance folder, check each against the orders, and draft one mail"
ANSWER = "INV-8 is 0.50 above its order; a mail about it is drafted. [folder › list_invoices, mail › draft]"
AGENTS = """
version: 1
agents:
  - name: bookkeeper
    description: Reads the finance folder and the orders, and flags invoices.
    systemMessage: You are the bookkeeper.
    servers: [folder, orders]
  - name: writer
    description: Drafts mails.
    systemMessage: You are the writer.
    servers: [mail]
"""
TASKS = [
    {"id": "find", "agent": "bookkeeper", "instruction": "List the open invoices."},
    {"id": "orders", "agent": "bookkeeper", "instruction": "Look up the orders O-3, O-4 and O-5."},
    {
        "id": "check",
        "agent": "bookkeeper",
        "instruction": "Compare the invoices with the orders; flag what differs.",
        "depends_on": ["find", "orders"],
    },
    {"id": "mail", "agent": "writer", "instruction": "Draft a mail about what differs.", "depends_on": ["check"]},
]


def finance_company(home: ProductFolder, model: FakeOpenAI) -> ProductFolder:
    """Has a product ask this model, with these agents and their tool servers."""
    script = Path(__file__).with_name("finance_server.py")
    servers = {}
    for role in ("folder", "orders", "mail"):
        command, *arguments = quick_python(script, role, home.folder)
        servers[role] = {"command": command, "args": arguments, "trustAnnotations": True}
    home.tool_servers(servers)
    agents = home.folder / "agents.yaml"
    agents.write_text(AGENTS)
    home.variables |= {
        "AGENTS_FILE": str(agents),
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "no-secret-at-all",
        "LLM_MODEL": "scripted",
    }
    return home


def acts_of(home: ProductFolder) -> list[str]:
    """What was changed, in order."""
    path = home.folder / "acts"
    return path.read_text().splitlines() if path.exists() else []


def brain(request: Request) -> Reply:
    """The answer of whichever agent asks: the same conversation gets the same answer."""
    messages = request["messages"]
    last_person = max(n for n, m in enumerate(messages) if m["role"] == "user")
    said = str(messages[last_person]["content"])
    results = [str(m["content"]) for m in messages[last_person:] if m["role"] == "tool"]
    if not request.get("tools"):
        return Reply(text="A summary.")
    for task in TASKS:
        if said.startswith(str(task["instruction"])):
            return _in_task(str(task["id"]), results)
    if said != REQUEST:
        return Reply(text=f"hello {said.rsplit(maxsplit=1)[-1]}")
    if not results:
        return Reply(text="I’ll split this up.", calls=[ToolUse("delegate", {"tasks": TASKS})])
    return Reply(text=ANSWER if "drafted" in results[-1] else f"Not all of it: {results[-1][-60:]}")


def asking_first(request: Request) -> Reply:
    """The same, but for the writer, who asks to whom the mail goes before it drafts it."""
    messages = request["messages"]
    instruction = str(TASKS[-1]["instruction"])
    if not any(each["role"] == "user" and str(each["content"]).startswith(instruction) for each in messages):
        return brain(request)
    match sum(each["role"] == "tool" for each in messages):
        case 0:
            return Reply(calls=[ToolUse(CLARIFICATION, {"question": "To whom?"})])
        case 1:
            return _in_task("mail", [])
        case _:
            return _in_task("mail", ["drafted"])


def _in_task(task: str, results: Sequence[str]) -> Reply:
    calls: Mapping[str, Sequence[ToolUse]] = {
        "find": [ToolUse("folder__list_invoices", {})],
        "orders": [ToolUse("orders__order", {"number": number}) for number in ("O-3", "O-4", "O-5")],
        "check": [ToolUse("orders__flag", {"invoice": "INV-8"})],
        "mail": [ToolUse("mail__draft", {"text": "INV-8 is 0.50 too high."})],
    }
    if not results:
        return Reply(calls=calls[task])
    words = {"find": "three: INV-7, INV-8, INV-9", "orders": "120.00, 75.00, 9.90", "mail": "The mail is drafted."}
    return Reply(text=words.get(task, f"INV-8 differs ({results[-1]})"))


def offered_to(request: Request) -> set[str]:
    """Names of the tools that a request offers its model."""
    tools: list[dict[str, Any]] = request.get("tools") or []
    return {str(tool["function"]["name"]) for tool in tools}
