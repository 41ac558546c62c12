"""JSON values: whether they are the same, what else a tool may read them as, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from types import NoneType
from typing import Any


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
        case _:
            return "something that is not JSON"


def texts_of(value: Any) -> Iterable[str]:
    """A value as text, as a tool may read it: a number too, and each item of a list."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool) and abs(item) < _LARGEST:
            yield str(item)


def numbers_of(value: Any) -> Iterable[float]:
    """A value as a number, as a tool may read it: text, a truth value, and each item of a list."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, int | float):
            yield item
        elif isinstance(item, str) and len(item) < _LONGEST_NUMBER:
            try:
                yield float(item.replace(",", "").replace("'", "").replace(" ", ""))
            except ValueError:
                continue


def is_nan(number: float) -> bool:
    """Whether it is not a number; `math.isnan` alone fails at whole numbers beyond the range of a float."""
    return isinstance(number, float) and isnan(number)


def flag_of(value: Any) -> bool | None:
    """A value as true or false, as a tool may read it; `None`: it is neither."""
    [item] = value if isinstance(value, list | tuple) and len(value) == 1 else (value,)
    match item:
        case str():
            word = item.strip().lower()
            return True if word in _TRUE else False if word in _FALSE else None
        case int() | float() if item in (0, 1):
            return bool(item)
        case _:
            return None


_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "on", "1"}), frozenset({"false", "f", "no", "n", "off", "0"})
_LONGEST_NUMBER = 1_000
_SCALARS = (str, int, float, bool, NoneType)
_LARGEST = 10**30


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
