"""Days as people write them: `tomorrow`, `on Friday`, `next Monday`, `25 November`, `2026-11-25`, `in 3 days`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from graph.models.demo.clock import without

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_WEEKDAY = "|".join(WEEKDAYS)
_SHORT_WEEKDAY = "|".join(name[:3] for name in WEEKDAYS)
_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
_LEAD = r"\b(?:on |for |by |until |due )?"


def _pattern(body: str) -> re.Pattern[str]:
    return re.compile(_LEAD + body, re.IGNORECASE)


def _relative(match: re.Match[str], today: date) -> date:
    words = re.sub(r"^(?:on|for|by|until|due) ", "", match[0].lower())
    if words.startswith(("day", "the day")):
        return today + timedelta(days=2)
    if words.startswith(("tomorrow", "tmrw")):
        return today + timedelta(days=1)
    return today - timedelta(days=1) if words == "yesterday" else today


def _in_some(match: re.Match[str], today: date) -> date:
    number = 1 if match["n"].lower() in {"a", "one"} else int(match["n"])
    return today + timedelta(days=number * (7 if match["unit"].lower().startswith("w") else 1))


def _weekday(match: re.Match[str], today: date) -> date:
    wanted = next(i for i, name in enumerate(WEEKDAYS) if name.startswith(match["day"].lower()[:3]))
    if (match["which"] or "").lower().strip() == "next":
        return today - timedelta(days=today.weekday()) + timedelta(days=7 + wanted)
    return today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1)


def _iso(match: re.Match[str], today: date) -> date:
    return date(int(match["year"]), int(match["month"]), int(match["day"]))


def _named(match: re.Match[str], today: date) -> date:
    month = next(i for i, name in enumerate(MONTHS, 1) if name.startswith(match["month"].lower()[:3]))
    if match["year"]:
        return date(int(match["year"]), month, int(match["day"]))
    named = date(today.year, month, int(match["day"]))
    return named if named >= today else named.replace(year=today.year + 1)


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], date]], ...] = (
    (_pattern(r"(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?=$|[^\d-])"), _iso),
    (_pattern(r"(?:(?:the )?day after tomorrow|tomorrow|tmrw|today|tonight|yesterday)\b(?:['’]s\b)?"), _relative),
    (re.compile(r"\bin (?P<n>\d{1,3}|a|one) (?P<unit>days?|weeks?)\b", re.IGNORECASE), _in_some),
    (_pattern(rf"(?P<which>next |this |coming )?(?P<day>{_WEEKDAY})\b"), _weekday),
    (re.compile(rf"\b(?P<which>on |next |this )(?P<day>{_SHORT_WEEKDAY})\b", re.IGNORECASE), _weekday),
    (
        _pattern(
            rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})\b\.?(?:,? (?P<year>20\d\d))?"
        ),
        _named,
    ),
    (_pattern(rf"(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<year>20\d\d))?"), _named),
)


def read_day(text: str, today: date) -> tuple[date | None, str]:
    """The day in a text, and the text without it. What is not a day (`31 February`) stays in the text."""
    for pattern, reader in _READERS:
        for match in pattern.finditer(text):
            try:
                return reader(match, today), without(match, text)
            except (ValueError, OverflowError):  # no such day
                continue
    return None, text
