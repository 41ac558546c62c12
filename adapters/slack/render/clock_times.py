"""Wall clock times as forms have them, and the epoch seconds that Slack's picker of a date and time has."""

from __future__ import annotations

import re
from datetime import date, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

_EARLIEST, _LATEST = 1_000_000_000, 9_999_999_999
"""Seconds since the epoch that the picker takes (Slack: ten digits): from September 2001 to November 2286."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_MINUTES = "%Y-%m-%dT%H:%M"


def zone_of(name: str) -> tzinfo | None:
    """The time zone of that IANA name; `None` when there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # no such file, no such key, or a key that is no key at all
        return None


def is_date(value: Any) -> bool:
    """Whether it is a day written as `2026-11-21`."""
    try:
        return isinstance(value, str) and bool(_DATE.fullmatch(value)) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def is_time(value: Any) -> bool:
    """Whether it is a time of day written as `09:30`."""
    return isinstance(value, str) and bool(_TIME.fullmatch(value))


def epoch_of(value: Any, zone: tzinfo) -> int | None:
    """Seconds since the epoch of a wall clock time `2026-11-21T09:30` in a zone.

    `None` when it is written otherwise (with seconds, or an offset), when the zone's clocks skip it, or when the
    picker could not hold it: then the picker would give something else back.
    """
    if not isinstance(value, str) or not is_date(value[:10]) or value[10:11] != "T" or not is_time(value[11:]):
        return None
    try:
        epoch = int(datetime.strptime(value, _MINUTES).replace(tzinfo=zone).timestamp())
    except (ValueError, OverflowError):  # in the first or last hours of the calendar
        return None
    return epoch if _EARLIEST <= epoch <= _LATEST and wall_clock(epoch, zone) == value else None


def wall_clock(epoch: int, zone: tzinfo) -> str | None:
    """The time on the clocks of a zone, `2026-11-21T09:30`; `None` when there is no such time."""
    try:
        return datetime.fromtimestamp(epoch, zone).isoformat(timespec="minutes")[:16]
    except (ValueError, OverflowError, OSError):
        return None
