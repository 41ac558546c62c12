"""When something is to happen: the present, what a text says of a time, and the moment that it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from graph.models.demo.clock import read_clock
from graph.models.demo.days import read_day

_NOW_LINE = re.compile(r"^Now: (?P<moment>\S+)(?: \((?P<zone>[A-Za-z0-9_+/-]+)\))?", re.MULTILINE)
_FROM_NOW = re.compile(r"\bin (?P<n>\d{1,3}|an|half an|one) (?P<unit>minutes?|mins?|hours?|hrs?)\b", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:not|instead of|rather than|no longer|don['’]t)\b[^,;]*?(?=,|;|\bbut\b|\binstead\b(?! of)|$)", re.IGNORECASE
)

DEFAULT_LENGTH = timedelta(minutes=60)


def read_present(system_prompt: str) -> datetime:
    """The present from the line `Now: 2026-11-21T09:00:00+01:00 (Europe/Berlin)`; without it, the clock in UTC."""
    match = _NOW_LINE.search(system_prompt)
    try:
        now = datetime.fromisoformat(match["moment"]) if match else None
    except ValueError:
        now = None
    if now is None or now.tzinfo is None or match is None:
        return datetime.now(UTC)
    offset = now.utcoffset() or timedelta()
    zone = _zone(match["zone"] or "", offset)
    return now.replace(tzinfo=timezone(offset)).astimezone(zone)


def _zone(name: str, offset: timedelta) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # unknown here: the offset of the present has to do
        return timezone(offset)


@dataclass(frozen=True, slots=True)
class When:
    """What a text says of a time; what it does not say is `None`."""

    day: date | None = None
    at: time | None = None
    until: time | None = None
    length: timedelta | None = None

    @property
    def said(self) -> bool:
        """Whether anything was said at all."""
        return self != When()

    def filled_from(self, other: When) -> When:
        """This, with what it lacks taken from another."""
        return When(self.day or other.day, self.at or other.at, self.until or other.until, self.length or other.length)


def read_when(text: str, now: datetime) -> tuple[When, str]:
    """What a text says of a time, and the text without it."""
    if match := _FROM_NOW.search(text):
        number = {"an": 1.0, "one": 1.0, "half an": 0.5}.get(match["n"].lower()) or float(match["n"])
        amount = timedelta(minutes=number if match["unit"][0].lower() == "m" else number * 60)
        then = (now + amount).replace(second=0, microsecond=0)
        return When(then.date(), then.time()), f"{text[: match.start()]} {text[match.end() :]}"
    day, text = read_day(text, now.date())
    clock, text = read_clock(text)
    return When(day, clock.at, clock.until, clock.length), text


def drop_negated(text: str) -> str:
    """The text without what it says no to: `not at 9am but at 10am` becomes ` but at 10am`."""
    return _NEGATED.sub(" ", text)


def moment(day: date, at: time, now: datetime) -> datetime:
    """That time of that day, where the present is; an hour that a clock change leaves out moves with the clock."""
    zone = now.tzinfo or UTC
    return datetime.combine(day, at, zone).astimezone(UTC).astimezone(zone)


def first_day_for(times: list[time], now: datetime) -> date:
    """Today while all of these times are still to come, otherwise tomorrow."""
    today = now.date()
    return today if all(moment(today, at, now) > now for at in times) else today + timedelta(days=1)


def end_of(start: datetime, when: When, now: datetime) -> datetime:
    """When something ends that starts then: as said, else after 60 minutes."""
    if when.until is not None:
        end = moment(start.date(), when.until, now)
        return end if end > start else end + timedelta(days=1)
    return start + (when.length or DEFAULT_LENGTH)


def start_of_day(day: date, now: datetime) -> datetime:
    """Midnight at which that day begins."""
    return moment(day, time(0), now)


def stamp(at: datetime) -> str:
    """ISO 8601 with seconds and offset (RFC 3339, what JSON Schema calls `date-time`)."""
    return at.replace(microsecond=0).isoformat()
