"""Arguments of a call as people read them: "When: Sun 22 Nov, 9:00–10:00 (Europe/Berlin)".

A reading can be turned back into the value, given the label and what is kept with the call (`CallPresentation`): no two
values read alike. A value in any other spelling than the one that its reading stands for stays as it is, or, where it
is read all the same, the call is not exact (`reads_exactly`), so that its card shows the fingerprint. What stands for
an id does not tell the id, which is counted as hidden. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from bot.dates import day_in_words, number_in_words, time_in_words
from bot.safe_text import labels, written_value
from graph.presentation import MAIN_ARGUMENTS, CallPresentation, KnownId, PresentedArgument, is_id, zone_of
from translations import gettext as _
from translations import ngettext

PAIRS = (
    ("start", "end"),
    ("starts", "ends"),
    ("begin", "end"),
    ("start_time", "end_time"),
    ("start_date", "end_date"),
    ("start_at", "end_at"),
    ("starts_at", "ends_at"),
    ("startTime", "endTime"),
    ("startDate", "endDate"),
    ("from", "to"),
    ("since", "until"),
)
"""Arguments that are the two ends of one span of time, and are shown on one line."""
_TIMES = ("start", "starts_at", "due", "due_date", "date", "when", "at")
"""Entries of a result that say when something is."""
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}")
_UNREAD_DAY = re.compile(r"[0-9][-0-9T:.Z+]*")
"""What no reading of a day looks like: there are letters or blanks in each."""
_UNREAD_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9][-0-9:.Z+]*[0-9Z]")
_LONGEST_ITEM = 200
"""Characters of an entry of a list that is shown with commas."""
_MOST_ITEMS = 100
_ODD_IN_LIST = re.compile(r"[,;\"“”„\n\r\t\[\]{}]|\A\s|\s\Z|\A\(")
_NO_ZONE = "-00:00"
_SECONDS = len("2026-11-22T09:00")
"""Where the seconds of a moment begin."""


@dataclass(frozen=True, slots=True)
class ReadableLine:
    """One line of a card."""

    names: tuple[str, ...]
    """The arguments that it shows: one, or the two ends of a span."""
    label: str
    text: str
    """The value as people read it; neither `visible` nor bounded yet."""
    raw: str
    """The value letter by letter (`bot.safe_text.written_value`)."""
    span: tuple[str, str, str] | None = None
    """Day, time and zone, of which `text` is made; `None`: it is no moment, or not within one day."""
    hidden: int = 0
    """Characters of an id for which the text stands."""


@dataclass(frozen=True, slots=True)
class _Moment:
    day: str
    time: str
    zone: str
    exact: bool

    @property
    def text(self) -> str:
        return f"{self.day}, {self.time}{self.zone}"


def readings(arguments: Mapping[str, Any], presentation: CallPresentation) -> Iterator[ReadableLine]:
    """Yields the lines that show arguments, in the order given, one after the other as they are asked for. Raises
    nothing."""
    label = _Labels(presentation)
    span = None
    if label.pair is not None:
        span = _span_of(arguments, presentation, label.pair, presentation.arguments[label.pair[0]].kind)
    is_shown = False
    for name, value in arguments.items():
        if span is None or name not in span.names:
            yield _reading(name, value, label.of(name), presentation)
        elif not is_shown:
            is_shown = True  # both ends, where the first of them stands
            yield span


def _reading(name: str, value: Any, label: str, presentation: CallPresentation) -> ReadableLine:
    raw = written_value(value)
    known = _known(name, value, presentation)
    if known is not None:
        what = known_in_words(known, presentation)
        text = _("{what} (from {source})").format(what=what, source=known.source)
        return ReadableLine((name,), label, text, raw, hidden=len(known.value))
    argument = presentation.arguments.get(name)
    if argument is not None and argument.kind == "date-time" and (moment := _moment(value, presentation)):
        return ReadableLine((name,), label, moment.text, raw, (moment.day, moment.time, moment.zone))
    return ReadableLine((name,), label, _in_words(value, argument, presentation), raw)


def change_in_words(before: ReadableLine, after: ReadableLine) -> str:
    """Returns an edit of moments as one text, "Sun 22 Nov, 13:00 → 14:30 (Europe/Berlin)", letter by letter where the
    two read alike; empty where they are not both moments of the same zone."""
    if before.text == after.text and before.raw != after.raw:
        return f"{before.raw} → {after.raw}"
    if before.span is None or after.span is None or before.span[2] != after.span[2]:
        return ""
    (old_day, old, zone), (day, new, _zone) = before.span, after.span
    return f"{day}, {old} → {new}{zone}" if old_day == day else f"{old_day}, {old} → {day}, {new}{zone}"


def reads_exactly(arguments: Mapping[str, Any], presentation: CallPresentation) -> bool:
    """Returns whether every moment can be told from how it is read. Raises nothing."""
    for name, argument in presentation.arguments.items():
        if argument.kind == "date-time" and name in arguments:
            moment = _moment(arguments[name], presentation)
            if moment is not None and not moment.exact:
                return False
    return True


def main_value(arguments: Mapping[str, Any], presentation: CallPresentation) -> str:
    """Returns the value that says what a call is about, neither `visible` nor bounded yet; empty where there is none
    that people would know it by."""
    value = arguments.get(presentation.main)
    if (known := _known(presentation.main, value, presentation)) is not None:
        return known_in_words(known, presentation)
    argument = presentation.arguments.get(presentation.main)
    if not isinstance(value, str) or not value.strip() or argument is None or _is_like_an_id(value, presentation.main):
        return ""
    return value


def result_in_words(result: Mapping[str, Any], presentation: CallPresentation) -> str:
    """Returns what people know the result of a call by: "Standup, Sun 22 Nov, 9:00–10:00 (Europe/Berlin)", or how many
    entries it lists; empty where there is nothing of the kind. Never an id. Neither `visible` nor bounded yet."""
    whole = next(iter(result.values())) if len(result) == 1 else result
    values = whole if isinstance(whole, Mapping) else result
    titles = (values.get(name) for name in MAIN_ARGUMENTS)
    known_by = (each.strip() for each in titles if isinstance(each, str))
    title = next((each for each in known_by if each and not _LIKE_AN_ID.fullmatch(each)), "")
    parts = [each for each in (title, _when(values, presentation)) if each]
    lists = [value for value in values.values() if isinstance(value, list)]
    if not parts and len(lists) == 1:
        count = len(lists[0])
        parts = [ngettext("{count} entry", "{count} entries", count).format(count=number_in_words(count))]
    return ", ".join(parts)


def _when(values: Mapping[str, Any], presentation: CallPresentation) -> str:
    """When something is, by the arguments that say so."""
    for pair in PAIRS:
        for kind in ("date-time", "date"):
            if (span := _span_of(values, presentation, pair, kind)) is not None:
                return span.text
    for name in _TIMES:
        if (moment := _moment(values.get(name), presentation)) is not None:
            return moment.text
        if day := _day(values.get(name), presentation):
            return day
    return ""


def answer_in_words(value: Any, kind: str, year: int) -> str:
    """Returns what somebody has filled in, as people read it: "Thu 26 Nov, 15:00", "yes". Neither `visible` nor bounded
    yet.

    Args:
        kind: the field's (`graph.interrupts.FieldType`).
        year: the calendar year when it was asked: only of days in other years the year is shown.
    """
    asked = CallPresentation(year=year)
    match kind, value:
        case _, bool():
            return _("yes") if value else _("no")
        case "date", str():
            return _day(value, asked) or value
        case "time", str():
            return _time(value) or value
        case "date-time", str():
            moment = _moment(value, asked)
            if moment is None:
                return value
            return moment.text if datetime.fromisoformat(value).tzinfo else f"{moment.day}, {moment.time}"
        case _, list() if all(isinstance(each, str) for each in value):
            return _list(value)
        case _:
            return written_value(value)


# ------------------------------------------------------------------------------------------------ labels
def labels_of(names: Iterable[str], presentation: CallPresentation) -> dict[str, str]:
    """Returns name → what stands before the value of each argument, on cards and in forms."""
    label = _Labels(presentation)
    return {name: label.of(name) for name in names}


class _Labels:
    """What stands before the values of one call. No two arguments have the same, whatever the schema calls them."""

    def __init__(self, presentation: CallPresentation) -> None:
        own = labels(presentation.arguments)
        titles = {name: each.title for name, each in presentation.arguments.items() if each.title}
        wanted: dict[str, set[str]] = {}
        for name in own:
            for text in (own[name], titles.get(name, own[name])):
                wanted.setdefault(text.casefold(), set()).add(name)
        self._labels = {
            name: titles[name] if name in titles and len(wanted[titles[name].casefold()]) == 1 else own[name]
            for name in own
        }
        self._taken = {label.casefold() for label in self._labels.values()}
        self.pair = self._pair_in(presentation)
        if self.pair is not None:
            self._taken.add(self.when.casefold())

    @property
    def when(self) -> str:
        """Label of a span of time."""
        return _("When")

    def of(self, name: str) -> str:
        """Returns the label of an argument."""
        if name in self._labels:
            return self._labels[name]
        label = labels([name])[name]
        return json.dumps(name, ensure_ascii=False) if label.casefold() in self._taken else label

    def _pair_in(self, presentation: CallPresentation) -> tuple[str, str] | None:
        """The ends of the one span that a call has, by its schema."""
        kinds = {name: each.kind for name, each in presentation.arguments.items()}
        for pair in PAIRS:
            if kinds.get(pair[0]) in ("date-time", "date") and kinds.get(pair[0]) == kinds.get(pair[1]):
                others = {label.casefold() for name, label in self._labels.items() if name not in pair}
                return None if self.when.casefold() in others else pair
        return None


def _span_of(
    arguments: Mapping[str, Any], presentation: CallPresentation, pair: tuple[str, str], kind: str
) -> ReadableLine | None:
    """The line that shows both ends; `None` where they cannot be shown on one."""
    if not all(name in arguments for name in pair):
        return None
    values = [arguments[name] for name in pair]
    raw = " – ".join(map(written_value, values))
    if kind == "date":
        days = [_day(value, presentation) for value in values]
        return ReadableLine(pair, _("When"), " – ".join(days), raw) if all(days) else None
    start, end = (_moment(value, presentation) for value in values)
    if start is None or end is None or start.zone != end.zone:
        return None
    if start.day == end.day:
        time = f"{start.time}–{end.time}"
        text = f"{start.day}, {time}{start.zone}"
        return ReadableLine(pair, _("When"), text, raw, (start.day, time, start.zone))
    text = f"{start.day}, {start.time} – {end.day}, {end.time}{start.zone}"
    return ReadableLine(pair, _("When"), text, raw)


# ------------------------------------------------------------------------------------------------ values
def _in_words(value: Any, argument: PresentedArgument | None, presentation: CallPresentation) -> str:
    match value:
        case bool():
            return _("yes") if value else _("no")
        case None:
            return _("(nothing)")
        case list() if argument is not None and argument.kind == "list":
            return _list(value)
        case str():
            return _text(value, argument, presentation)
        case _:
            return written_value(value)


def _text(value: str, argument: PresentedArgument | None, presentation: CallPresentation) -> str:
    if argument is not None and argument.choices:
        title = argument.choices.get(value, "")
        return title if title and _plain(title) == title else _quoted(value)  # "yes" is how a boolean reads
    match argument.kind if argument is not None else "other":
        case "date-time":
            return _plain(value) if not value or _UNREAD_DAY.fullmatch(value) else _quoted(value)
        case "date":
            return _day(value, presentation) or (
                _plain(value) if not value or _UNREAD_DAY.fullmatch(value) else _quoted(value)
            )
        case "time":
            read = _time(value)
            return read or (_plain(value) if not value or _UNREAD_TIME.fullmatch(value) else _quoted(value))
        case "list":
            return _quoted(value) if value else ""
        case _:
            return _plain(value)


def _plain(value: str) -> str:
    """A text as it is; in quotes where it would read like something that is no text."""
    if len(value) < _LONGEST_ITEM and value.casefold() in {_("yes").casefold(), _("no").casefold()}:
        return _quoted(value)
    return written_value(value)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(values: list[Any]) -> str:
    """Texts with commas in between where that can be told apart, else JSON."""
    if not values:
        return _("(none)")
    clear = len(values) <= _MOST_ITEMS and all(map(_is_clear_in_list, values))
    return ", ".join(values) if clear else written_value(values)


def _is_clear_in_list(value: Any) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ITEM:
        return False
    return not _ODD_IN_LIST.search(value) and _plain(value) == value


def _day(value: Any, presentation: CallPresentation) -> str:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return ""
    try:
        return _shown_day(date.fromisoformat(value), presentation)
    except ValueError:
        return ""


def _time(value: str) -> str:
    if not _TIME.fullmatch(value):
        return ""
    try:
        return time_in_words(datetime.fromisoformat(f"2000-01-01T{value}"))
    except ValueError:
        return ""


def _shown_day(day: date, presentation: CallPresentation) -> str:
    return day_in_words(day, with_year=day.year != presentation.year)


def _moment(value: Any, presentation: CallPresentation) -> _Moment | None:
    """A date and time as it is read, in the zone of the call; `None` where it is not written as one."""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value) or value.endswith(_NO_ZONE):
        return None
    has_seconds = value[_SECONDS : _SECONDS + 1] == ":"
    try:
        given = datetime.fromisoformat(value)
        if given.isoformat(timespec="seconds" if has_seconds else "minutes") != value.replace("Z", "+00:00"):
            return None  # such as 24:00
        zone = zone_of(presentation.time_zone) or UTC
        local = given if given.tzinfo is None else given.astimezone(zone)
    except (ValueError, OverflowError):
        return None
    in_zone, canonical = (_(" (no time zone)"), True) if given.tzinfo is None else _zone(given, local, value)
    return _Moment(_shown_day(local.date(), presentation), time_in_words(local), in_zone, has_seconds and canonical)


def _zone(given: datetime, local: datetime, value: str) -> tuple[str, bool]:
    """What is said of the zone of a moment, and whether its offset is spelled as that says."""
    name = getattr(local.tzinfo, "key", "UTC")
    offset = local.utcoffset()
    if offset is not None and local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        name = f"{name}, {_offset(offset)}"  # an hour that comes twice
    if offset == given.utcoffset():
        return f" ({name})", not value.endswith("Z")
    sent = "UTC" if value.endswith("Z") else _offset(given.utcoffset() or timedelta())
    return " ({})".format(_("{zone}, given in {offset}").format(zone=name, offset=sent)), True


def _offset(offset: timedelta) -> str:
    minutes = int(offset.total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}:{rest:02}"


# ------------------------------------------------------------------------------------------------ ids
_LIKE_AN_ID = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9]{5,}|(?=[^ ]*[0-9])[A-Za-z0-9_=+/-]{16,}"
)


def _is_like_an_id(value: str, name: str) -> bool:
    return is_id(name) or bool(_LIKE_AN_ID.fullmatch(value.strip()))


def known_in_words(known: KnownId, presentation: CallPresentation) -> str:
    """Returns what an id stands for: "Standup, Sun 22 Nov, 9:00". Its words are a tool's, neither `visible` nor bounded
    yet."""
    moment = _moment(known.at, presentation)
    at = f"{moment.day}, {moment.time}" if moment else _day(known.at, presentation) or known.at
    return f"{known.title}, {at}" if at else known.title


def _known(name: str, value: Any, presentation: CallPresentation) -> KnownId | None:
    return presentation.known_in({name: value}).get(name) if presentation.known_ids else None
