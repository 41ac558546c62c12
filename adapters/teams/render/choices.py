"""What can be chosen in a menu or a list, and what was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from adapters.teams.render.elements import Element
from adapters.teams.render.text import label, loses_characters

_MOST_OPTIONS = 100
"""Options of a menu; people type to find one among more."""
_OPTION = 120
_LONGEST_OPTION = 1_000
"""Characters of an option; longer ones are typed."""


def offered_in(options: Sequence[str]) -> list[Element]:
    """Choices that stand for themselves; none where they would not come back as they are, or are too many."""
    each_once = list(dict.fromkeys(options))
    if len(each_once) > _MOST_OPTIONS or any(len(option) > _LONGEST_OPTION for option in each_once):
        return []
    odd = any(not option.strip() or option != option.strip() or loses_characters(option) for option in each_once)
    if odd:
        return []
    return [{"title": title, "value": option} for title, option in zip(_titles(each_once), each_once, strict=True)]


def listed(value: Any) -> list[str] | None:
    """A list of texts, as it is or as JSON, empty for nothing; `None`: it is none."""
    try:
        found = json.loads(value) if isinstance(value, str) and value else value
    except (ValueError, RecursionError):
        return None
    if found is None or found == "":
        return []
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def _titles(options: Sequence[str]) -> list[str]:
    """What is shown for each option, numbered where two would read alike."""
    shown = [label(option, _OPTION) for option in options]
    if len(set(shown)) == len(shown):
        return shown
    return [label(f"{number}. {text}", _OPTION) for number, text in enumerate(shown, 1)]
