"""As much of an answer that is still being written as can be shown already, in the words of the message it becomes.

Teams wants every frame of a stream, and the final message, to begin with all that was shown before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from adapters.shared.markdown_cost import AFFORDABLE, affordable
from adapters.teams.render.answers import packed
from adapters.teams.render.markdown import pieces, tokens_of
from bot.safe_text import visible

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
