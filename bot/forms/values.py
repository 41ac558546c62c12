"""What somebody typed, as a value of the type that a form's input asks for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any, NoReturn

from bot.dates import number_in_words
from graph.interrupts import FieldType
from graph.json_values import LARGEST_INTEGER, Unreadable, parse_strictly, storable, trouble_with
from translations import gettext as _

LONGEST_TEXT = 10_000
"""Characters in one input."""
_LONGEST_NUMBER = 40
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}\.[0-9]{3}")
"""A thousand to many people, and 1 to JSON: nobody types a whole number so that means the latter."""
_YES = frozenset({"yes", "true", "on", "1"})
_NO = frozenset({"no", "false", "off", "0"})
_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class FormErrors:
    """A form with mistakes; nothing was taken from it."""

    errors: Mapping[str, str]
    """Field name → what is wrong and how to mend it; the key `""` is about the form as a whole."""


class EntryError(ValueError):
    """Something typed does not fit; the message is a sentence for whoever typed it."""


def is_empty(entry: Any) -> bool:
    """Whether nothing was typed or chosen."""
    return entry is None or (isinstance(entry, str) and not entry.strip())


def typed_value(kind: FieldType, entry: Any, choices: Mapping[str, Any]) -> Any:
    """The value of an entry that is not empty. Raises `EntryError`.

    Platforms send text, or the value itself where theirs is already typed (a checkbox, a number). `choices` are the
    options of a `choice` and the values they stand for; a `choice` without any is text.
    """
    if isinstance(entry, str) and len(entry) > LONGEST_TEXT:
        raise EntryError(
            _("Keep this to {most} characters; it has {count}.").format(
                most=number_in_words(LONGEST_TEXT), count=number_in_words(len(entry))
            )
        )
    match kind:
        case FieldType.JSON:
            return _json(entry)
        case FieldType.YES_NO:
            return _yes_no(entry)
        case FieldType.NUMBER | FieldType.INTEGER:
            return _number(entry, kind)
    text = _text(entry)
    match kind:
        case FieldType.CHOICE if choices:
            return _chosen(text, choices)
        case FieldType.DATE:
            return parse_date(text.strip()) or _refuse(_("Enter a date, such as 2026-11-21."))
        case FieldType.TIME:
            return str(parse_time(text.strip()) or _refuse(_("Enter a time, such as 09:30 (24 hours).")))
        case FieldType.DATE_TIME:
            moment = parse_date_time(text.strip())
            return str(moment or _refuse(_("Enter a date and time, such as 2026-11-21T09:30.")))
        case _:
            return text


def _refuse(sentence: str) -> NoReturn:
    raise EntryError(sentence)


def _text(entry: Any) -> str:
    if not isinstance(entry, str):
        raise EntryError(_("Enter text."))
    if storable(entry) != entry:
        raise EntryError(_("This contains a character that is not text. Type it again."))
    return entry


def _yes_no(entry: Any) -> bool:
    if isinstance(entry, bool):
        return entry
    word = entry.strip().lower() if isinstance(entry, str) else ""
    if word not in _YES | _NO:
        raise EntryError(_("Answer yes or no."))
    return word in _YES


def _number(entry: Any, kind: FieldType) -> int | float:
    if isinstance(entry, int) and not isinstance(entry, bool):
        return _exact(entry)
    if isinstance(entry, float):
        return _finite(entry, kind)
    text = entry.strip() if isinstance(entry, str) else ""
    if len(text) <= _LONGEST_NUMBER and re.fullmatch(r"[-+]?[0-9]+", text):
        return _exact(int(text))
    if len(text) > _LONGEST_NUMBER or not re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", text):
        _refuse_number(kind)
    if kind is FieldType.INTEGER and _THOUSANDS.fullmatch(text):
        _refuse_number(kind)
    return _finite(float(text), kind)


def _finite(number: float, kind: FieldType) -> int | float:
    if not math.isfinite(number):
        _refuse_number(kind)
    if kind is FieldType.NUMBER:
        return number
    if not number.is_integer():
        _refuse_number(kind)
    return _exact(int(number))


def _exact(number: int) -> int:
    if abs(number) > LARGEST_INTEGER:
        raise EntryError(
            _("Enter a whole number of at most {most}: larger ones do not arrive exactly.").format(most=LARGEST_INTEGER)
        )
    return number


def _refuse_number(kind: FieldType) -> NoReturn:
    is_whole = kind is FieldType.INTEGER
    raise EntryError(_("Enter a whole number, such as 3.") if is_whole else _("Enter a number, such as 1.5."))


def _chosen(text: str, choices: Mapping[str, Any]) -> Any:
    if text not in choices:
        raise EntryError(_("Choose one of: {options}.").format(options=", ".join(choices)[:300]))
    return choices[text]


def _json(entry: Any) -> Any:
    value = _parsed(entry) if isinstance(entry, str) else entry
    if trouble := trouble_with(value):
        raise EntryError(_("This holds {trouble}.").format(trouble=trouble))
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise EntryError(_("Enter JSON: text in quotes, numbers, true, false, null, lists, objects.")) from None
    if len(written) > 2 * LONGEST_TEXT:  # escapes may make it longer than it was typed
        raise EntryError(_("Keep this to {most} characters.").format(most=number_in_words(LONGEST_TEXT)))
    if _NUL_IN_JSON.search(written) or storable(written) != written:
        raise EntryError(_("This contains a character that is not text. Type it again."))
    return value


def _parsed(text: str) -> Any:
    try:
        return parse_strictly(text)
    except Unreadable as problem:
        raise EntryError(_("This holds {trouble}.").format(trouble=problem)) from None
    except json.JSONDecodeError as error:
        sentence = _("This is not JSON (line {line}, column {column}: {problem}). Text needs quotes.")
        told = sentence.format(line=error.lineno, column=error.colno, problem=error.msg)
        raise EntryError(told) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; thousands of brackets
        raise EntryError(_("This JSON is too deep, or holds too long a number.")) from None


# ------------------------------------------------------------------------------------ dates and times
# ISO 8601, seconds and UTC offset optional. RFC 3339, which JSON Schema's `date-time` names, demands an offset; pickers
# have none to give, and most servers take a local time. Both are read, and an edit keeps the offset of the argument.

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
        """Returns the time as a picker shows it: without the offset, and without seconds that are zero."""
        seconds = self.seconds if self.seconds.strip(":0.") else ""
        return replace(self, seconds=seconds, offset="")

    def in_the_style_of(self, earlier: Moment | None) -> Moment:
        """Returns it with the offset of the value it replaces; with seconds (RFC 3339 wants them) unless that had
        none."""
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
