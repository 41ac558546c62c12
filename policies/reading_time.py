"""`time` in a policy file: `{days: [mon-fri, sun], from: "08:00", until: "18:00", zone: Europe/Berlin}`."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from policies.reading_values import child, not_empty, only_keys, text, texts
from policies.schedule import DAYS, MINUTES_OF_A_DAY, Hours
from policies.yaml_lines import LineError, Located

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_KEYS = frozenset({"days", "from", "until", "zone"})


def read_hours(node: Located, what: str) -> Hours:
    """Times of the week. Raises `LineError`."""
    entries = not_empty(node, what)
    only_keys(entries, _KEYS, what)
    zone = _zone(child(entries, "zone", node))
    if len(entries) == 1:
        raise LineError(node.line, f"{what} names a zone only: say days, from or until")
    start = _minute(entries["from"], "from") if "from" in entries else 0
    end = _minute(entries["until"], "until") if "until" in entries else MINUTES_OF_A_DAY
    if start == end:
        raise LineError(
            entries["until" if "until" in entries else "from"].line,
            f"{what} begins and ends at the same minute: leave from and until out for the whole day",
        )
    days = _days(entries["days"]) if "days" in entries else frozenset(range(len(DAYS)))
    return Hours(zone, days, start, end)


def _zone(node: Located) -> str:
    name = text(node, "zone")
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise LineError(node.line, f"there is no time zone “{name[:60]}”: such as Europe/Berlin or UTC") from None


def _minute(node: Located, what: str) -> int:
    written = text(node, what)
    if written == "24:00" and what == "until":
        return MINUTES_OF_A_DAY
    clock = _CLOCK.fullmatch(written)
    if clock is None:
        raise LineError(node.line, f"{what} must be a time such as “08:00”, not “{written[:60]}”")
    return int(clock[1]) * 60 + int(clock[2])


def _days(node: Located) -> frozenset[int]:
    items = texts(node, "days")
    if not items:
        raise LineError(node.line, "days is empty: take it out, or name some")
    return frozenset(day for item in items for day in _stretch(item))


def _stretch(item: Located) -> tuple[int, ...]:
    first, dash, last = str(item.value).partition("-")
    if first not in DAYS or (last if dash else first) not in DAYS:
        raise LineError(
            item.line, f"“{str(item.value)[:60]}” is no day: write {', '.join(DAYS)}, or a stretch such as mon-fri"
        )
    begin, end = DAYS.index(first), DAYS.index(last if dash else first)
    return tuple(day % len(DAYS) for day in range(begin, end + 1 if begin <= end else end + 1 + len(DAYS)))
