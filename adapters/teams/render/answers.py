"""An answer as messages: as few as Teams' limit allows, with what Teams shows beside a model's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from adapters.shared.markdown import AFFORDABLE, affordable
from adapters.teams.render.citations import Citations
from adapters.teams.render.markdown import AnswerPart, pieces, tokens_of
from bot.safe_text import visible, visible_passage

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


def packed(parts: Iterable[AnswerPart], longest: int = LONGEST_MESSAGE) -> tuple[Page, ...]:
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


# ------------------------------------------------------------------- text that is still being written
# Teams wants every frame of a stream, and the final message, to begin with all that was shown before.

LONGEST_STREAM = 8_000
"""UTF-16 units that are streamed; what comes after them waits for the final message, whose first part holds 12,000."""
_LONGEST_SOURCE = 16_000
_PLAIN_WORDS = re.compile(r"[^\W\d_][\w ,;.?'’\"()€$%–—-]*")
"""The beginning of a paragraph that is words and nothing else: what follows cannot make markup of it."""
_CONTAINERS = ("bullet_list_open", "ordered_list_open")


def streamable(text: str) -> str:
    """The beginning of an answer whose look cannot change any more. Raises nothing.

    When `text` grows, what this gives grows too: it always begins with what it gave before, and the first message of
    the whole answer begins with it, whenever that holds more than this.
    """
    shown = visible(text[:_LONGEST_SOURCE])
    shown = shown[: affordable(shown, AFFORDABLE / 2)]
    lines = shown.split("\n")
    begun = _begun_at(tokens_of(shown), len(lines) - 1)
    tail = _plain_words("\n".join(lines[begun:]).lstrip())
    settled = "\n".join(lines[:begun])
    made = packed([*pieces(settled), *pieces(tail)], LONGEST_STREAM)
    return made[0].text if made else ""


def _begun_at(tokens: Sequence[Token], complete: int) -> int:
    """The line at which the part begins that may still change; `complete`: how many lines have their end."""
    blocks = [token for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    if not blocks:
        return complete
    last = blocks[-1]
    start, end = last.map or [0, 0]
    if last.type in _CONTAINERS:
        items = [token for token in tokens if token.type == "list_item_open" and token.level == 1 and token.map]
        return max((item.map[0] for item in items if item.map and item.map[0] >= start), default=start)
    if last.type in ("heading_open", "hr"):
        return end if end <= complete else start
    if last.type == "code_block":
        return start
    # A paragraph, a quotation or a table goes on until a blank line, a fence until its own end.
    return end if end < complete else start


def _plain_words(text: str) -> str:
    """The complete words that a paragraph begins with, before anything that might be markup."""
    found = _PLAIN_WORDS.match(text)
    return found[0].rpartition(" ")[0].rstrip() if found else ""
