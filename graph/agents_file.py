"""`agents.yaml` to agents, or an error with the line and the reason.

The file's keys are described in `docs/agents.md`. Whatever the reader does not know it refuses, like the policy's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graph.agents import DEFAULT, MOST_STEPS, ONLY_DEFAULT, PERSON, AgentConfig, Agents, ToolPattern
from policies import yaml_values
from policies.conditions import is_literal
from policies.model import PERSON_ID_FORMS, PLACE_ID_FORMS, normal
from policies.yaml_values import (
    LineError,
    Located,
    child,
    mapping,
    only_keys,
    read_yaml,
    text,
    texts,
    versioned_list,
    whole_number,
)

VERSION = 1
"""The only version of the file there is."""
MOST_AGENTS = 30
"""Agents of a file: a person picks from a list of them, and a model by their descriptions."""
LARGEST_FILE = 300_000
"""Characters of a file: more than as many agents with the longest words have. What is written to be slow to read takes
two seconds for them, with one core."""
_MOST_BYTES = 4 * LARGEST_FILE
"""Of which a file of so many characters never has more, in UTF-8."""
LONGEST_NAME = 40
"""Characters of a name: it is typed after `/countersign agent`."""
LONGEST_DESCRIPTION = 300
"""Characters: a line in a list."""
LONGEST_SYSTEM_MESSAGE = 8_000
"""Characters, about 2,000 tokens: the model reads them again at every step of every turn."""
LONGEST_PATTERN = 200
"""Characters of a pattern over tools. Names of tools have at most 128 at their servers."""
WARMEST = 2
"""Highest temperature that services take."""
SHORTEST_TIMEOUT = 1.0
"""Seconds."""
LONGEST_TIMEOUT = 3600.0
"""Seconds: a run may take an hour."""
HIGHEST_STEPS = 100
_TOO_LARGE = f"too large: at most {LARGEST_FILE:,} characters are read, and {MOST_AGENTS} agents need fewer"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_TOOL = re.compile(r"(?:[A-Za-z0-9._/*?-]|\[[^\]]+\])+")
_KEYS = frozenset(
    {
        *("name", "description", "systemMessage", "model", "temperature", "servers", "tools", "requireApproval"),
        *("timeout", "maxSteps", "channels"),
    }
)


class AgentsFileError(Exception):
    """Agents that cannot be used; the start stops with it.

    `source` names the file, `line` counts from 1 and is `None` only when there is no text to point into (the file
    cannot be read), `reason` says what is wrong and what to do.
    """

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Installation:
    """What the agents of a file are checked against."""

    servers: Collection[str]
    """Names of the servers in `mcp.json`."""
    objection_to: Callable[[str | None, float | None], str | None]
    """Says of a model, as `LLM_MODEL` names one (`None`: that one), and of a temperature, why they cannot be used;
    `None`: they can."""


def load_agents(path: Path, installation: Installation) -> Agents:
    """The agents in a file (UTF-8); without the file, the default one. Raises `AgentsFileError`, also when the file
    cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)  # and no more: it may be a device
        written = content.decode("utf-8-sig") if len(content) <= _MOST_BYTES else None
    except FileNotFoundError:
        return ONLY_DEFAULT
    except OSError as error:
        raise AgentsFileError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise AgentsFileError(str(path), line, "is not UTF-8 text") from error
    if written is None:
        raise AgentsFileError(str(path), None, _TOO_LARGE)
    return parse_agents(written, str(path), installation)


def parse_agents(text: str, source: str, installation: Installation) -> Agents:
    """The agents in a text; `source` names it in errors. Raises `AgentsFileError`, and nothing else."""
    try:
        _refuse_too_large(text)
        return _read_agents(read_yaml(text), installation)
    except LineError as fault:
        raise AgentsFileError(source, fault.line, fault.reason) from None


def _refuse_too_large(text: str) -> None:
    if len(text) > LARGEST_FILE:
        raise LineError(text.count("\n", 0, LARGEST_FILE) + 1, _TOO_LARGE)


def _read_agents(root: Located | None, installation: Installation) -> Agents:
    if root is None:
        raise LineError(1, f"the file is empty: write at least “version: {VERSION}” and “agents: []”, or remove it")
    items = versioned_list(root, "agents", VERSION, "the file")
    if len(items) > MOST_AGENTS:
        raise LineError(items[MOST_AGENTS].line, f"more than {MOST_AGENTS} agents: people pick from a list")
    read: dict[str, AgentConfig] = {}
    places: dict[str, str] = {}
    for item in items:
        agent = _read_agent(item, installation)
        if agent.name in read:
            raise LineError(item.line, f"the name “{agent.name}” is taken: people and records tell agents by it")
        read[agent.name] = agent
        _note_places(agent, item, places)
    specialists = tuple(agent for name, agent in read.items() if name != DEFAULT)
    return Agents(read.get(DEFAULT, ONLY_DEFAULT.default), specialists)


def _note_places(agent: AgentConfig, node: Located, places: dict[str, str]) -> None:
    for place, item in zip(agent.channels, _items(mapping(node, "an agent"), "channels"), strict=True):
        if place in places:
            raise LineError(item.line, f"“{item.value}” is given to {places[place]} already: one agent answers there")
        places[place] = agent.name


def _items(entries: Mapping[str, Located], key: str) -> Sequence[Located]:
    return texts(entries[key], key) if key in entries else ()


def _read_agent(node: Located, installation: Installation) -> AgentConfig:
    entries = mapping(node, "an agent")
    only_keys(entries, _KEYS, "an agent")
    name = _name(child(entries, "name", node))
    servers = _servers(entries, installation) if "servers" in entries else None
    tools = _patterns(entries, "tools", installation) if "tools" in entries else None
    model = _model(entries["model"], installation) if "model" in entries else None
    agent = AgentConfig(
        name=name,
        description=_description(entries, node, name),
        system_message=_system_message(entries["systemMessage"]) if "systemMessage" in entries else "",
        model=model,
        temperature=_temperature(entries["temperature"], model, installation) if "temperature" in entries else None,
        servers=servers,
        tools=tools,
        require_approval=_patterns(entries, "requireApproval", installation),
        timeout=_timeout(entries["timeout"]) if "timeout" in entries else None,
        max_steps=_max_steps(entries["maxSteps"]) if "maxSteps" in entries else MOST_STEPS,
        channels=_channels(entries, name),
    )
    _refuse_asking_about_others(agent, _items(entries, "requireApproval"))
    return agent


def _name(node: Located) -> str:
    name = text(node, "name")
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise LineError(
            node.line,
            f"“{name[:60]}” is no name for an agent, which people type: lower-case letters, digits and hyphens between "
            f"them, at most {LONGEST_NAME}",
        )
    return name


def _description(entries: Mapping[str, Located], node: Located, name: str) -> str:
    if name != DEFAULT or "description" in entries:
        written = text(child(entries, "description", node), "description")
    else:
        return ""
    line, at = " ".join(written.split()), entries["description"].line
    if len(line) > LONGEST_DESCRIPTION:
        raise LineError(
            at,
            f"description has {len(line):,} characters: at most {LONGEST_DESCRIPTION}, a line in a list; what the "
            "agent itself has to know belongs into systemMessage",
        )
    _refuse_control_characters(line, "description", at)
    return line


def _system_message(node: Located) -> str:
    message = text(node, "systemMessage").strip()
    if len(message) > LONGEST_SYSTEM_MESSAGE:
        raise LineError(
            node.line,
            f"systemMessage has {len(message):,} characters: at most {LONGEST_SYSTEM_MESSAGE:,}, since the model reads "
            "it again at every step of every turn",
        )
    _refuse_control_characters(message, "systemMessage", node.line)
    return message


def _refuse_control_characters(written: str, what: str, line: int) -> None:
    wrong = next((c for c in written if unicodedata.category(c) == "Cc" and c not in "\n\t"), None)
    if wrong is not None:
        raise LineError(line, f"{what}: U+{ord(wrong):04X} is no character of a text")


def _model(node: Located, installation: Installation) -> str:
    model = text(node, "model").strip()
    objection = installation.objection_to(model, None)
    if objection is not None:
        raise LineError(node.line, objection)
    return model


def _temperature(node: Located, model: str | None, installation: Installation) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise LineError(node.line, f"temperature must be a number from 0 to {WARMEST}")
    if not 0 <= node.value <= WARMEST:
        raise LineError(node.line, f"temperature is {node.value}: services take 0 to {WARMEST}")
    objection = installation.objection_to(model, float(node.value))
    if objection is not None:
        raise LineError(node.line, objection)
    return float(node.value)


def _timeout(node: Located) -> float:
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        raise LineError(node.line, "timeout needs a unit, such as 90s, 5m or 1h")
    try:
        seconds = yaml_values.seconds(text(node, "timeout"))
    except ValueError as error:
        raise LineError(node.line, f"timeout: {error}") from None
    if not SHORTEST_TIMEOUT <= seconds <= LONGEST_TIMEOUT:
        raise LineError(node.line, f"timeout is {node.value}: from 1s to 1h")
    return seconds


def _max_steps(node: Located) -> int:
    steps = whole_number(node, "maxSteps")
    if not 1 <= steps <= HIGHEST_STEPS:
        raise LineError(node.line, f"maxSteps is {steps}: from 1 to {HIGHEST_STEPS}")
    return steps


# --------------------------------------------------------------------------------------------- tools


def _servers(entries: Mapping[str, Located], installation: Installation) -> tuple[str, ...]:
    items = texts(entries["servers"], "servers")
    for item in items:
        _known_server(str(item.value), item.line, installation)
    return tuple(str(item.value) for item in items)


def _known_server(name: str, line: int, installation: Installation) -> None:
    if name not in installation.servers:
        known = ", ".join(sorted(installation.servers)) or "none"
        raise LineError(line, f"mcp.json has no server “{name[:60]}”: it has {known}")


def _patterns(entries: Mapping[str, Located], key: str, installation: Installation) -> tuple[ToolPattern, ...]:
    return tuple(_pattern(item, key, installation) for item in _items(entries, key))


def _pattern(item: Located, key: str, installation: Installation) -> ToolPattern:
    written = str(item.value)
    server, separator, tool = written.partition("__")
    if not separator or not _TOOL.fullmatch(tool) or len(written) > LONGEST_PATTERN:
        raise LineError(
            item.line,
            f"“{written[:60]}” in {key} names no tools: write the server of mcp.json, two underscores and the tool, or "
            f"a pattern over its name, such as “calendar__list_*”; at most {LONGEST_PATTERN} characters",
        )
    _known_server(server, item.line, installation)
    pattern = ToolPattern(server, tool)
    try:
        pattern.fits_name("")  # prepared now, so that a mistake in it is found now
    except ValueError as error:
        raise LineError(item.line, f"“{written[:60]}” in {key} is no pattern: {error}") from None
    return pattern


def _refuse_asking_about_others(agent: AgentConfig, items: Iterable[Located]) -> None:
    """Refuses what can be no tool of its own: what is asked about is written down because somebody relies on it."""
    if agent.has_all_tools:
        return
    for asked, item in zip(agent.require_approval, items, strict=True):
        if not _may_have(agent, asked):
            raise LineError(
                item.line,
                f"“{asked}” in requireApproval is no tool of {agent.name}: add it to tools, or its server to servers",
            )


def _may_have(agent: AgentConfig, asked: ToolPattern) -> bool:
    """Whether a tool that is meant may be the agent's, as far as the patterns say."""
    if asked.server in (agent.servers or ()):
        return True
    own = [pattern for pattern in agent.tools or () if pattern.server == asked.server]
    if is_literal(asked.tool):
        return any(pattern.fits_name(asked.tool) for pattern in own)
    literal = [pattern.tool for pattern in own if is_literal(pattern.tool)]
    return len(literal) < len(own) or any(asked.fits_name(tool) for tool in literal)


# ------------------------------------------------------------------------------------------ channels


def _channels(entries: Mapping[str, Located], name: str) -> tuple[str, ...]:
    if name == DEFAULT and "channels" in entries:
        raise LineError(
            entries["channels"].key_line, f"channels: {DEFAULT} answers wherever no other agent does: take it out"
        )
    return tuple(map(_channel, _items(entries, "channels")))


def _channel(item: Located) -> str:
    written = str(item.value)
    person = written.removeprefix(PERSON)
    place = normal(person, PERSON_ID_FORMS) if person != written else normal(written, PLACE_ID_FORMS)
    if place is None or any(sign in written for sign in "*?["):
        raise LineError(
            item.line,
            f"“{written[:60]}” in channels is neither a channel (slack:T1:C2, teams:{{tenant}}:{{conversation}}) nor a "
            "direct chat (person:slack:T1:U2, person:teams:{tenant}:{object id}, person:web:ana)",
        )
    return f"{PERSON}{place}" if person != written else place
