"""What a rule is about, as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.conditions import Condition
from policies.model import Mode
from policies.paths import Path, is_path
from policies.schedule import Hours


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, or a path into the arguments, and what must be there."""

    key: str
    """Its name, or a JSON path (`$.attendees[*].email`)."""
    condition: Condition
    path: Path | None = None
    """The path that `key` is; `None`: it is a name."""

    @staticmethod
    def of(key: str, condition: Condition) -> Argument:
        """Raises `ValueError` where the key begins like a path and is none."""
        return Argument(key, condition, Path(key) if is_path(key) else None)


@dataclass(frozen=True, slots=True)
class Match:
    """Which calls a rule is about. A field that is `None` (or empty) fits every call; all given fields must fit."""

    server: str | None = None
    """The server's name in `mcp.json`."""
    tool: str | None = None
    """Glob over the tool's name as its server calls it (`*`, `?`, `[abc]`; case counts)."""
    command: str | None = None
    """Glob over the words, in lower case, of a command-shaped tool's command before its first option."""
    args: tuple[Argument, ...] = ()
    reads: bool | None = None
    """Whether the call is known to change nothing: by the operator's list, a trusted server, or its command."""
    annotations: Mapping[str, bool] = field(default_factory=dict)
    """MCP hint → its value; fits nothing on servers whose annotations the operator does not trust."""
    mode: Mode | None = None
    platform: str | None = None
    channel: str | None = None
    """Glob over the place's channel (`slack:T1:C2`, `teams:{tenant}:{conversation}`); a direct chat is no channel."""
    requester: tuple[str, ...] = ()
    """Person ids and group references; the requester must be or belong to one of them."""
    time: Hours | None = None

    @property
    def names_tools(self) -> bool:
        """Whether it picks calls by server, tool or command, rather than taking any tool that happens to come along."""
        return (
            self.server is not None
            or (self.tool is not None and self.tool.strip("*?") != "")
            or (self.command is not None and self.command.strip("*? ") != "")
        )
