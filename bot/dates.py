"""Days, times and numbers in the form of the language that is written in, and the day of a moment. Pure.

English has its names here, so that a server that speaks nothing else needs no catalogue of languages in memory (Babel
takes 12 MB); every other language is Babel's.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache

from translations import SOURCE, language

_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_PATTERNS = {"de": ("EEE d. MMM", "EEE d. MMM y")}
"""Day without and with its year, where it is shorter than what the language's own pattern says."""


def day_of(moment: float) -> date:
    """Returns the day (UTC) of a moment in seconds since the epoch."""
    return datetime.fromtimestamp(moment, UTC).date()


def day_in_words(day: date, *, with_year: bool) -> str:
    """Returns a day with its weekday: "Sun 22 Nov", "Sun 22 Nov 2027"."""
    if language() == SOURCE:
        year = f" {day.year:04}" if with_year else ""
        return f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}{year}"
    return _babel_day(day, language(), with_year=with_year)


def time_in_words(moment: datetime) -> str:
    """Returns a time of day, with seconds where they are not 0: "9:00", "9:00:05"."""
    if language() == SOURCE or not _has_half_days(language()):
        seconds = f":{moment.second:02}" if moment.second else ""
        return f"{moment.hour}:{moment.minute:02}{seconds}"
    from babel.dates import format_time  # noqa: PLC0415 - it takes memory that English does not need

    return format_time(moment, "h:mm:ss a" if moment.second else "h:mm a", locale=_locale(language()))


def number_in_words(number: float, *, decimals: int = 0) -> str:
    """Returns a number with its thousands apart and so many decimals: "1,234", "2.1"."""
    if language() == SOURCE:
        return f"{number:,.{decimals}f}"
    from babel.numbers import format_decimal  # noqa: PLC0415 - likewise

    return format_decimal(number, "#,##0" + ("." + "0" * decimals if decimals else ""), locale=_locale(language()))


def _babel_day(day: date, name: str, *, with_year: bool) -> str:
    from babel.dates import format_date, format_skeleton  # noqa: PLC0415 - likewise

    locale = _locale(name)
    if patterns := _PATTERNS.get(name.split("-", maxsplit=1)[0].split("_", maxsplit=1)[0]):
        return format_date(day, patterns[with_year], locale=locale)
    return format_skeleton("yMMMEd" if with_year else "MMMEd", datetime(day.year, day.month, day.day), locale=locale)


@lru_cache(maxsize=64)
def _has_half_days(name: str) -> bool:
    from babel.dates import get_time_format  # noqa: PLC0415 - likewise

    return "h" in get_time_format("short", locale=_locale(name)).pattern


@lru_cache(maxsize=64)
def _locale(name: str) -> str:
    """The name of a locale that Babel has, the nearest to this one; English where there is none."""
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - likewise

    for candidate in (name.replace("-", "_"), name.replace("-", "_").split("_")[0]):
        try:
            return str(Locale.parse(candidate))
        except (ValueError, UnknownLocaleError):
            continue
    return SOURCE
