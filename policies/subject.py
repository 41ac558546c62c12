"""A call and the facts around it, prepared once for all the rules it is held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from policies.commands import Command, command_of
from policies.defaults import with_defaults
from policies.model import Call, Facts
from policies.paths import Path
from policies.schedule import local_time
from policies.trust import believed


@dataclass(frozen=True)
class Subject:
    """What is being judged."""

    call: Call
    facts: Facts

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as the tool will take them, with its defaults."""
        return with_defaults(self.call.tool.input_schema, self.call.arguments)

    def values(self, path: Path) -> list[Any] | None:
        """What a path into the arguments yields, looked up once; `None`: they are nested too deeply."""
        if path.text not in self._found:
            self._found[path.text] = path.values(self.arguments)
        return self._found[path.text]

    def local_time(self, zone: str) -> datetime:
        """When it is, by the wall clock of a zone."""
        if zone not in self._local:
            self._local[zone] = local_time(self.facts.at, zone)
        return self._local[zone]

    @cached_property
    def _local(self) -> dict[str, datetime]:
        return {}

    @cached_property
    def _found(self) -> dict[str, list[Any] | None]:
        return {}

    @cached_property
    def hints(self) -> Mapping[str, bool] | None:
        """MCP hint → its value; `None` where the server's annotations are not trusted."""
        if not self.call.tool.annotations_trusted:
            return None
        facts = believed(self.call.tool)
        return {
            "readOnlyHint": facts.read_only,
            "destructiveHint": facts.destructive,
            "idempotentHint": facts.idempotent,
            "openWorldHint": facts.open_world,
        }

    @cached_property
    def command(self) -> Command | None:
        """The command of a call to a command-shaped tool."""
        return command_of(self.call.tool.input_schema, self.call.arguments)
