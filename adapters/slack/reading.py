"""Reading what Slack sends without trusting its shape: something else than expected reads as if nothing was there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TS = re.compile(r"\d{1,12}\.\d{1,9}")
_TOKEN = re.compile(r"[!-~]{1,300}")


def part(payload: object, *path: str) -> Mapping[str, Any]:
    """The object at the end of a path of keys; empty when there is none."""
    for key in path:
        payload = payload.get(key) if isinstance(payload, Mapping) else None
    return payload if isinstance(payload, Mapping) else {}


def parts(payload: object, key: str) -> Iterator[Mapping[str, Any]]:
    """The objects of the list under a key."""
    items = payload.get(key) if isinstance(payload, Mapping) else None
    return (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else iter(())


def words(payload: object, *path: str) -> str:
    """The text at the end of a path of keys; empty when there is none."""
    found = part(payload, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def slack_id(payload: object, *path: str) -> str:
    """An id of Slack's (`U123`, `C123`, `T123`, `V123`); empty when it is none."""
    return _matching(_ID, words(payload, *path))


def slack_ts(payload: object, *path: str) -> str:
    """A timestamp of Slack's (`1700000000.000100`), which names a message; empty when it is none."""
    return _matching(_TS, words(payload, *path))


def token(payload: object, *path: str) -> str:
    """An opaque word that goes into a key or back to Slack (trigger, hash); empty when it is none."""
    return _matching(_TOKEN, words(payload, *path))


def our_id(payload: object, *path: str) -> str:
    """An id of ours that comes back on a button: as long as one may be, and in one line; empty when it is none."""
    found = words(payload, *path)
    return found if len(found) <= 500 and found.isprintable() else ""


def _matching(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""
