"""JSON values as every tool server and database reads them: parsed strictly, measured, and made storable."""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST = 64
"""Levels of nesting. LangGraph's checkpoints take some 250 (`ormsgpack`), and what is kept wraps arguments a few times;
no tool's schema comes near it."""
MOST_VALUES = 10_000
"""Keys and items in all. Cards, policies and masks look at each of them."""
LARGEST_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads as it stands (RFC 7493, 2.2): a server written in JavaScript takes
9007199254740993 for 9007199254740992, and would act on another record than the one that was approved."""
LARGEST_KEPT = 2**63 - 1
"""The largest integer that checkpoints take, whatever its sign (`ormsgpack`)."""
_NO_NUMBER = "a number that JSON cannot carry (infinite, or not a number)"
_TOO_LARGE = (
    f"an integer beyond ±{LARGEST_INTEGER}, which not every tool server reads as it is written; pass it as text where "
    "the tool takes text"
)
_NOT_KEPT = f"an integer beyond ±{LARGEST_KEPT}"
_NO_NAME = "a name with half of a character"


class Unreadable(ValueError):  # noqa: N818 (what the arguments are)
    """Arguments that cannot be taken; its text says why, for the model and for people."""


def parse_strictly(text: str, *, line_breaks: bool = False) -> Any:
    """The value of a JSON text that every tool server reads alike. `line_breaks`: also as they are within strings.

    Raises `Unreadable`, whose text names what it holds, for a key that stands twice in an object and for what
    `trouble_with` finds; `ValueError` or `RecursionError` for what is not JSON.
    """
    value = json.loads(
        text, strict=not line_breaks, object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant
    )
    if trouble := trouble_with(value):
        raise Unreadable(trouble)
    return value


def trouble_with(value: Any) -> str | None:
    """What in a JSON value not every tool server would receive as it is shown, to follow "it held"; `None`: nothing.

    A number that JSON cannot carry or that not every parser reads alike, nesting deeper than `DEEPEST`, or more than
    `MOST_VALUES` values.
    """
    return _trouble_with(value, LARGEST_INTEGER, _TOO_LARGE)


def not_kept(value: Any, *, most: int = MOST_VALUES) -> str | None:
    """What keeps a JSON value that is passed on to nobody out of a checkpoint, to follow "it held"; `None`: nothing.

    As `trouble_with`, but its integers may have 64 bits: schemas bound a number by what their language's type holds.
    And no key may hold half of a surrogate pair; of other texts it becomes a question mark. `most`:
    how many values it may have.
    """
    return _trouble_with(value, LARGEST_KEPT, _NOT_KEPT, most) or (_NO_NAME if _has_broken_name(value) else None)


def _has_broken_name(value: Any) -> bool:
    match value:
        case dict():
            return any(not _encodes(key) or _has_broken_name(item) for key, item in value.items())
        case list() | tuple():
            return any(map(_has_broken_name, value))
        case _:
            return False


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _trouble_with(value: Any, largest: int, too_large: str, most: int = MOST_VALUES) -> str | None:
    seen = 0
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for item in level:
            match item:
                case dict():
                    inner.extend(item.values())
                case list() | tuple():
                    inner.extend(item)
                case float() if not math.isfinite(item):
                    return _NO_NUMBER
                case int() if abs(item) > largest:
                    return too_large
        seen += len(inner)
        if seen > most:
            return f"more than {most:,} values"
        if not inner:
            return None
        level = inner
    return f"values nested deeper than {DEEPEST} levels"


def values_in(value: Any) -> int:
    """How many keys and items a JSON value has, however deep. Raises nothing."""
    found, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list | tuple):
            found += len(each)
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return found


def storable(value: Any) -> Any:
    """A JSON value without what no database keeps: NUL characters, and halves of surrogate pairs."""
    match value:
        case str():
            return value.replace("\0", "").encode("utf-8", "replace").decode()
        case list():
            return [storable(item) for item in value]
        case dict():
            return {storable(key): storable(item) for key, item in value.items()}
        case _:
            return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    # Keys that differ in NUL characters or halves of characters alone become one when they are kept.
    if len({key.replace("\0", "").encode("utf-8", "replace") for key in value}) != len(pairs):
        # Parsers take the first or the last of them; the server may take the other one.
        raise Unreadable("the same name twice in one object")
    return value


def _integer(digits: str) -> int:
    if len(digits) > len(str(LARGEST_INTEGER)) + 1:  # a sign; Python itself reads no more than 4,300 digits
        raise Unreadable(_TOO_LARGE)
    return int(digits)


def _constant(_name: str) -> Any:
    raise Unreadable(_NO_NUMBER)
