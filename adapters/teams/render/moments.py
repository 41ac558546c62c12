"""Times, as each reader sees them in their own zone and language."""

from __future__ import annotations

from datetime import UTC, datetime

_LATEST = 253_402_300_799
"""The last second of the year 9999: the client's functions take years of four digits."""
_UNKNOWN = "an unknown time"


def moment(seconds: float) -> str:
    """A time as Markdown of a `TextBlock`: "Sat, Nov 21, 2026 at 10:00 AM". `seconds` since the epoch, UTC."""
    if not 0 <= seconds <= _LATEST:
        return _UNKNOWN
    when = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{{{{DATE({when},SHORT)}}}} at {{{{TIME({when})}}}}"
