"""Several things at once: `create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime

from graph.models.demo.drafts import Draft, read_draft
from graph.models.demo.jobs import CreateEvent, Job
from graph.models.demo.task_requests import add_task
from graph.models.demo.times import When, first_day_for, read_when

_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_HEADER = re.compile(
    r"^(?:create|schedule|add|set up|book|plan|make|put)\s+(?:me\s+)?"
    r"(?:(?P<count>\d{1,2}|two|three|four|five|six|some|these|the following|a few|the)\s+)?(?:new\s+|more\s+)?"
    r"(?P<kind>events|meetings|appointments|tasks|to-?dos)\b"
    r"(?P<shared>[^:]{0,60}?)(?::|\bcalled\b|\bnamed\b|(?<=s)\s)\s*(?P<items>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = re.compile(r"(\s*(?:,\s*and\s+|;\s*|,\s*|\n+)|\s+and\s+)", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def read_item_list(said: str, now: datetime) -> tuple[Job, ...]:
    """The jobs of a message that lists several events or tasks; empty when it is no such message."""
    match = _HEADER.match(said)
    if match is None:
        return ()
    count = _NUMBERS.get((match["count"] or "").lower()) or int(
        match["count"] if (match["count"] or "").isdigit() else 0
    )
    if match["kind"].lower().startswith("t"):
        return tuple(task for item in _tasks(match["items"], count) if (task := add_task(item, now)))
    drafts = [read_draft(item, now) for item in _events(match["items"], count, now)]
    shared = read_when(match["shared"], now)[0]
    return tuple(CreateEvent(draft) for draft in on_common_days(drafts, now, shared=shared))


def _tasks(text: str, count: int) -> list[str]:
    """The items; an "and" separates them, unless the count says that it belongs to a title."""
    by_comma = [_BULLET.sub("", item) for item in re.split(r"\s*[;,\n]\s*", text) if item.strip()]
    return by_comma if count == len(by_comma) else [piece for _, piece in _pieces(text)]


def _events(text: str, count: int, now: datetime) -> list[str]:
    """The items; an "and" before a piece without a time belongs to a title, unless the count says otherwise."""
    pieces = _pieces(text)
    if count == len(pieces) or not any(read_when(piece, now)[0].said for _, piece in pieces):
        return [piece for _, piece in pieces]
    items, open_item = [], ""
    for between, piece in pieces:
        open_item = f"{open_item}{between}{piece}" if open_item else piece
        if read_when(piece, now)[0].said:
            items.append(open_item)
            open_item = ""
    return [*items, open_item] if open_item else items


def _pieces(text: str) -> list[tuple[str, str]]:
    """Each piece with what stands between it and the one before."""
    parts = ["", *_BETWEEN.split(text)]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [(between, _BULLET.sub("", piece)) for between, piece in pairs if piece.strip()]


def on_common_days(drafts: list[Draft], now: datetime, *, shared: When) -> list[Draft]:
    """The drafts with their days: an event without one is on the shared day, or on that of the event before it.

    Where no day is said at all, they are on the first day on which all of their times are still to come.
    """
    day: date | None = shared.day
    times = [draft.when.at for draft in drafts if draft.when.at]
    if day is None and times and not any(draft.when.day for draft in drafts):
        day = first_day_for(times, now)
    dated = []
    for draft in drafts:
        day = draft.when.day or day
        dated.append(replace(draft, when=draft.when.filled_from(shared).filled_from(When(day=day))))
    return dated
