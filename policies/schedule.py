"""Times of the week at which a rule fits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_OF_A_DAY = 24 * 60
_EARLIEST, _LATEST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
"""Beyond them the calendar ends in some zone."""


@dataclass(frozen=True)
class Hours:
    """Days and minutes of the day, by the wall clock of a time zone."""

    zone: str
    """A name of the IANA database (`Europe/Berlin`, `UTC`)."""
    days: frozenset[int] = frozenset(range(7))
    """Weekdays, Monday is 0. A time that goes over midnight belongs to the day on which it began."""
    start: int = 0
    """Minute of the day from which it fits."""
    end: int = MINUTES_OF_A_DAY
    """Minute of the day from which it no longer fits; before `start`: on the next day."""

    def include(self, local: datetime) -> bool:
        """Whether a time, local to their zone, is among them."""
        minute, today = local.hour * 60 + local.minute, local.weekday()
        if self.start < self.end:
            return today in self.days and self.start <= minute < self.end
        yesterday = (today - 1) % len(DAYS)
        return (minute >= self.start and today in self.days) or (minute < self.end and yesterday in self.days)

    def __str__(self) -> str:
        days = "" if len(self.days) == len(DAYS) else f"{', '.join(DAYS[day] for day in sorted(self.days))} "
        return f"{days}{_clock(self.start)} to {_clock(self.end)} ({self.zone})"


def local_time(at: datetime, zone: str) -> datetime:
    """An (aware) time by the wall clock of a zone, but not beyond the calendar's ends."""
    return min(max(at, _EARLIEST), _LATEST).astimezone(ZoneInfo(zone))


def in_words(local: datetime) -> str:
    """Day and time: `fri 17:30`."""
    return f"{DAYS[local.weekday()]} {local:%H:%M}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
