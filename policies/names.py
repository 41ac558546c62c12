"""Names of arguments, as tools may read them: many take `Amount` and `AMOUNT` for `amount` (Go's JSON does)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from policies.spellings import unmarked

LONGEST = 200
"""Characters of a name that are compared."""


def other_spellings(name: str, given: Mapping[str, Any], own: Set[str] = frozenset()) -> bool:
    """Whether a mapping holds the name written otherwise: in other case, with other signs between its words. `own` are
    names that the tool has itself."""
    wanted = folded_name(name)
    return any(other != name and other not in own and folded_name(other) == wanted for other in given)


def folded_name(name: str) -> str:
    """A name in lower case without signs between its words: the same for `calendar_id`, `calendarId`, `Calendar-ID`,
    and for `calendar_id[]`, which many servers take for a list of that name."""
    return unmarked(name[:LONGEST]).casefold().translate(_BETWEEN)


_BETWEEN = dict.fromkeys(map(ord, "_-. \t\r\n\0[]\u200b\u200c\u200d\u2060\ufeff\xad"))
