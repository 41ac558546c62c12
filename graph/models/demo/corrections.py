"""The reason of a rejection as a correction of what was proposed: `should be 10am`, `tomorrow instead`, `call it X`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from graph.models.demo.clock import read_shift
from graph.models.demo.drafts import clean
from graph.models.demo.phrases import local
from graph.models.demo.times import DEFAULT_LENGTH, When, drop_negated, end_of, moment, read_when, stamp

_TITLE = re.compile(
    r"\b(?:call it|name it|rename (?:it )?to|(?:should|must|has to) be (?:called|named|titled)|"
    r"(?:title|name) (?:should be|is|to))\s*:?\s*(?P<title>.+?)"
    r"(?=$|,|;|\s+and (?:make|move|start|do|put|have)\b)",
    re.IGNORECASE,
)
_BARE_HOUR = re.compile(
    r"\b(?P<lead>should be|make it|rather|be|to) (?P<hour>\d{1,2})(?=\s*(?:$|[.,!]|please\b|instead\b))", re.IGNORECASE
)
_CUE = re.compile(
    r"\b(?:should|instead|make|rather|move|better|change|please|prefer|start|starts|until|later|earlier|but|want|needs?|"
    r"do it)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"^(?:no|nope|sorry|it|is|be|at|on|the|for|in|and|too|late|early|wrong|time|day|date|[\s,.;:!–-])*$", re.IGNORECASE
)


def correct_event(arguments: dict[str, Any], reason: str, now: datetime) -> dict[str, Any] | None:
    """The arguments of an event call as the reason wants them; `None` when it changes nothing."""
    titled, said = _title_in(reason)
    changed = {**arguments, "title": titled} if titled else dict(arguments)
    start, end = local(arguments.get("start"), now), local(arguments.get("end"), now)
    when = _when_in(said, now)
    shift = read_shift(said)
    if start is not None and (when.said or shift):
        length = end - start if end is not None and end > start else DEFAULT_LENGTH
        new_start = moment(when.day or start.date(), when.at or start.timetz().replace(tzinfo=None), now) + shift
        changed |= {"start": stamp(new_start), "end": stamp(_new_end(new_start, when, length, now))}
    return changed if changed != arguments else None


def correct_task(arguments: dict[str, Any], reason: str, now: datetime) -> dict[str, Any] | None:
    """The arguments of an added task as the reason wants them; `None` when it changes nothing."""
    titled, said = _title_in(reason)
    day = _when_in(said, now).day
    changed = {**arguments, **({"title": titled} if titled else {}), **({"due": day.isoformat()} if day else {})}
    return changed if changed != arguments else None


def _title_in(reason: str) -> tuple[str, str]:
    """The title that the reason gives, and the rest of it."""
    match = _TITLE.search(reason)
    if match is None:
        return "", reason
    return clean(match["title"]).strip("\"'“”«»‘’ .!,"), f"{reason[: match.start()]} {reason[match.end() :]}"


def _when_in(reason: str, now: datetime) -> When:
    """The time that the reason asks for; a time that it merely mentions (`Bob is away on Friday`) is not one."""
    wanted = drop_negated(_BARE_HOUR.sub(r"\g<lead> at \g<hour>", reason))
    when, rest = read_when(wanted, now)
    return when if _CUE.search(reason) or _FILLER.match(clean(rest)) else When()


def _new_end(start: datetime, when: When, length: timedelta, now: datetime) -> datetime:
    return end_of(start, when, now) if when.until or when.length else start + length
