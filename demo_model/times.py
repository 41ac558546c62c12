"""Reads and tells times in plain English: `tomorrow at 9am`, `Friday from 2 to 4`, `in half an hour`, `25 November`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

USUAL_LENGTH = timedelta(minutes=60)
AFTERNOON_UP_TO = 6
"""`at 3` without am or pm means 15:00: hours from 1 to this are taken as the afternoon. Our own choice."""

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY = "mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    "aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NEAR = {"day after tomorrow": 2, "tomorrow": 1, "tmrw": 1, "today": 0, "tonight": 0, "yesterday": -1}
_NUMBERS = {"half an": 0.5, "an": 1.0, "a": 1.0, "one": 1.0, "two": 2.0, "three": 3.0}
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_WORDS = {"noon": time(12), "midday": time(12), "midnight": time(0)}
_POINT = rf"(?:\d{{1,2}}(?:[:.]\d\d(?::\d\d)?)?(?:\s?[ap]\.?m\b\.?)?|{'|'.join(_WORDS)})"

_NOW_LINE = re.compile(r"^Now: (?P<moment>\S+)(?: \((?P<zone>[A-Za-z0-9_+/-]+)\))?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class When:
    """What a text says of a time; what it does not say is `None`.

    Attributes:
        end: When it ends, or how long it takes.
        shift: How much later it is to be than it was.
    """

    day: date | None = None
    at: time | None = None
    end: time | timedelta | None = None
    shift: timedelta = timedelta()

    def filled_from(self, other: When) -> When:
        """This, with what it lacks taken from another."""
        return When(self.day or other.day, self.at or other.at, self.end or other.end, self.shift or other.shift)


UNSAID = When()


def read_when(text: str, now: datetime, *, only_day: bool = False) -> tuple[When, str]:
    """What a text says of a time, and the text without it. What is no time (`25:00`, `31 February`) stays in it."""
    found = UNSAID
    for pattern, meaning in _GRAMMAR[:1] if only_day else _GRAMMAR:
        for match in re.finditer(pattern, text):
            try:
                more = found.filled_from(meaning(match, now))
            except (ValueError, OverflowError):  # there is no such day, or no such hour
                continue
            if more != found:
                found, text = more, f"{text[: match.start()]} {text[match.end() :]}"
                break
    return found, text


def read_present(system_prompt: str) -> datetime:
    """The present from the line `Now: 2026-11-21T09:00:00+01:00 (Europe/Berlin)`; without it, the clock in UTC."""
    match = _NOW_LINE.search(system_prompt)
    try:
        now = datetime.fromisoformat(match["moment"]) if match else None
    except ValueError:
        now = None
    if match is None or now is None or (offset := now.utcoffset()) is None:
        return datetime.now(UTC)
    try:
        zone: tzinfo = ZoneInfo(match["zone"] or "")
    except (ValueError, OSError, KeyError):  # unknown here: the offset of the present has to do
        zone = timezone(offset)
    return now.replace(tzinfo=timezone(offset)).astimezone(zone)


def moment(day: date, at: time, now: datetime) -> datetime:
    """That time of that day, where the present is; an hour that a clock change leaves out moves with the clock."""
    return datetime.combine(day, at, now.tzinfo).astimezone(UTC).astimezone(now.tzinfo)


def span(day: date, at: time, when: When, now: datetime, usual: timedelta = USUAL_LENGTH) -> dict[str, str]:
    """Start and end, as arguments of a tool, of what begins then and ends as said, or else after the usual time."""
    start = moment(day, at, now) + when.shift
    if isinstance(when.end, time):
        end = moment(start.date(), when.end, now)
        return _stamps(start, end if end > start else end + timedelta(days=1))
    return _stamps(start, start + (when.end or usual))


def span_moved(event: Mapping[str, Any], to: When, now: datetime) -> dict[str, str]:
    """Start and end of an event that is moved, as long as it was unless said otherwise; none if it has no start."""
    start, end = local(event.get("start"), now), local(event.get("end"), now)
    if start is None:
        return {}
    usual = end - start if end is not None and end > start else USUAL_LENGTH
    return span(to.day or start.date(), to.at or start.time(), to, now, usual)


def whole_days(first: date, days: int, now: datetime) -> dict[str, str]:
    """Start and end, as arguments of a tool, of so many days."""
    return _stamps(moment(first, time(0), now), moment(first + timedelta(days=days), time(0), now))


def local(stamp: Any, now: datetime) -> datetime | None:
    """An ISO 8601 date-time where the present is; without an offset it counts as local. `None`: it is none."""
    try:
        at = datetime.fromisoformat(stamp)
        at = at.astimezone(now.tzinfo) if at.tzinfo else at.replace(tzinfo=now.tzinfo)
    except (TypeError, ValueError, OverflowError):
        return None
    return at if date.min.year < at.year < date.max.year else None  # days before and after it can be counted


def day_in_words(day: date, today: date) -> str:
    """`today`, `tomorrow`, or `Fri 27 Nov`."""
    return {0: "today", 1: "tomorrow", -1: "yesterday"}.get((day - today).days) or _short_day(day)


def in_words(at: datetime) -> str:
    """`Sun 22 Nov, 9:00`, as cards write it."""
    return f"{_short_day(at)}, {clock_in_words(at)}"


def clock_in_words(at: datetime | time) -> str:
    """`9:00`."""
    return f"{at.hour}:{at.minute:02}"


def span_in_words(event: Mapping[str, Any], now: datetime) -> str:
    """`Sun 22 Nov, 9:00–10:00`; empty when the event has no readable start."""
    start, end = local(event.get("start"), now), local(event.get("end"), now)
    if start is None:
        return ""
    if end is None or end.date() != start.date():
        return in_words(start) + (f" to {in_words(end)}" if end else "")
    return f"{in_words(start)}–{clock_in_words(end)}"


def _short_day(day: date) -> str:  # in English, whatever the locale of the process
    return f"{_WEEKDAYS[day.weekday()].capitalize()} {day.day} {_MONTHS[day.month - 1].capitalize()}"


def _stamps(start: datetime, end: datetime) -> dict[str, str]:
    return {"start": start.isoformat(timespec="seconds"), "end": end.isoformat(timespec="seconds")}


def _day(said: re.Match[str], now: datetime) -> When:
    today = now.date()
    if said["iso"]:
        return When(date.fromisoformat(said["iso"]))
    if said["near"]:
        return When(today + timedelta(days=_NEAR[said["near"].casefold()]))
    if said["weekday"]:
        wanted = _WEEKDAYS.index(said["weekday"][:3].casefold())
        if (said["which"] or "").casefold() == "next ":
            return When(today + timedelta(days=7 + wanted - today.weekday()))
        if len(said["weekday"]) > 3 or said["lead"] or said["which"]:  # not the one of `Sun Microsystems`
            return When(today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1))
        return UNSAID
    month = _MONTHS.index((said["month"] or said["us_month"])[:3].casefold()) + 1
    named = date(int(said["year"] or today.year), month, int(said["day"] or said["us_day"]))
    return When(named if said["year"] or named >= today else named.replace(year=today.year + 1))


def _amount(said: re.Match[str], now: datetime) -> When:
    number, unit, way = said["number"].casefold(), said["unit"][0].casefold(), (said["way"] or "").casefold()
    amount = _UNITS[unit] * (_NUMBERS.get(number) or float(number))
    if way:
        return When(shift={"later": amount, "earlier": -amount}.get(way, timedelta()))
    if (said["lead"] or "").casefold() == "in ":
        then = (now + amount).replace(second=0, microsecond=0)
        return When(then.date(), then.time() if unit in "mh" else None)
    return When(end=amount) if unit in "mh" and amount else UNSAID


def _range(said: re.Match[str], now: datetime) -> When:
    first, last = said["at"], said["end"]
    clear = (said["lead"] or "").casefold() in {"from ", "between "} or (":" in first and ":" in last)
    if not (clear or _half(first) or _half(last)):
        return UNSAID
    at, end = _time(first, _half(last)), _time(last)
    if at > end and not _half(first):  # `11-1pm` begins in the morning
        at = _time(first, "a")
    return When(at=at, end=end) if at < end else UNSAID


def _start(said: re.Match[str], now: datetime) -> When:
    clear = said["lead"] or re.search(r"[a-z:]", said["at"], re.IGNORECASE)
    return When(at=_time(said["at"])) if clear else UNSAID


def _time(said: str, half: str = "") -> time:
    """The time of day that a text says; `half`: `a` or `p`, where it does not say itself which half of the day."""
    if word := _WORDS.get(said.casefold()):
        return word
    half = _half(said) or half
    hour, minute, *_ = (*map(int, re.findall(r"\d+", said)), 0)
    if half and not 1 <= hour <= 12:
        raise ValueError(said)
    if half == "p" or (said.isdecimal() and not half and 1 <= hour <= AFTERNOON_UP_TO):
        return time(hour % 12 + 12, minute)
    return time(hour % 12 if half else hour, minute)


def _half(said: str) -> str:
    match = re.search(r"([ap])\.?m", said.casefold())
    return match[1] if match else ""


_Meaning = Callable[[re.Match[str], datetime], When]
_GRAMMAR: tuple[tuple[str, _Meaning], ...] = (
    (
        r"(?i)\b(?P<lead>on |for |by |until |due )?(?:(?P<iso>20\d\d-\d\d-\d\d)(?![\d-])"
        rf"|(?:the )?(?P<near>{'|'.join(_NEAR)})\b(?:['’]s\b)?"
        rf"|(?P<which>next |this |coming )?(?P<weekday>{_WEEKDAY})\b"
        rf"|(?:(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})\b\.?"
        rf"|(?P<us_month>{_MONTH})\.? (?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:))(?:,? (?P<year>20\d\d))?)",
        _day,
    ),
    (
        rf"(?i)\b(?P<lead>in |for |by )?(?P<number>\d{{1,3}}|{'|'.join(_NUMBERS)})[ -]"
        r"(?P<unit>min(?:ute)?|h(?:ou)?r|day|week)s?\b(?: (?P<way>later|earlier|before|after|ago)\b)?",
        _amount,
    ),
    (
        rf"(?i)\b(?P<lead>from |between |at )?(?P<at>{_POINT})\s*(?:-|–|to|until|till|and)\s*(?:at )?"
        rf"(?P<end>{_POINT})(?![\w:-])",
        _range,
    ),
    (rf"(?i)\b(?:until|till)\s+(?P<end>{_POINT})(?![\w:-])", lambda said, now: When(end=_time(said["end"]))),
    (
        rf"(?i)(?P<lead>(?:\b(?:at|from|be|make it)|@)\s*)?\b(?P<at>{_POINT})(?:\s?o['’]?clock)?(?![\w:-])"
        r"(?!\s*(?:%|people|min|hour|day|week|[./]\d))",
        _start,
    ),
)
"""What is read of a time, the day first: a later rule adds only what those before it left open.

A meaning that is `When()`, or a `ValueError`, says that the match is no time after all.
"""
