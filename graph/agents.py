"""The agents that there are: what each is told, and which tools it may use. `graph/agents_file.py` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from policies.conditions import is_literal
from policies.model import Tool
from policies.patterns import Likeness, glob

if TYPE_CHECKING:
    from graph.state import Turn

DEFAULT = "default"
"""Name of the agent that always exists: whoever names no other one speaks to it."""
MOST_STEPS = 25
"""Messages that the model may write in one turn, where the agent has no limit of its own; a model that repeats itself
is stopped."""
PERSON = "person:"
"""What somebody's direct chat is called among `channels`: `person:slack:T1:U2`."""


@dataclass(frozen=True)
class ToolPattern:
    """Which tools of a server are meant."""

    server: str
    """The server's name in `mcp.json`."""
    tool: str
    """Glob over the tool's name as its server calls it, as in a rule of the policy."""

    def fits(self, tool: Tool) -> bool:
        """Whether it means this tool."""
        return tool.server == self.server and self.fits_name(tool.name)

    def fits_name(self, name: str) -> bool:
        """Whether it means the tool that the server calls so."""
        return bool(self._is_like(name))

    @cached_property
    def _is_like(self) -> Likeness:
        return glob(self.tool)

    def __str__(self) -> str:
        return f"{self.server}__{self.tool}"


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent, as the operator describes it. Whatever it has can only take away from what is allowed."""

    name: str
    description: str = ""
    """What it is for, on one line: people and models pick by it. Empty for none but the default one."""
    system_message: str = ""
    """The operator's own words to its model, below the product's rules."""
    model: str | None = None
    """As `LLM_MODEL` has it; `None`: that one."""
    temperature: float | None = None
    """From 0 to 2; `None`: the service's own."""
    servers: tuple[str, ...] | None = None
    """Servers of `mcp.json` all of whose tools it has. `None` here and in `tools`: all tools of all servers."""
    tools: tuple[ToolPattern, ...] | None = None
    """Tools that it has, too."""
    require_approval: tuple[ToolPattern, ...] = ()
    """Those of its tools that never run without being asked about."""
    timeout: float | None = None
    """Seconds that it may work on a message or an answer until it is at rest again; `None`: no limit of its own."""
    max_steps: int = MOST_STEPS
    """Messages that its model may write in one turn."""
    channels: tuple[str, ...] = ()
    """Channels, as the policy names them, and direct chats (`PERSON`) in which it is the one that answers."""

    @property
    def has_all_tools(self) -> bool:
        """Whether no tool is kept from it."""
        return self.servers is None and self.tools is None

    def has(self, tool: Tool) -> bool:
        """Whether it may use a tool."""
        if self.has_all_tools:
            return True
        return tool.server in (self.servers or ()) or any(pattern.fits(tool) for pattern in self.tools or ())

    def uses(self, server: str) -> bool:
        """Whether some tool of a server may be its."""
        named = (pattern.server for pattern in self.tools or ())
        return self.has_all_tools or server in (self.servers or ()) or server in named

    def offered(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Those of the tools that it may use."""
        return tools if self.has_all_tools else [tool for tool in tools if self.has(tool)]

    def must_ask_about(self, tool: Tool, listed: Iterable[Tool]) -> bool:
        """Whether no call of a tool runs without being asked about. Where a name to ask about is none of its server's,
        it may be this tool's, misspelt or before it was renamed: then all of the server's are asked about.

        Args:
            listed: the tools that there are.
        """
        patterns = [pattern for pattern in self.require_approval if pattern.server == tool.server]
        if not patterns or any(pattern.fits(tool) for pattern in patterns):
            return bool(patterns)
        there = {each.name for each in listed if each.server == tool.server}
        return bool(there) and any(is_literal(each.tool) and each.tool not in there for each in patterns)


WITHOUT_LIMITS = AgentConfig("")
"""Nobody's: the policy alone says what a program may call at `/mcp`, which has an agent of its own."""


@dataclass(frozen=True)
class Agents:
    """The default agent and the others."""

    default: AgentConfig = field(default_factory=lambda: AgentConfig(DEFAULT))
    specialists: tuple[AgentConfig, ...] = ()
    """The others, in the order in which they were written."""

    @property
    def all(self) -> tuple[AgentConfig, ...]:
        """All of them, the default one first."""
        return self.default, *self.specialists

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, the default one's first."""
        return tuple(agent.name for agent in self.all)

    def named(self, name: str) -> AgentConfig | None:
        """The agent of that name; `None`: there is none (any more)."""
        return self._by_name.get(name)

    def of(self, turn: Turn) -> AgentConfig | None:
        """The agent of a turn; `None`: it was taken out of the file since the turn began."""
        return WITHOUT_LIMITS if turn["platform"] == "mcp" else self.named(name_in(turn))

    def for_place(self, channel: str, person: str) -> AgentConfig:
        """The agent to which a place was given, or else the default one.

        Args:
            channel: `ConversationReference.channel`; empty in a direct chat.
            person: id of who writes there.
        """
        return self._by_place.get(channel or f"{PERSON}{person}", self.default)

    @cached_property
    def _by_name(self) -> Mapping[str, AgentConfig]:
        return {agent.name: agent for agent in self.all}

    @cached_property
    def _by_place(self) -> Mapping[str, AgentConfig]:
        return {place: agent for agent in self.all for place in agent.channels}


ONLY_DEFAULT = Agents()
"""What there is without a file."""


@dataclass(frozen=True, slots=True)
class IdlePattern:
    """A pattern of an agent's that fits no tool that it has."""

    agent: str
    key: str
    """`tools` or `requireApproval`."""
    pattern: ToolPattern


def idle_patterns(agents: Agents, tools: Sequence[Tool]) -> Iterator[IdlePattern]:
    """What may be misspelt in the file, once tools are listed. Nothing is said of servers none of whose are: they may
    be away."""
    listed = {tool.server for tool in tools}
    for agent in agents.all:
        own = agent.offered(tools)
        for key, patterns in (("tools", agent.tools or ()), ("requireApproval", agent.require_approval)):
            for pattern in patterns:
                if pattern.server in listed and not any(map(pattern.fits, own)):
                    yield IdlePattern(agent.name, key, pattern)


def shown_name(turn: Turn) -> str:
    """Name of the agent of a turn as people see it; empty: the default one, which is Countersign itself."""
    name = name_in(turn)
    return "" if name == DEFAULT else name


def name_in(turn: Turn) -> str:
    """Name of the agent of a turn."""
    return turn.get("agent") or DEFAULT
