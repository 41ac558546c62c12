"""Reads JSON from outside without trusting its shape: where something else than expected stands, nothing is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from math import isfinite
from typing import Any


def part(payload: object, *path: str) -> Mapping[str, Any]:
    """Returns the object at the end of a path of keys; an empty one when there is none."""
    for key in path:
        payload = payload.get(key) if isinstance(payload, Mapping) else None
    return payload if isinstance(payload, Mapping) else {}


def parts(payload: object, key: str) -> Iterator[Mapping[str, Any]]:
    """Yields the objects in the list under a key."""
    items = payload.get(key) if isinstance(payload, Mapping) else None
    return (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else iter(())


def words(payload: object, *path: str) -> str:
    """Returns the text at the end of a path of keys; empty when there is none."""
    found = part(payload, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def matching(pattern: re.Pattern[str], payload: object, *path: str) -> str:
    """Returns the text at the end of a path of keys where all of it fits the pattern; else an empty one."""
    found = words(payload, *path)
    return found if pattern.fullmatch(found) else ""


def one_line_up_to(limit: int, payload: object, *path: str) -> str:
    """Returns the text at the end of a path where it is one printable line of at most `limit` characters; else an empty
    one."""
    found = words(payload, *path)
    return found if len(found) <= limit and found.isprintable() else ""


# ------------------- how much a text holds, before it is parsed: that costs by values, not by bytes

MOST_VALUES = 30_000
"""Lists, objects, and elements and members of them, of a body. A megabyte of `[],` takes 0.3 s to read, this many take
some 30 ms; the largest modal of Slack's (250 kB) has fewer than 20,000."""
LONG = 50_000
"""Bytes of a body from which on it is read in a thread."""
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def has_too_many_values(body: bytes, most: int = MOST_VALUES) -> bool:
    """Whether a JSON text has more than `most`. Linear in time, whatever the text is; raises nothing."""
    if _signs(body) <= most:
        return False
    bare, strings = _STRINGS.subn(b"", body, count=2 * most)
    return strings == 2 * most or _signs(bare) > most


def _signs(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{") + text.count(b",")


class MalformedBodyError(Exception):
    """Not what is sent by whom we know. The message says why, and repeats nothing of the body."""


def json_in(body: bytes) -> Any:
    """Returns what a JSON text says. Raises `MalformedBodyError`: it is not UTF-8, is not JSON (as `NaN`), or
    holds more than `MOST_VALUES`."""
    if has_too_many_values(body):
        raise MalformedBodyError("it holds too many values")
    try:
        return json.loads(body.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise MalformedBodyError("the body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise MalformedBodyError("the body is not JSON") from error


def refuse_unsound(value: Any, deepest: int) -> None:
    """Raises `MalformedBodyError` where a JSON value nests deeper than `deepest` levels, or holds a number that is
    infinite. Counts without recursion."""
    level = [value]
    for _ in range(deepest):
        if any(isinstance(item, float) and not isfinite(item) for item in level):
            raise MalformedBodyError("it holds a number that is too large")
        objects = (item.values() for item in level if isinstance(item, dict))
        lists = (item for item in level if isinstance(item, list))
        level = [*chain.from_iterable(objects), *chain.from_iterable(lists)]
        if not level:
            return
    raise MalformedBodyError("the body nests too deeply")


def _no_constant(name: str) -> Any:
    raise ValueError(name)
