"""Bodies of requests: decoded, and checked as far as everything else takes it for granted. Pure."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from adapters.shared.json_bodies import has_too_many_values
from graph.calls import storable

MAX_DEPTH = 64
"""How deep an activity may nest. Teams' own stay below 20."""


class MalformedError(Exception):
    """Not what Teams sends. The message says why, and repeats nothing of the body."""


def decode(raw: bytes) -> dict[str, Any]:
    """The activity, without what no database keeps (NUL, halves of surrogate pairs). Raises `MalformedError`."""
    if has_too_many_values(raw):
        raise MalformedError("it holds too many values")
    try:
        activity = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise MalformedError("the body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise MalformedError("the body is not JSON") from error
    if not isinstance(activity, dict):
        raise MalformedError("the body is not an object")
    _refuse_depth(activity)
    sound: dict[str, Any] = storable(activity)
    if not isinstance(sound.get("type"), str) or not sound["type"]:
        raise MalformedError("the activity has no type")
    return sound


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _refuse_depth(value: Any) -> None:
    """Counted without recursion; numbers without bounds are refused on the way."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise MalformedError("the body nests too deeply")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, float) and not isfinite(item):
                raise MalformedError("it holds a number that is too large")
        level = inner
