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

    Raises `Unreadable`: not JSON, not an object, a key twice, or what `check_value` refuses.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the arguments were longer than {MAX_CHARACTERS:,} characters")
    try:
        # Not strict: models put plain line breaks into strings, which have one meaning only.
        value = json.loads(text, strict=False, object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable(f"the arguments were not valid JSON, or nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise Unreadable(f"the arguments were not valid JSON{where}") from None
    if not isinstance(value, dict):
        raise Unreadable("the arguments were not a JSON object")
    check_value(value)
    return value


def check_value(value: Any) -> None:
    """Whether a parsed JSON value reaches every tool server as it is shown.

    Raises `Unreadable`: a number that JSON cannot carry or that not every parser reads alike, nesting deeper than
    `MAX_DEPTH`, or more than `MAX_VALUES` values.
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
                    raise Unreadable("the arguments held a number that JSON cannot carry (infinite, or not a number)")
                case int() if abs(item) > MAX_INTEGER:
                    raise _too_large()
        seen += len(inner)
        if seen > MAX_VALUES:
            raise Unreadable(f"the arguments held more than {MAX_VALUES:,} values")
        if not inner:
            return
        level = inner
    raise _too_deep()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    # Keys that differ in NUL characters alone become one when they are kept.
    if len(value) != len(pairs) or len({key.replace("\0", "") for key in value}) != len(pairs):
        # Parsers take the first or the last of them; the server may take the other one.
        raise Unreadable("the arguments named something twice in one object")
    return value


def _integer(digits: str) -> int:
    if len(digits) > len(str(MAX_INTEGER)) + 1:  # a sign; Python itself reads no more than 4,300 digits
        raise _too_large()
    return int(digits)


def _constant(name: str) -> Any:
    raise Unreadable(f"the arguments were not valid JSON ({name} is no JSON number)")


def _too_large() -> Unreadable:
    return Unreadable(
        f"the arguments held an integer beyond ±{MAX_INTEGER}, which not every tool server reads as it is written; "
        "pass it as text where the tool takes text"
    )


def _too_deep() -> Unreadable:
    return Unreadable(f"the arguments were nested deeper than {MAX_DEPTH} levels")
