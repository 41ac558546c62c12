"""Reading what Teams sends without trusting its shape: something else than expected reads as if nothing was there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TOKEN = re.compile(r"[!-~]{1,500}")
"""Conversation ids (`19:…@thread.tacv2;messageid=…`, `a:1…`), activity ids (`1700000000000`, `f:…`), addresses
(`29:…`): opaque, without spaces."""
_PART_OF_A_KEY = re.compile(r"[0-9A-Za-z_.-]{1,100}")
"""Ids of tenants and people are GUIDs; those of local clients are less strict. No colon: it divides our own ids."""


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


def token(payload: object, *path: str) -> str:
    """An opaque word of Teams' (conversation, activity, address); empty when it is none."""
    return _matching(_TOKEN, words(payload, *path))


def guid(payload: object, *path: str) -> str:
    """Id of a tenant or of a person, in small letters; empty when it is none."""
    return _matching(_PART_OF_A_KEY, words(payload, *path)).lower()


def our_id(payload: object, *path: str) -> str:
    """An id of ours that comes back on a button: as long as one may be, and in one line; empty when it is none."""
    found = words(payload, *path)
    return found if len(found) <= 8_000 and found.isprintable() else ""


def web_address(payload: object, *path: str) -> str:
    """A web address; empty when it is none."""
    found = token(payload, *path)
    return found if found.startswith(("https://", "http://")) else ""


def _matching(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""
