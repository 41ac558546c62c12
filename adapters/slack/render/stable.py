"""How much of a text that is still being written can be shown already (pure)."""

from __future__ import annotations

import re

_PLAIN_LINE = re.compile(r"[^\W\d_][\w ,;.?!'’\"()%€$–—-]*")
"""The beginning of a line that is words and nothing else: what follows cannot make markup of it."""


def stable(text: str) -> str:
    """The beginning of a text whose look cannot change as more is written: its complete lines, and the complete words
    of the last line while that has no markup."""
    lines, newline, last = text.rpartition("\n")
    if not _PLAIN_LINE.fullmatch(last):
        return lines + newline
    words, _, _ = last.rpartition(" ")
    return lines + newline + words


def cut_at_line(text: str, limit: int) -> str:
    """At most `limit` characters of a text, whole lines only."""
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit) + 1]
