"""Dates and times as forms show them and schemas want them: ISO 8601, seconds and UTC offset optional.

RFC 3339, which JSON Schema's `date-time` names, demands an offset; pickers have none to give, and most servers take a
local time. So both are read, and an edit keeps the offset that the argument had.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, time

_TIME = r"(?P<clock>[0-9]{2}:[0-9]{2})(?P<seconds>:[0-9]{2}(?:\.[0-9]{1,9})?)?(?P<offset>[Zz]|[-+][0-9]{2}:?[0-9]{2})?"
_ONLY_TIME = re.compile(_TIME)
_DATE_TIME = re.compile(rf"(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]{_TIME}")


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of day, with or without its date, in the parts it was written in."""

    clock: str
    """`HH:MM`."""
    seconds: str = ""
    """`:SS`, perhaps with a fraction; empty when it was not written."""
    offset: str = ""
    """`Z` or `+HH:MM`; empty: local."""
    date: str = ""
    """`YYYY-MM-DD`; empty: a time of day alone."""

    def __str__(self) -> str:
        day = f"{self.date}T" if self.date else ""
        return f"{day}{self.clock}{self.seconds}{self.offset}"

    def local(self) -> Moment:
        """As a picker shows it: without the offset, and without seconds that are zero."""
        seconds = self.seconds if self.seconds.strip(":0.") else ""
        return replace(self, seconds=seconds, offset="")

    def in_the_style_of(self, earlier: Moment | None) -> Moment:
        """With the offset of the value it replaces; with seconds (RFC 3339 wants them) unless that had none."""
        seconds = self.seconds or ("" if earlier is not None and not earlier.seconds else ":00")
        offset = self.offset or (earlier.offset if earlier is not None else "")
        return replace(self, seconds=seconds, offset=offset)


def parse_date(text: str) -> str | None:
    """The date, when it is one written as `YYYY-MM-DD`."""
    try:
        return text if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and date.fromisoformat(text) else None
    except ValueError:
        return None


def parse_time(text: str) -> Moment | None:
    """A time of day."""
    written = _ONLY_TIME.fullmatch(text)
    return _existing(Moment(**_parts(written))) if written else None


def parse_date_time(text: str) -> Moment | None:
    """A date and time."""
    written = _DATE_TIME.fullmatch(text)
    return _existing(Moment(**_parts(written))) if written else None


def _parts(written: re.Match[str]) -> dict[str, str]:
    return {name: part or "" for name, part in written.groupdict().items()}


def _existing(moment: Moment) -> Moment | None:
    """The moment, unless there is no such date or hour (31 April, 25:00)."""
    whole = f"{moment.clock}{moment.seconds[:3]}{moment.offset.upper()}"
    try:
        if moment.date:
            datetime.fromisoformat(f"{moment.date}T{whole}")
        else:
            time.fromisoformat(whole)
    except ValueError:
        return None
    return moment
