"""An answer as messages: as few as Teams' limit allows, with what Teams shows beside a model's words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from adapters.teams.render.citations import Citations
from adapters.teams.render.markdown import Piece, pieces
from bot.safe_text import visible_passage

LONGEST_ANSWER = 40_000
"""Characters of an answer; more is cut with a count. It makes four messages or so, and takes 20 ms at most."""
LONGEST_MESSAGE = 12_000
"""UTF-16 units of a message's text: 24 KB, and sources take as much again (Teams: 100 KB in all as UTF-16, of which
Microsoft advises 80; 40 KB until 2024)."""
_LONGEST_PART, _SHORTEST_PART = 10_000, 2_000
"""Characters of the parts of a piece that is too long; escapes make five of one at most."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one message says."""

    text: str = ""
    citations: Citations = field(default_factory=Citations)


def pages(text: str) -> tuple[Page, ...]:
    """A model's Markdown as messages; none when it says nothing. Raises nothing."""
    return packed(pieces(visible_passage(text, LONGEST_ANSWER)))


def packed(parts: Iterable[Piece], longest: int = LONGEST_MESSAGE) -> tuple[Page, ...]:
    """Pieces on pages, each as full as it may be."""
    made: list[Page] = []
    texts: list[str] = []
    room, citations = longest, Citations()

    def turn() -> None:
        nonlocal texts, room, citations
        if texts:
            made.append(Page("".join(texts), citations))
        texts, room, citations = [], longest, Citations()

    for piece in parts:
        if len(piece.plain) > longest:
            turn()
            made += packed(piece.torn(min(longest, _LONGEST_PART)), longest)
            continue
        noted = citations.copy()
        written = [piece.gap, piece.written(noted)] if texts else [piece.written(noted)]
        if texts and sum(map(units, written)) > room:
            turn()
            noted = Citations()
            written = [piece.written(noted)]
        needed = sum(map(units, written))
        if needed <= room:
            texts += written
            room, citations = room - needed, noted
        else:
            half = max(len(piece.plain) // 2, _SHORTEST_PART)
            made += packed(piece.torn(min(half, _LONGEST_PART)), longest)
    turn()
    return tuple(page for page in made if page.text)


def units(text: str) -> int:
    """Length of a text as UTF-16, in which Teams counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
