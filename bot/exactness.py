"""What of a call a card does not show letter by letter, and how it says so: what is left out is counted, and a short
keyed fingerprint of the call tells it from every other.

Values are shown so that no two of them read alike (`bot.safe_text.argument_lines`). What eyes cannot tell apart even so
(blanks at an end, tabs, letters that look like others, text from right to left) is not exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.lookalikes import reads_one_way
from bot.vocabulary import ApprovalView, GrantView, Hidden, OutcomeView

_EXACT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
_EXACT_TOOL = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")
_UNCLEAR = re.compile(r"\A\s|\s\Z|[^\S\n]{2}|[^\S\n ]|[^\S\n]\n|\n[^\S\n]|\n{3}|\{\{|&#?[A-Za-z0-9]+;")
"""Blanks that are not seen, or not told apart, what Teams may take for a function, and what Slack may take for a
character in another spelling (`&lt;`)."""
_DEEPEST = 70
"""Levels; what is masked for a card has fewer."""
_MOST_FOREIGN = 10_000
"""Characters of texts beyond ASCII that are looked at, some 10 ms; what has more is not on one card anyway."""
_LARGEST = 10**15
"""Of a whole number: beyond it, many readers of JSON round."""


def is_exact(server: str, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether all of a call, its secrets masked, can be told from how it looks. Raises nothing."""
    if not (_EXACT_TOOL.fullmatch(server) and _EXACT_TOOL.fullmatch(tool)):
        return False
    if not all(_EXACT_NAME.fullmatch(name) and _is_clear(value, _DEEPEST) for name, value in arguments.items()):
        return False
    foreign = [text for value in arguments.values() for text in _texts_in(value) if not text.isascii()]
    return sum(map(len, foreign)) <= _MOST_FOREIGN and all(map(reads_one_way, foreign))


def unseen_in_words(view: ApprovalView | OutcomeView | GrantView, left_out: str, advice: str = "") -> str:
    """What of a call a card does not show letter by letter, as sentences; empty when it shows all of it.

    `left_out`: what is not on the card for want of room, in words; `advice`: a sentence on where all of that is.
    """
    edited = isinstance(view, ApprovalView) and view.asked_arguments is not None
    if not left_out and not view.masks and view.exact and not edited:
        return ""
    parts = [f"Not whole here: {left_out}."] if left_out else []
    if left_out and advice:
        parts.append(advice)
    if view.masks:
        parts.append("1 part is masked." if view.masks == 1 else f"{view.masks:,} parts are masked.")
    if not view.exact and not parts:
        parts.append("Some of it cannot be told by eye.")
    return " ".join([*parts, fingerprint_in_words(view)]).strip()


def fingerprint_in_words(view: ApprovalView | OutcomeView | GrantView | Hidden) -> str:
    """The call's fingerprint as a sentence."""
    return f"Fingerprint of this call: {view.fingerprint}." if view.fingerprint else ""


def _texts_in(value: Any) -> Iterator[str]:
    """All texts, names included, of a value that is not too deep."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in value.items():
                yield str(name)
                yield from _texts_in(item)
        case list() | tuple():
            for item in value:
                yield from _texts_in(item)


def _is_clear(value: Any, levels: int) -> bool:
    match value:
        case str():
            return not _UNCLEAR.search(value)
        case None | bool():
            return True
        case int():
            return abs(value) <= _LARGEST
        case float():
            return True
        case Mapping():
            return levels > 0 and all(
                _is_clear(str(name), 0) and _is_clear(item, levels - 1) for name, item in value.items()
            )
        case list() | tuple():
            return levels > 0 and all(_is_clear(item, levels - 1) for item in value)
        case _:
            return False
