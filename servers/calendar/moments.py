"""Date-times as the calendar understands them: ISO 8601, with an offset or in the local time of this process."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

YEARS = range(1971, 9999)
"""What fits whatever the offset. Our own choice."""


def read_moment(given: Any) -> datetime:
    """The moment that a text names. Raises `ValueError` with a sentence."""
    mistake = (
        f"{str(given)[:60]!r} is not a date and time; write it like 2026-11-30T09:00 or 2026-11-30T09:00:00+01:00."
    )
    if not isinstance(given, str) or "T" not in given.upper():
        raise ValueError(mistake)
    try:
        moment = datetime.fromisoformat(given.strip().upper())
    except ValueError as error:
        raise ValueError(mistake) from error
    if moment.year not in YEARS:
        raise ValueError(f"{given!r} is outside of what this calendar holds, the years {YEARS[0]} to {YEARS[-1]}.")
    return moment


def seconds_of(moment: datetime) -> float:
    """Seconds since the epoch; a moment without an offset is in the local time of this process."""
    return moment.timestamp()


def later(moment: datetime, seconds: float) -> datetime:
    """The moment so many real seconds later, written in the same offset."""
    return moment + timedelta(seconds=seconds)


Moment = Annotated[datetime, BeforeValidator(read_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
