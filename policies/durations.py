"""Durations as people write them: `30s`, `15m`, `24h`, `7d`."""

from __future__ import annotations

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WRITTEN = re.compile(r"([0-9]{1,9})([smhd])")

LONGEST = 3650 * 86400.0
"""Seconds. Ten years: beyond it a date stops being one that people plan by, and `never` is the honest word."""


def seconds(text: str) -> float:
    """Seconds of a written duration. Raises `ValueError` with a sentence when it is none, is zero, or is too long."""
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f"“{text}” is not a duration: write a whole number and a unit, such as 30s, 15m, 24h or 7d")
    length = float(int(written[1]) * _SECONDS[written[2]])
    if length == 0:
        raise ValueError("a duration must be longer than nothing")
    if length > LONGEST:
        raise ValueError(f"“{text}” is longer than ten years: write never instead")
    return length


def in_words(length: float) -> str:
    """A number of seconds as one would write it: `24h`, `90s`."""
    whole = int(length)
    unit, size = next((unit, size) for unit, size in reversed(_SECONDS.items()) if whole % size == 0)
    return f"{whole // size}{unit}"
