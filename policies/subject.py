"""A call and the facts around it, prepared once for all the rules it is held against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from policies.commands import Command, command_of
from policies.defaults import with_defaults
from policies.model import Call, Facts
from policies.names import LONGEST, folded_name
from policies.paths import Path
from policies.schedule import local_time
from policies.spellings import LONGEST as LONGEST_READ
from policies.spellings import LongText
from policies.trust import believed, call_known_to_read
from policies.values import Doubt, Undetermined, cost_of_reading

MOST_NAMES = 20_000
"""Characters of the names in the arguments that are not ASCII, and 10 for each such name: folding them takes 20 ms."""
MOST_READ = 50_000
"""What reading the arguments that rules are about may cost for one call (`cost_of_reading`): about 50 ms."""


@dataclass(frozen=True)
class Subject:
    """What is being judged."""

    call: Call
    facts: Facts

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as the tool will take them, with its defaults."""
        return with_defaults(self.call.tool.input_schema, self.call.arguments)

    def named(self, name: str) -> Sequence[Any] | None:
        """The value of an argument, or nothing, looked up once; `None`: it is there under another spelling of its name,
        or nobody knows whether it has a default."""
        if name not in self._named:
            self._named[name] = self._looked_up(name)
        return self._named[name]

    def _looked_up(self, name: str) -> Sequence[Any] | None:
        given = self.arguments
        if self._has_too_many_names or any(other != name for other in self._spelled.get(folded_name(name), ())):
            return None
        if name in given:
            return (self._read_once(given[name]),)
        return None if isinstance(given, Undetermined) else ()

    @cached_property
    def _spelled(self) -> Mapping[str, Sequence[str]]:
        """The names of arguments that the tool does not have, by their letters."""
        properties = self.call.tool.input_schema.get("properties")
        own = properties if isinstance(properties, Mapping) else {}
        spelled: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.arguments:
            if name not in own:
                spelled[folded_name(name)].append(name)
        return spelled

    def values(self, path: Path) -> list[Any] | None:
        """What a path into the arguments yields, looked up once; `None`: could not be found out (`Path.values`)."""
        if path.text not in self._found:
            found = None if self._has_too_many_names else path.values(self.arguments)
            self._found[path.text] = found if found is None else [*map(self._read_once, found)]
        return self._found[path.text]

    def _read_once(self, value: Any) -> Any:
        """A value that a rule asks about; a long text in a form that remembers what is found out about it."""
        match value:
            case str() if len(value) > LONGEST_READ:
                return self._long.setdefault(id(value), LongText(value))
            case Doubt():
                return Doubt(tuple(map(self._read_once, value.options)))
            case _:
                return value

    @cached_property
    def _long(self) -> dict[int, LongText]:
        """By the text's identity: it is kept as long as this is, by the arguments."""
        return {}

    @cached_property
    def _has_too_many_names(self) -> bool:
        """Whether comparing the names in the arguments would take too long, so that nothing is known of them."""
        cost = 0
        waiting: list[Any] = [self.call.arguments]
        while waiting and cost <= MOST_NAMES:
            one = waiting.pop()
            if isinstance(one, Mapping):
                cost += sum(10 + min(len(name), LONGEST) for name in one if not name.isascii())
                waiting += one.values()
            elif isinstance(one, list | tuple):
                waiting += one
        return cost > MOST_NAMES

    def is_too_much(self, key: str, values: Sequence[Any]) -> bool:
        """Whether these values of an argument, or a path, are more than can be read in all the ways in which a tool may
        read them, after what was read for this call before."""
        if key not in self._costs:
            self._costs[key] = cost_of_reading(values, MOST_READ - self._spent[0])
            self._spent[0] += self._costs[key]
            if self._spent[0] > MOST_READ:
                self._too_much.add(key)
                self._spent[0] -= self._costs[key]
        return key in self._too_much

    @cached_property
    def _costs(self) -> dict[str, int]:
        return {}

    @cached_property
    def _spent(self) -> list[int]:
        return [0]

    @cached_property
    def _too_much(self) -> set[str]:
        return set()

    def local_time(self, zone: str) -> datetime:
        """When it is, by the wall clock of a zone."""
        if zone not in self._local:
            self._local[zone] = local_time(self.facts.at, zone)
        return self._local[zone]

    @cached_property
    def _local(self) -> dict[str, datetime]:
        return {}

    @cached_property
    def _named(self) -> dict[str, Sequence[Any] | None]:
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
    def known_to_read(self) -> bool:
        """Whether the call is known to change nothing."""
        return call_known_to_read(self.call)

    @cached_property
    def command(self) -> Command | None:
        """The command of a call to a command-shaped tool."""
        return command_of(self.call.tool.input_schema, self.call.arguments)
