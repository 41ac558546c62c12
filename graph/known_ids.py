"""What the ids among a call's arguments stand for, as results of the same turn say. Nothing here raises.

A result is a tool's word, so only results of the server that is called count: an id is that server's own, and no other
server may say what it stands for. Where a result can be read in more than one way, nothing is known.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from graph.presentation import LONGEST_KNOWN, KnownId

MOST_IDS = 10
"""Ids of one call that are looked for. Our own choice."""
LOOKED_THROUGH = 200_000
"""Characters of results that are read as JSON for one call, the newest first; it takes some 10 ms."""
_SMALL = 20_000
"""Characters of results that are looked through in the event loop, some 2 ms."""
MOST_VALUES = 20_000
"""Objects, lists and values of one result that are looked at."""
_MOST_DOCUMENTS = 1_000
"""JSON objects and lists that one result consists of; servers write one for each entry of a list."""
_DEEPEST = 8
_LONGEST_ID = 200
TITLES = ("title", "name", "subject", "summary", "displayName", "display_name", "headline")
"""The best first."""
TIMES = ("start", "starts_at", "start_time", "startTime", "when", "due", "due_date", "date", "time", "at")
"""The best first."""
_OWN_IDS = ("id", "uuid")
_ID_NAME = re.compile(r"(?:.*_)?(?:id|uuid)|.*[a-z0-9](?:Id|ID|Uuid)")
_UNMISTAKABLE = re.compile(r"(?=.*[0-9])[^\s]{12,200}")
"""An id that hardly two things have."""
_HEADING = re.compile(r"\s*[^\s\[{][^\n]*\n")
_BLANKS = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


def is_id_name(name: str) -> bool:
    """Returns whether something of this name is an id: `id`, `event_id`, `eventId`."""
    return bool(_ID_NAME.fullmatch(name))


def ids_in(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Returns argument → id, as text, of the arguments that are ids: by their name, their schema (`format: uuid`), or
    because hardly anything else looks so.

    Args:
        schema: of the tool's arguments, where it is known.
    """
    properties = schema.get("properties") if schema else None
    formats = properties if isinstance(properties, Mapping) else {}
    found: dict[str, str] = {}
    for name, value in islice(arguments.items(), 100):
        written = _as_id(value)
        about = formats.get(name)
        is_uuid = isinstance(about, Mapping) and about.get("format") == "uuid"
        if written and (is_uuid or is_id_name(name) or (isinstance(value, str) and _UNMISTAKABLE.fullmatch(value))):
            found[name] = written
    return dict(islice(found.items(), MOST_IDS))


def known_in_turn(server: str, arguments: Mapping[str, Any], messages: Sequence[AnyMessage]) -> list[KnownId]:
    """Returns what the results among the messages of a turn say of the ids of a call; the newest result counts, and
    nothing of an id to which two of them give another title, or that stands in one which is too much to read: one may
    hold what a stranger wrote. The `source` of each is the name by which the model calls the tool.

    Args:
        server: the name of the server that is called.
    """
    wanted = ids_in(arguments)
    known: dict[str, KnownId] = {}
    titles: dict[str, set[str]] = {}
    doubtful: set[str] = set()
    space_left = LOOKED_THROUGH
    for message in reversed(messages):
        if not isinstance(message, ToolMessage) or message.status != "success":
            continue
        name, text = message.name or "", message.text
        named = [argument for argument, value in wanted.items() if value in text]
        if not name.startswith(f"{server}__") or not named:
            continue
        space_left -= len(text)
        if space_left < 0:
            doubtful.update(named)  # it may say something else of them
            continue
        owner = message.additional_kwargs.get("owner")
        for argument, said in _said_in(wanted, documents_in(text)).items():
            titles.setdefault(argument, set()).update(title for title, _ in said)
            if len(said) > 1:
                doubtful.add(argument)
            elif argument not in known:
                ((title, at),) = said
                known[argument] = known_id(argument, wanted[argument], title, at, source=name, owner=owner)
    return [each for name, each in known.items() if name not in doubtful and len(titles[name]) == 1]


async def looked_through(server: str, arguments: Mapping[str, Any], messages: Sequence[AnyMessage]) -> list[KnownId]:
    """Returns `known_in_turn`; made in a thread where that may take long."""
    if not ids_in(arguments):
        return []
    size = sum(len(message.text) for message in messages if isinstance(message, ToolMessage))
    if size <= _SMALL:
        return known_in_turn(server, arguments, messages)
    return await asyncio.to_thread(known_in_turn, server, arguments, messages)


def known_id(
    argument: str, value: str, title: str, at: str, *, source: str, owner: str | None, looked_up: bool = False
) -> KnownId:
    """Returns it with its title cut to what is kept."""
    return KnownId(
        argument=argument,
        value=value,
        title=title[:LONGEST_KNOWN],
        hidden=max(0, len(title) - LONGEST_KNOWN),
        at=at,
        source=source,
        looked_up=looked_up,
        owner=owner,
    )


def documents_in(text: str) -> list[Any]:
    """Returns the JSON objects and lists that a result consists of, below one line of words at most. A result with more
    words around has none: they may be a stranger's, and what looks like JSON there as well."""
    heading = _HEADING.match(text)
    at = _after_blanks(text, heading.end() if heading else 0)
    found: list[Any] = []
    while at < len(text):
        if text[at] not in "[{" or len(found) == _MOST_DOCUMENTS:
            return []
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        found.append(value)
        at = _after_blanks(text, at)
    return found


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def described(wanted: Mapping[str, str], documents: Iterable[Any]) -> dict[str, tuple[str, str]]:
    """Returns argument → title and time of what stands under its id in these; nothing of an id under which different
    things stand. An id that is no text is compared as it is written.

    Args:
        wanted: argument → id.
    """
    return {argument: next(iter(said)) for argument, said in _said_in(wanted, documents).items() if len(said) == 1}


def _said_in(wanted: Mapping[str, str], documents: Iterable[Any]) -> dict[str, set[tuple[str, str]]]:
    """Argument → every title and time of what stands under its id in these."""
    found: dict[str, set[tuple[str, str]]] = {}
    for container, thing in islice(_objects(documents), MOST_VALUES):
        title = _title_of(thing)
        if not title:
            continue
        for key, value in _own_ids(thing):
            for argument, wanted_id in wanted.items():
                if value == wanted_id and _is_of_kind(argument, wanted_id, key, container):
                    found.setdefault(argument, set()).add((title, _time_of(thing)))
    return found


def title_and_time(document: Any) -> tuple[str, str] | None:
    """Returns title and time of the one thing that an answer is about: the object itself, or the only one in it;
    `None`: it says neither, or that there was a mistake, of which the name is nobody's title."""
    thing = document
    for _ in range(2):
        if not isinstance(thing, Mapping) or _is_mistake(thing):
            return None
        if title := _title_of(thing):
            return title, _time_of(thing)
        inner = list(islice(thing.values(), 2))
        thing = inner[0] if len(inner) == 1 else None
    return None


def _is_mistake(thing: Mapping[str, Any]) -> bool:
    """Whether an object says that something went wrong, by the names that are usual for it, or as RFC 9457 has it."""
    if any(thing.get(key) for key in ("error", "errors")) or any(thing.get(key) is False for key in ("ok", "success")):
        return True
    codes = (thing.get(key) for key in ("status", "statusCode", "status_code", "code"))
    return any(isinstance(code, int) and 400 <= code < 600 for code in codes)


def _objects(documents: Iterable[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object, with the name under which it, or the list that it is in, stands."""
    left: list[tuple[str, Any, int]] = [("", document, 0) for document in documents]
    left.reverse()
    looked_at = 0
    while left and looked_at < MOST_VALUES:
        looked_at += 1
        name, value, depth = left.pop()
        if isinstance(value, Mapping):
            yield name, value
            inner = [(key, item) for key, item in value.items() if isinstance(item, Mapping | list)]
        elif isinstance(value, list):
            inner = [(name, item) for item in islice(value, MOST_VALUES)]
        else:
            continue
        if depth < _DEEPEST:
            left.extend((key, item, depth + 1) for key, item in reversed(inner))


def _own_ids(thing: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The id of the thing itself: other ids beside it lead to other things."""
    own = [key for key in _OWN_IDS if key in thing] or [key for key in thing if is_id_name(key)]
    if len(own) == 1 and (value := _as_id(thing[own[0]])):
        yield own[0], value


def _is_of_kind(argument: str, value: str, key: str, container: str) -> bool:
    """Whether an id that is found under `key` is one of the argument's kind: `1` may be that of an event, and of a
    calendar."""
    if _UNMISTAKABLE.fullmatch(value) or (key == argument and key not in _OWN_IDS):
        return True
    kind = re.sub(r"_?(?:id|uuid)$", "", argument, flags=re.IGNORECASE).lower()
    return bool(kind) and container.lower() in (kind, f"{kind}s", f"{kind}es")


def _as_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else ""
    return value if 0 < len(value) <= _LONGEST_ID and not any(c.isspace() for c in value) else ""


def _title_of(thing: Mapping[str, Any]) -> str:
    texts = (thing.get(key) for key in TITLES)
    return next((" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip()), "")


def _time_of(thing: Mapping[str, Any]) -> str:
    for key in TIMES:
        value = thing.get(key)
        if isinstance(value, Mapping):  # as Google's calendar has it
            value = value.get("dateTime") or value.get("date")
        if isinstance(value, str) and len(value) <= len("2026-11-22T09:00:00.000000+01:00") and _is_time(value):
            return value
    return ""


def _is_time(text: str) -> bool:
    try:
        (datetime.fromisoformat if len(text) > len("2026-11-22") else date.fromisoformat)(text)
    except ValueError:
        return False
    return True
