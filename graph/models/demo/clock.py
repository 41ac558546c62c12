"""Time of day as people write it: `9am`, `at 9:30`, `10-11am`, `noon`, `for 30 minutes`, `an hour later`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time, timedelta

_MERIDIEM = r"(?:\s?(?P<{0}m>[ap])\.?m\b\.?)"
_POINT = r"(?P<{0}h>\d{{1,2}})(?:[:.](?P<{0}min>\d\d))?" + _MERIDIEM + "?"

_RANGE = re.compile(
    r"\b(?:from |between |at )?"
    + _POINT.format("a")
    + r"\s*(?:-|–|to|until|till|and)\s*(?:at )?"
    + _POINT.format("b")
    + r"(?![\w:-])",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:\b(?:at|from|@)\s+|@)?\b(?P<h>\d{1,2})(?:(?:[:.](?P<min>\d\d))?\s?(?P<m>[ap])\.?m\b\.?|:(?P<min24>\d\d)(?::\d\d)?)(?![\w:])",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"(?:\bat|@|\bfrom)\s*(?P<h>\d{1,2})(?:\s?o['’]?clock)?(?=$|[\s,.;!?)])(?!\s*(?:%|people|min|hour|day|week|[./:]\d))",
    re.IGNORECASE,
)
_WORD = re.compile(r"\b(?:at )?(?P<word>noon|midday|midnight)\b", re.IGNORECASE)
_LENGTH = re.compile(
    r"\b(?:for )?(?P<n>\d{1,3}|an?|half an|one|two|three)[ -](?P<unit>minutes?|mins?|hours?|hrs?)\b"
    r"(?! (?:later|earlier|before|after|ago))",
    re.IGNORECASE,
)
_END = re.compile(
    r"\b(?:until|till|end(?:s|ing)? at|to end at)\s+"
    r"(?P<h>\d{1,2})(?:[:.](?P<min>\d\d))?(?:\s?(?P<m>[ap])\.?m\b\.?)?(?![\w:])",
    re.IGNORECASE,
)
_SHIFT = re.compile(
    r"\b(?:by )?(?P<n>\d{1,3}|an?|half an|one|two|three) (?P<unit>minutes?|mins?|hours?|hrs?|days?|weeks?) "
    r"(?P<way>later|earlier)\b",
    re.IGNORECASE,
)
_NUMBERS = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "half an": 0.5}
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}

AFTERNOON_UP_TO = 6
"""`at 3` without am or pm means 15:00: hours from 1 to this are taken as the afternoon. Our own choice."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day and, when it was said, how it ends."""

    at: time | None = None
    until: time | None = None
    length: timedelta | None = None


def read_clock(text: str) -> tuple[Clock, str]:
    """The time of day in a text, and the text without it. What is not a time (`25:00`, `13pm`) stays in the text."""
    length, text = _read_length(text)
    if (match := _RANGE.search(text)) and (span := _range(match)):
        return Clock(*span, length), without(match, text)
    until, text = _read_end(text)
    for pattern in (_CLOCK, _WORD, _BARE):
        for match in pattern.finditer(text):
            if (at := _point(match)) is not None:
                return Clock(at, until, length), without(match, text)
    return Clock(None, until, length), text


def read_shift(text: str) -> timedelta:
    """How far a text like `half an hour later` moves something; zero when it does not."""
    match = _SHIFT.search(text)
    if match is None:
        return timedelta()
    amount = _amount(match)
    return amount if match["way"].lower() == "later" else -amount


def without(match: re.Match[str], text: str) -> str:
    """The text with the match cut out of it."""
    return f"{text[: match.start()]} {text[match.end() :]}"


def _read_length(text: str) -> tuple[timedelta | None, str]:
    match = _LENGTH.search(text)
    if match is None or not (amount := _amount(match)):
        return None, text
    return amount, without(match, text)


def _read_end(text: str) -> tuple[time | None, str]:
    match = _END.search(text)
    if match is None or (until := _hour(match["h"], match["min"], match["m"])) is None:
        return None, text
    return until, without(match, text)


def _amount(match: re.Match[str]) -> timedelta:
    number = match["n"].lower()
    return timedelta(seconds=(_NUMBERS.get(number) or float(number)) * _UNITS[match["unit"][0].lower()])


def _point(match: re.Match[str]) -> time | None:
    parts = match.groupdict()
    if word := parts.get("word"):
        return time(0) if word.lower() == "midnight" else time(12)
    return _hour(parts["h"], parts.get("min") or parts.get("min24"), parts.get("m"))


def _hour(hour: str, minute: str | None, meridiem: str | None) -> time | None:
    hours, minutes = int(hour), int(minute or 0)
    if meridiem is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if meridiem.lower() == "p" else 0)
    elif minute is None and 1 <= hours <= AFTERNOON_UP_TO:
        hours += 12
    return time(hours, minutes) if hours < 24 and minutes < 60 else None


def _range(match: re.Match[str]) -> tuple[time, time] | None:
    said = match.groupdict()
    if not (
        said["am"] or said["bm"] or (said["amin"] and said["bmin"]) or match[0].lower().startswith(("from ", "betw"))
    ):
        return None
    end = _hour(said["bh"], said["bmin"], said["bm"])
    start = _hour(said["ah"], said["amin"], said["am"] or said["bm"])
    if start and end and not said["am"] and start > end:  # 11-1pm begins in the morning
        start = _hour(said["ah"], said["amin"], "a")
    return (start, end) if start is not None and end is not None and start < end else None
