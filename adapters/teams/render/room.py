"""How much a card says, so that it is never larger than Teams takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.teams.render.elements import Element
from adapters.teams.render.text import line, passage
from bot.safe_text import beginning_of_list

MAX_CARD_BYTES = 28 * 1024
"""Of a card or a dialog as JSON (Teams: 28 KB)."""
_SHARES = (1.0, 0.5, 0.25, 0.12, 0.05)
_LEAST = 24
"""Characters that a text has at least, so that something of it is left beside the count of what is not."""


@dataclass(frozen=True, slots=True)
class Room:
    """A share of the usual limits. Characters take from 1 to 12 bytes, so that what fits is known only afterwards."""

    share: float = 1.0

    def of(self, limit: int) -> int:
        """That share of a limit in characters."""
        return min(limit, max(int(limit * self.share), _LEAST))

    def line(self, text: str, limit: int) -> str:
        """`text.line` within the room there is."""
        return line(text, self.of(limit))

    def list(self, texts: Sequence[str], limit: int) -> str:
        """The texts as one such line, with commas in between."""
        text, unseen = beginning_of_list(texts, ", ", self.of(limit))
        return line(text, self.of(limit), unseen)

    def passage(self, text: str, limit: int) -> str:
        """`text.passage` within the room there is."""
        return passage(text, self.of(limit))


def fitted(build: Callable[[Room], Element], most: int = MAX_CARD_BYTES) -> Element:
    """The largest of the card's sizes that is at most `most` bytes; the smallest where none is."""
    made: Element = {}
    for share in _SHARES:
        made = build(Room(share))
        if weight(made) <= most:
            break
    return made


def weight(value: Mapping[str, Any] | str) -> int:
    """Bytes as JSON in the longer of its two spellings: characters beyond ASCII as escapes."""
    return len(json.dumps(value))
