"""JSON values: of which kind they are, whether they are the same, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from types import NoneType
from typing import Any

from policies.spellings import LONGEST, is_plain


class Kind(Enum):
    """The kinds of JSON values. A value is of the kind that it is written as, and of no other."""

    NULL = "null"
    FLAG = "flag"
    NUMBER = "number"
    TEXT = "text"
    LIST = "list"
    MAPPING = "mapping"
    NONE_OF_THEM = "none of them"
    """NaN, infinities, and what is not JSON: nothing is known of them."""


class Blank(Enum):
    """What stands for a value where there is none."""

    UNSET = "unset"
    """Left out, or `null`, where `null` is the tool's own default."""
    MISSING = "missing"
    """What one of several values does not have, such as the address of one of the guests."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One of several values, and nobody knows which."""

    options: tuple[Any, ...]


class Undetermined(dict[str, Any]):
    """A mapping of which only what is in it is known: what it leaves out may have a default that was not found."""


def kind_of(value: Any) -> Kind:
    """The kind that a value is written as."""
    match value:
        case str():
            return Kind.TEXT
        case bool():
            return Kind.FLAG
        case float() if not isfinite(value):
            return Kind.NONE_OF_THEM
        case int() | float():
            return Kind.NUMBER
        case None:
            return Kind.NULL
        case list() | tuple():
            return Kind.LIST
        case Mapping():
            return Kind.MAPPING
        case _:
            return Kind.NONE_OF_THEM


def number_in(text: str) -> int | float | None:
    """The number that a text is, where all tools read the same in it: `-12`, `0.5`, `1200.50`. `None` for all else:
    signs before or after it, separators, exponents, other bases, zeros before it, digits of other scripts, and three
    digits after a point, which may be thousands."""
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def cost_of_reading(values: Iterable[Any], enough: int) -> int:
    """What it costs to compare values with a condition, in about a microsecond: 40 for each, and 2 for each character
    of a text that may be written otherwise. Of texts too long to say, and beyond `enough`, it is not counted on."""
    cost, waiting = 0, list(values)
    while waiting and cost <= enough:
        match waiting.pop():
            case str() as text:
                cost += _EACH if len(text) > LONGEST or is_plain(text) else _EACH + 2 * len(text)
            case Doubt(options=inner) | (list() | tuple() as inner):
                cost += _EACH
                waiting += inner
            case Mapping() as inner:
                cost += _EACH
                waiting += inner.values()
            case _:
                cost += _EACH
    return cost


def flag_in(text: str) -> bool | None:
    """The truth value that a text is for most tools (`yes`, `off`, `0`); `None`: it is none of the usual words."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: `1` and `1.0` are the same, `1` and `true` are not.

    Goes only as deep as `one`, which comes from a policy and is therefore shallow, whatever a model sends as `other`.
    """
    if isinstance(one, _SCALARS):
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        return isinstance(other, _SCALARS) and bool(one == other)
    if isinstance(one, dict) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return False


def shown(value: Any) -> str:
    """A value for an explanation, cut after 60 characters."""
    match value:
        case str():
            return f"“{_cut(value)}”"
        case None | bool():
            return "null" if value is None else str(value).lower()
        case int() if abs(value) > _LARGEST:
            return "a number beyond all measure"
        case int() | float():
            return str(value)
        case list() | tuple():
            return f"a list of {len(value)}"
        case Mapping():
            return f"a mapping of {len(value)}"
        case Blank():
            return "left out"
        case Doubt():
            return " or ".join(map(shown, value.options[:3]))
        case _:
            return "something that is not JSON"


_EACH = 40
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,2})?")
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "on", "1"}), frozenset({"false", "f", "no", "n", "off", "0"})
_SCALARS = (str, int, float, bool, NoneType)
_LARGEST = 10**30


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
