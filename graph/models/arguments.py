"""Arguments of a tool call, from the text that a model wrote.

What is read here is what people approve, what is kept, and what the server receives. So nothing is guessed, and what
could arrive as something else than it looks is refused, with a sentence that the model can act on.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_CHARACTERS = 1_000_000
"""Of the arguments of one answer's calls together. Five hundred pages; a tool that wants more wants a file."""
MAX_DEPTH = 64
"""Levels of nesting. LangGraph's checkpoints take some 250 (`ormsgpack`), and what is kept wraps arguments a few times;
no tool's schema comes near it."""
MAX_VALUES = 10_000
"""Keys and items in all. Cards, policies and masks look at each of them."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads as it stands (RFC 7493, 2.2): a server written in JavaScript takes
9007199254740993 for 9007199254740992, and would act on another record than the one that was approved."""


class Unreadable(ValueError):  # noqa: N818 (what the arguments are)
    """Arguments that cannot be taken; its text says why, for the model and for people."""


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments that a model wrote. An empty text is for the caller to judge: here it is not valid JSON.

    Raises `Unreadable`: not JSON, not an object, or what `parse_strictly` refuses.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the arguments were longer than {MAX_CHARACTERS:,} characters")
    try:
        # Not strict: models put plain line breaks into strings, which have one meaning only.
        value = parse_strictly(text, line_breaks=True)
    except Unreadable as problem:
        raise Unreadable(f"the arguments held {problem}") from None
    except RecursionError:
        raise Unreadable(f"the arguments were not valid JSON, or nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise Unreadable(f"the arguments were not valid JSON{where}") from None
    if not isinstance(value, dict):
        raise Unreadable("the arguments were not a JSON object")
    return value


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

    A number that JSON cannot carry or that not every parser reads alike, nesting deeper than `MAX_DEPTH`, or more than
    `MAX_VALUES` values.
    """
    seen = 0
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            match item:
                case dict():
                    inner.extend(item.values())
                case list() | tuple():
                    inner.extend(item)
                case float() if not math.isfinite(item):
                    return _NO_NUMBER
                case int() if abs(item) > MAX_INTEGER:
                    return _TOO_LARGE
        seen += len(inner)
        if seen > MAX_VALUES:
            return f"more than {MAX_VALUES:,} values"
        if not inner:
            return None
        level = inner
    return f"values nested deeper than {MAX_DEPTH} levels"


_NO_NUMBER = "a number that JSON cannot carry (infinite, or not a number)"
_TOO_LARGE = (
    f"an integer beyond ±{MAX_INTEGER}, which not every tool server reads as it is written; pass it as text where the "
    "tool takes text"
)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    # Keys that differ in NUL characters or halves of characters alone become one when they are kept.
    if len({key.replace("\0", "").encode("utf-8", "replace") for key in value}) != len(pairs):
        # Parsers take the first or the last of them; the server may take the other one.
        raise Unreadable("the same name twice in one object")
    return value


def _integer(digits: str) -> int:
    if len(digits) > len(str(MAX_INTEGER)) + 1:  # a sign; Python itself reads no more than 4,300 digits
        raise Unreadable(_TOO_LARGE)
    return int(digits)


def _constant(_name: str) -> Any:
    raise Unreadable(_NO_NUMBER)
