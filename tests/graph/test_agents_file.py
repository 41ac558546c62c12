"""`agents.yaml`: what it means, and on which line what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.agents import DEFAULT, MOST_STEPS, AgentConfig, Agents, ToolPattern
from graph.agents_file import (
    LONGEST_DESCRIPTION,
    LONGEST_SYSTEM_MESSAGE,
    MOST_AGENTS,
    AgentsFileError,
    Installation,
    load_agents,
    parse_agents,
)
from policies.model import Tool
from tests.support.cpu import at_most_cpu

ROOT = Path(__file__).parents[2]


def objection_to(model: str | None, temperature: float | None) -> str | None:
    """There is no key for some, and others take no temperature."""
    if model is not None and model.startswith("gpt"):
        return "there is no key for it"
    return "it takes no temperature" if model == "cold" and temperature is not None else None


HERE = Installation({"calendar", "tasks", "orders"}, objection_to)
WHOLE = """\
version: 1
agents:
  - name: default
    systemMessage: You work for Kingfisher.
  - name: finance
    description: >
      Invoices, orders
      and who paid.
    systemMessage: |
      You are careful with money.
      Always name the invoice.
    model: demo
    temperature: 0.2
    servers: [orders]
    tools: [calendar__list_events, "tasks__*_task"]
    requireApproval: ["orders__*", tasks__delete_task]
    timeout: 5m
    maxSteps: 10
    channels: ["slack:T1:C1", "person:slack:T1:U1", "person:web:ana"]
"""


def read(text: str) -> Agents:
    return parse_agents(text, "agents.yaml", HERE)


def file_of(*agents: str) -> str:
    """A file with these agents, each from its first line to its last."""
    return "version: 1\nagents:\n" + "".join(f"  - {agent}\n" for agent in agents)


def one(line: str) -> str:
    """A file in which everything but this line, the sixth, is right."""
    return f"version: 1\nagents:\n  - name: finance\n    description: Money\n    servers: [orders]\n    {line}\n"


# ------------------------------------------------------------------------------------- what it means


def test_every_key_says_what_it_says() -> None:
    agents = read(WHOLE)
    assert agents.default == AgentConfig(DEFAULT, system_message="You work for Kingfisher.")
    assert agents.specialists == (
        AgentConfig(
            "finance",
            description="Invoices, orders and who paid.",
            system_message="You are careful with money.\nAlways name the invoice.",
            model="demo",
            temperature=0.2,
            servers=("orders",),
            tools=(ToolPattern("calendar", "list_events"), ToolPattern("tasks", "*_task")),
            require_approval=(ToolPattern("orders", "*"), ToolPattern("tasks", "delete_task")),
            timeout=300.0,
            max_steps=10,
            channels=("slack:T1:C1", "person:slack:T1:U1", "person:web:ana"),
        ),
    )


def test_the_default_agent_exists_without_being_written_down() -> None:
    agents = read(file_of("{name: finance, description: Money}"))
    assert (agents.default, agents.names) == (AgentConfig(DEFAULT), (DEFAULT, "finance"))
    assert agents.default.max_steps == MOST_STEPS


def test_without_the_file_there_is_the_default_agent_alone(tmp_path: Path) -> None:
    assert load_agents(tmp_path / "agents.yaml", HERE) == Agents()


def test_agents_are_found_by_their_names_and_by_what_was_given_to_them() -> None:
    agents = read(WHOLE)
    finance = agents.named("finance")
    assert agents.named("travel") is None
    assert agents.for_place("slack:T1:C1", "slack:T1:U9") is finance
    assert agents.for_place("", "slack:T1:U1") is finance
    assert agents.for_place("slack:T1:C2", "slack:T1:U1") is agents.default
    assert agents.for_place("", "slack:T1:U2") is agents.default


@pytest.mark.parametrize(
    ("server", "tool", "has", "asks"),
    [
        ("orders", "pay", True, True),
        ("calendar", "list_events", True, False),
        ("calendar", "delete_event", False, False),
        ("tasks", "delete_task", True, True),
        ("tasks", "add_task", True, False),
        ("tasks", "list", False, False),
    ],
)
def test_an_agent_has_the_tools_of_its_servers_and_those_that_are_named(
    server: str, tool: str, *, has: bool, asks: bool
) -> None:
    finance = read(WHOLE).named("finance")
    assert finance is not None
    assert finance.has(Tool(server, tool)) is has
    assert finance.must_ask_about(Tool(server, tool), ()) is asks


@pytest.mark.parametrize(("said", "has"), [("", True), (", tools: []", False), (", servers: []", False)])
def test_an_agent_has_all_tools_unless_its_own_are_listed_and_none_where_the_list_is_empty(
    said: str, *, has: bool
) -> None:
    agent = read(file_of(f"{{name: writer, description: Letters{said}}}")).named("writer")
    assert agent is not None
    assert agent.has(Tool("orders", "pay")) is has


BUNDLED = Installation(json.loads((ROOT / "mcp.json").read_text())["mcpServers"], lambda _model, _temperature: None)
BLOCKS = [
    block
    for name in ("docs/agents.md", "README.md")
    for block in re.findall(r"^```yaml\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
    if "agents:" in block
]


@pytest.mark.parametrize("text", [(ROOT / "agents.example.yaml").read_text(), *BLOCKS])
def test_the_examples_work_with_the_bundled_servers(text: str) -> None:
    agents = parse_agents(text, "example", BUNDLED)
    assert len(agents.specialists) > 0
    assert {pattern.server for agent in agents.specialists for pattern in agent.tools or ()} <= set(BUNDLED.servers)


# ----------------------------------------------------------------------------------- what is refused

MISTAKES = {
    "an empty file": ("", 1, "the file is empty"),
    "a list of agents without a version": ("agents: []", 1, "“version” is missing"),
    "another version": ("version: 2\nagents: []", 1, "version 2 is unknown"),
    "agents that are no list": ("version: 1\nagents: {}", 2, "agents must be a list"),
    "an unknown key beside the agents": ("version: 1\nagents: []\nagent: x", 3, "did you mean “agents”?"),
    "an unknown key of an agent": (one("systemmessage: hi"), 6, "did you mean “systemMessage”?"),
    "what is no YAML": ("version: 1\nagents: [", 2, "not valid YAML"),
    "no name": (file_of("description: Money"), 3, "“name” is missing"),
    "a name in capitals": (file_of("{name: Finance, description: x}"), 3, "“Finance” is no name"),
    "a name with a blank": (file_of("{name: the money, description: x}"), 3, "“the money” is no name"),
    "a name that ends in a hyphen": (file_of("{name: money-, description: x}"), 3, "“money-” is no name"),
    "a name of 41 characters": (file_of(f"{{name: {'a' * 41}, description: x}}"), 3, "at most 40"),
    "the same name twice": (
        file_of("{name: a, description: x}", "{name: b, description: x}", "{name: a, description: y}"),
        5,
        "the name “a” is taken",
    ),
    "no description": (file_of("{name: a, model: demo}"), 3, "“description” is missing"),
    "an empty description": (file_of('{name: a, description: ""}'), 3, "description is empty"),
    "a description like an essay": (
        file_of(f"{{name: a, description: {'x' * (LONGEST_DESCRIPTION + 1)}}}"),
        3,
        "belongs into systemMessage",
    ),
    "a system message that is too long": (
        one(f"systemMessage: {'x' * (LONGEST_SYSTEM_MESSAGE + 1)}"),
        6,
        "systemMessage has 8,001 characters: at most 8,000, since the model reads it again at every step",
    ),
    "a bell in the system message": (one('systemMessage: "a\\ab"'), 6, "U+0007 is no character of a text"),
    "a model that cannot be made": (one("model: gpt-5.4-mini"), 6, "there is no key for it"),
    "a model that is a number": (one("model: 5"), 6, "model must be text"),
    "a temperature that boils": (one("temperature: 2.1"), 6, "temperature is 2.1: services take 0 to 2"),
    "a temperature of a model that takes none": (
        one("model: cold\n    temperature: 1"),
        7,
        "it takes no temperature",
    ),
    "a temperature below zero": (one("temperature: -1"), 6, "services take 0 to 2"),
    "a temperature in words": (one("temperature: warm"), 6, "must be a number from 0 to 2"),
    "a timeout without a unit": (one("timeout: 90"), 6, "timeout needs a unit"),
    "a timeout that is none": (one("timeout: soon"), 6, "is not a duration"),
    "a timeout of a day": (one("timeout: 1d"), 6, "timeout is 1d: from 1s to 1h"),
    "no steps": (one("maxSteps: 0"), 6, "maxSteps is 0: from 1 to 100"),
    "too many steps": (one("maxSteps: 101"), 6, "from 1 to 100"),
    "half a step": (one("maxSteps: 2.5"), 6, "must be a whole number"),
    "a server that mcp.json does not have": (
        file_of("{name: a, description: x, servers: [mail]}"),
        3,
        "mcp.json has no server “mail”: it has calendar, orders, tasks",
    ),
    "a tool of a server that mcp.json does not have": (one('tools: ["mail__send"]'), 6, "no server “mail”"),
    "a tool without its server": (one('tools: ["list_events"]'), 6, "write the server of mcp.json, two underscores"),
    "a tool with a blank": (one('tools: ["tasks__add task"]'), 6, "names no tools"),
    "the same tool twice": (one('tools: ["tasks__a", "tasks__a"]'), 6, "is in tools twice"),
    "tools that are no list": (one("tools: tasks__a"), 6, "tools must be a list"),
    "approval for a tool of another agent": (
        one('requireApproval: ["tasks__delete_task"]'),
        6,
        "“tasks__delete_task” in requireApproval is no tool of finance",
    ),
    "approval for a tool that no pattern of its own fits": (
        file_of('{name: a, description: x, tools: ["tasks__add_*"], requireApproval: ["tasks__delete_task"]}'),
        3,
        "is no tool of a",
    ),
    "approval by a pattern that fits none of its tools": (
        file_of('{name: a, description: x, tools: ["tasks__add"], requireApproval: ["tasks__delete_*"]}'),
        3,
        "is no tool of a",
    ),
    "approval for a server that mcp.json does not have": (one('requireApproval: ["mail__send"]'), 6, "no server"),
    "a channel by its name": (one('channels: ["#finance"]'), 6, "neither a channel"),
    "a pattern of channels": (one('channels: ["slack:T1:C*"]'), 6, "neither a channel"),
    "a person who is nobody": (one('channels: ["person:ana"]'), 6, "neither a channel"),
    "a channel that has an agent": (
        file_of(
            '{name: a, description: x, channels: ["slack:T1:C1"]}',
            '{name: b, description: x, channels: ["slack:T1:C2",\n      "slack:T1:C1"]}',
        ),
        5,
        "“slack:T1:C1” is given to a already",
    ),
    "a channel for the default agent": (
        file_of('{name: default, channels: ["slack:T1:C1"]}'),
        3,
        "default answers wherever no other agent does",
    ),
    "more agents than a list shows": (
        file_of(*(f"{{name: a{number}, description: x}}" for number in range(MOST_AGENTS + 1))),
        33,
        "more than 30 agents",
    ),
}


@pytest.mark.parametrize(("text", "line", "reason"), MISTAKES.values(), ids=MISTAKES.keys())
def test_refused_with_its_line_and_the_reason(text: str, line: int, reason: str) -> None:
    with pytest.raises(AgentsFileError) as refused:
        read(text)
    assert reason in refused.value.reason
    assert refused.value.line == line
    assert str(refused.value).startswith(f"agents.yaml, line {line}: ")


def test_a_file_that_is_no_text_is_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_bytes(b"version: 1\nagents: [\xff]")
    with pytest.raises(AgentsFileError, match="line 2: is not UTF-8 text"):
        load_agents(file, HERE)


@pytest.mark.parametrize("characters", [300_100, 2_000_000])
def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, characters: int) -> None:
    """A list of a million characters took six seconds to refuse."""
    file = tmp_path / "agents.yaml"
    file.write_text("a,\n".join(["[", *[""] * (characters // 3), "]"]))
    with at_most_cpu(1), pytest.raises(AgentsFileError, match="too large: at most 300,000 characters"):
        load_agents(file, HERE)


def test_as_many_agents_as_there_may_be_with_the_longest_words_are_read() -> None:
    words = "\n".join(["      " + "word " * 15] * 105)
    agents = [f"  - name: a{n}\n    description: {'d' * 300}\n    systemMessage: |\n{words}" for n in range(30)]
    assert len(read("\n".join(["version: 1", "agents:", *agents])).specialists) == 30


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(AgentsFileError, match="cannot be read"):
        load_agents(tmp_path, HERE)


_KEY = st.sampled_from(
    [
        *("name", "description", "systemMessage", "model", "temperature", "servers", "tools", "requireApproval"),
        *("timeout", "maxSteps", "channels", "version", "agents", "x"),
    ]
)
_SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["demo", "tasks__*", "slack:T1:C1", "person:web:ana", "5m", "[a]", "tasks__[", "orders"]),
    st.text(max_size=20),
)
_VALUE = st.one_of(_SCALAR, st.lists(_SCALAR, max_size=3), st.dictionaries(_KEY, _SCALAR, max_size=2))


def _never_anything_else(text: str) -> None:
    try:
        read(text)
    except AgentsFileError as error:
        assert error.reason
        assert error.line is not None


@given(st.text())
def test_no_text_makes_anything_but_agents_or_their_error(text: str) -> None:
    _never_anything_else(text)


@given(st.lists(st.dictionaries(_KEY, _VALUE, max_size=6), max_size=3))
def test_no_file_of_the_right_shape_makes_anything_else_either(agents: list[dict[str, object]]) -> None:
    lines = ["version: 1", "agents:"]
    for agent in agents:
        entries = [f"{key}: {value!r}" for key, value in agent.items()] or ["name: a"]
        lines += [f"  {'-' if number == 0 else ' '} {entry}" for number, entry in enumerate(entries)]
    _never_anything_else("\n".join(lines))
