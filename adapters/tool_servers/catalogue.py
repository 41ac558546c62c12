"""What the people of one server were shown of its tools, together: each of them may see others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.tool_servers.listing import LARGEST_LISTING, MOST_LISTED, size_of

Entry = Mapping[str, Any]

REMEMBERED = ""
"""In place of a person: listed for somebody before the last restart."""


@dataclass(slots=True)
class Catalogue:
    """The tools that anybody has. Whoever is shown fewer takes none away from the others.

    Kept is as much as is read of one listing (`MOST_LISTED` tools, `LARGEST_LISTING` bytes): a server may show each
    person others. Beyond that those are forgotten that were listed longest ago.
    """

    _entries: dict[str, Entry] = field(default_factory=dict)
    _holders: dict[str, set[str]] = field(default_factory=dict)

    @property
    def entries(self) -> list[Entry]:
        """As they were listed last; those of whoever listed last come first."""
        return list(self._entries.values())

    def listed(self, person: str, listed: Sequence[Any]) -> None:
        """These are the tools that the person has now."""
        own: dict[str, Entry] = {}
        for entry in listed:
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                own.setdefault(entry["name"], entry)
        for name in [name for name in self._entries if name not in own]:
            self.lacks(person, name)
        for name in own:
            self._holders.setdefault(name, set()).add(person)
        self._entries = own | {name: entry for name, entry in self._entries.items() if name not in own}
        room = LARGEST_LISTING
        for number, (name, entry) in enumerate(list(self._entries.items())):
            room -= size_of(entry)
            if number >= MOST_LISTED or room < 0:
                del self._entries[name], self._holders[name]

    def lacks(self, person: str, name: str) -> None:
        """The person does not have this tool; it is forgotten when nobody else has it."""
        holders = self._holders.get(name, set())
        holders.discard(person)
        if not holders and name in self._entries:
            del self._entries[name], self._holders[name]
