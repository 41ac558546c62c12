"""Days and moments as the conversations write them: `tomorrow 09:00`, `in 5 days`. All of them are in UTC, as is the
product while it is tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

_NEAR = {"today": 0, "tomorrow": 1}
_WRITTEN = re.compile(r"(?:(?P<near>today|tomorrow)|in (?P<days>\d{1,3}) days)(?: (?P<hour>\d\d):(?P<minute>\d\d))?")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
FORMS = "“today”, “tomorrow” or “in 5 days”, with or without “ 09:00”"


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, so many days from the one on which a conversation is held, and perhaps a time of it."""

    days: int
    at: time | None

    def day(self, now: datetime) -> date:
        """The day."""
        return now.date() + timedelta(days=self.days)

    def moment(self, now: datetime) -> datetime:
        """The moment; the beginning of the day, where no time is said."""
        return datetime.combine(self.day(now), self.at or time(0), UTC)

    def in_words(self, now: datetime) -> str:
        """As people write the day: `3 December`."""
        day = self.day(now)
        return f"{day.day} {_MONTHS[day.month - 1]}"


def read_moment(text: str) -> Moment:
    """A moment as it is written. Raises `ValueError` with a sentence."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"“{text[:60]}” is no day that is known here: write {FORMS}")
    days = _NEAR[found["near"]] if found["near"] else int(found["days"])
    try:
        at = time(int(found["hour"]), int(found["minute"])) if found["hour"] else None
    except ValueError:
        raise ValueError(f"there is no such time as {found['hour']}:{found['minute']}") from None
    return Moment(days, at)


def moment_of(value: Any) -> datetime | None:
    """What an argument of a call names as a moment, ISO 8601; without an offset it is in UTC. `None`: it is none."""
    try:
        at = datetime.fromisoformat(value.strip().upper())
    except (AttributeError, ValueError):
        return None
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError:
        return None
