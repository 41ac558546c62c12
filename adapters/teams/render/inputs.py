"""The fields of a form → inputs of a card or a dialog. What they cannot hold is left as it is, and named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from adapters.teams.actions import input_id
from adapters.teams.render.elements import Element, columns, label, loses_characters, needed, rich, weight, words
from bot.domain import Form
from bot.forms import LONGEST_TEXT
from bot.safe_text import beginning_of_list, holds_unseen
from graph.fields import FieldType, FormField

_MOST_BYTES = 14 * 1024
"""Of all inputs as JSON with the form's own values, so that there is room for what people type and for mistakes."""
_MOST_TYPED_BYTES = 19 * 1024
"""Of all inputs with what people typed, when they are shown again."""
_LABEL = 150
_HINT = 300
_LONGEST_NUMBER = 15
"""Digits that a number keeps in everybody's JSON."""
_TIME_OF = "time:"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_YES = ("yes", "true", "on", "1")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A field and its input."""

    field: FormField
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class TeamsInputs:
    """A form's inputs, and what is not among them."""

    drawn: tuple[Drawn, ...]
    kept: tuple[str, ...]
    """Labels of the fields that stay as they are."""


class NotShowableError(Exception):
    """No input of a card can hold the value and give it back unchanged."""


def inputs(form: Form) -> TeamsInputs:
    """An input for each field, in order, as many as a card holds. Raises nothing."""
    drawn: list[Drawn] = []
    kept: list[str] = []
    room = _MOST_BYTES
    for field in _each_once(form.fields):
        try:
            made = _drawn(field, form.values.get(field.name, field.default))
        except NotShowableError:
            kept.append(field_label(field))
            continue
        size = weight({"": made.elements})
        if size > room:
            kept.append(field_label(field))
        else:
            drawn.append(made)
            room -= size
    return TeamsInputs(tuple(drawn), tuple(kept))


def filled(made: TeamsInputs, values: Mapping[str, Any]) -> tuple[Drawn, ...]:
    """The same inputs with what was typed into them, where a card holds that; a text that is too long is lost."""
    room = _MOST_TYPED_BYTES - sum(weight({"": each.elements}) for each in made.drawn)
    shown: list[Drawn] = []
    for each in made.drawn:
        again = _again(each, values)
        needed_bytes = weight({"": again.elements}) - weight({"": each.elements})
        if needed_bytes <= room:
            shown.append(again)
            room -= needed_bytes
        else:
            shown.append(each)
    return tuple(shown)


def time_id(field: str) -> str:
    """Id of the second input of a date and time; the first has the field's own."""
    return f"{_TIME_OF}{field}"


def field_label(field: FormField) -> str:
    """What a field is called."""
    return label(field.label or field.name, _LABEL)


def _each_once(fields: Iterable[FormField]) -> Iterable[FormField]:
    """The first field of each name, since the names tell inputs apart."""
    first: dict[str, FormField] = {}
    for field in fields:
        first.setdefault(field.name, field)
    return first.values()


def _again(each: Drawn, values: Mapping[str, Any]) -> Drawn:
    if each.field.name not in values:
        return each
    try:
        return _drawn(each.field, values[each.field.name])
    except NotShowableError:
        return each


def _drawn(field: FormField, value: Any) -> Drawn:
    if loses_characters(field.name):
        raise NotShowableError  # it names the input to Teams, and has to come back as it is
    elements = _DRAWN.get(field.type, _text)(field, value)
    hint = _hint(field, value, elements[0])
    return Drawn(
        field, (*elements, rich(words(hint, size="Small", isSubtle=True), spacing="None")) if hint else elements
    )


def _hint(field: FormField, value: Any, element: Element) -> str:
    hints = [field.help] if field.help.strip() else []
    unseen = 0
    if element["type"] == "Input.Text":
        hints += [text for kind, text in _WANTED.items() if kind is field.type]
        if field.options:
            options, unseen = beginning_of_list(field.options, ", ", _HINT)
            hints.append(f"One of: {options}.")
        if isinstance(value, str) and holds_unseen(value):
            hints.append(f"Holds characters that cannot be seen: {value}")
    text, further = beginning_of_list(hints, " ", _HINT)
    return label(text, _HINT, unseen + further) if hints else ""


_WANTED = {
    FieldType.DATE: "A date such as 2026-11-21.",
    FieldType.TIME: "A time such as 09:30.",
    FieldType.DATE_TIME: "A date and time such as 2026-11-21T09:30.",
    FieldType.NUMBER: "A number.",
    FieldType.INTEGER: "A whole number.",
    FieldType.YES_NO: "Yes or no.",
}

# ------------------------------------------------------------------------------------------------ elements
Elements = tuple[Element, ...]


def _input(kind: str, field: FormField, **properties: Any) -> Element:
    """`properties` without those that are None."""
    given = {name: value for name, value in properties.items() if value is not None}
    common = {"id": input_id(field.name), "label": field_label(field), **needed(required=field.required)}
    return {"type": kind, **common, **given}


def _text(field: FormField, value: Any) -> Elements:
    """A text input with whatever the value is; the last resort of every other kind. Raises `NotShowableError`."""
    text = _written(value)
    if len(text) > LONGEST_TEXT or loses_characters(text.translate({10: None, 13: None, 9: None})):
        raise NotShowableError
    lines = field.multiline or field.type is FieldType.JSON or "\n" in text or "\r" in text
    return (_input("Input.Text", field, maxLength=LONGEST_TEXT, isMultiline=lines, value=text or None),)


def _written(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "yes" if value else "no"
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        raise NotShowableError from None


def _number(field: FormField, value: Any) -> Elements:
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and _NUMBER.fullmatch(value):
        value = json.loads(value)
    if value is None:
        return (_input("Input.Number", field),)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return _text(field, value)
    if field.type is FieldType.INTEGER and not float(value).is_integer():
        return _text(field, value)
    number = int(value) if field.type is FieldType.INTEGER else value
    if len(str(number)) > _LONGEST_NUMBER or "e" in str(number):
        return _text(field, value)
    return (_input("Input.Number", field, value=number),)


def _date(field: FormField, value: Any) -> Elements:
    return (_input("Input.Date", field, value=value),) if value is None or _is_date(value) else _text(field, value)


def _time(field: FormField, value: Any) -> Elements:
    return (_input("Input.Time", field, value=value),) if value is None or _is_time(value) else _text(field, value)


def _date_time(field: FormField, value: Any) -> Elements:
    """A date beside a time, where they give the same back: without seconds and offset."""
    day, clock = _halves(value)
    if value is not None and day is None and clock is None:
        return _text(field, value)
    at = _input("Input.Time", field, value=clock)
    return (columns(_input("Input.Date", field, value=day), {**at, "id": time_id(field.name), "label": "Time"}),)


def _halves(value: Any) -> tuple[str | None, str | None]:
    """Date and time of `2026-11-21T09:30`, or the half that is there."""
    if _is_date(value):
        return value, None
    if _is_time(value):
        return None, value
    day, divider, clock = value.partition("T") if isinstance(value, str) else ("", "", "")
    return (day, clock) if divider and _is_date(day) and _is_time(clock) else (None, None)


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(_DATE.fullmatch(value)) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and bool(_TIME.fullmatch(value))


def _choice(field: FormField, value: Any) -> Elements:
    """A menu whose options stand for themselves; text where they would not come back as they are."""
    offered = offered_in(field.options)
    if not offered or (value is not None and value not in field.options):
        return _text(field, value)
    return (_input("Input.ChoiceSet", field, style="compact", choices=offered, value=value),)


def _choices(field: FormField, value: Any) -> Elements:
    """A list of options, any number of them; else JSON as text. Teams joins what is chosen by commas."""
    offered, chosen = offered_in(field.options), listed(value)
    if not offered or chosen is None or any("," in option for option in field.options):
        return _text(field, value)
    if set(chosen) - set(field.options) or len(set(chosen)) < len(chosen):
        return _text(field, value)
    given = ",".join(chosen) or None
    return (_input("Input.ChoiceSet", field, isMultiSelect=True, choices=offered, value=given),)


def _yes_no(field: FormField, value: Any) -> Elements:
    """A switch. One that has to be on could not say no, so it is never required."""
    on = value is True or (isinstance(value, str) and value.strip().lower() in _YES)
    made = _input("Input.Toggle", field, title="Yes", value="true" if on else "false", valueOn="true", valueOff="false")
    return ({name: made[name] for name in made if name not in ("isRequired", "errorMessage")},)


_DRAWN: dict[FieldType, Callable[[FormField, Any], Elements]] = {
    FieldType.NUMBER: _number,
    FieldType.INTEGER: _number,
    FieldType.DATE: _date,
    FieldType.TIME: _time,
    FieldType.DATE_TIME: _date_time,
    FieldType.CHOICE: _choice,
    FieldType.YES_NO: _yes_no,
    FieldType.JSON: _choices,
}


# ----------------------------------------------------------------------------------- submitted values

_SWITCH = {"true": True, "false": False}


def entries(data: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """What somebody typed or chose, by field name; `None` for nothing. Reads anything, raises nothing.

    `data` is what a submit of `form` carries. Clients leave inputs out that are empty, so that which fields had an
    input is worked out from the form; those that had none are not in the result, and so keep their values.
    """
    return {drawn.field.name: _entry(drawn, data) for drawn in inputs(form).drawn}


def _entry(drawn: Drawn, data: Mapping[str, Any]) -> Any:
    name = drawn.field.name
    value = _plain(data.get(input_id(name)))
    match drawn.elements[0]["type"]:
        case "Input.ChoiceSet" if drawn.elements[0].get("isMultiSelect"):
            return value.split(",") if isinstance(value, str) else value
        case "ColumnSet":
            return _date_and_time(value, _plain(data.get(time_id(name))))
        case "Input.Toggle":
            return _SWITCH.get(value, value) if isinstance(value, str) else value
        case _:
            return value


def _plain(value: Any) -> str | int | float | bool | None:
    """What an input may send: text, or a number or truth value already."""
    return value if isinstance(value, str | int | float) and value != "" else None


def _date_and_time(day: Any, clock: Any) -> Any:
    """In one, as far as it was given: half of it is for the form's reader to refuse."""
    if day is None or clock is None:
        return day if clock is None else clock
    return f"{day}T{clock}"


# ------------------------------------------------------ times, in each reader's own zone and language

_LATEST = 253_402_300_799
"""The last second of the year 9999: the client's functions take years of four digits."""
_UNKNOWN = "an unknown time"


def moment(seconds: float) -> str:
    """A time as Markdown of a `TextBlock`: "Sat, Nov 21, 2026 at 10:00 AM". `seconds` since the epoch, UTC."""
    if not 0 <= seconds <= _LATEST:
        return _UNKNOWN
    when = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{{{{DATE({when},SHORT)}}}} at {{{{TIME({when})}}}}"


# -------------------------------------------------------------------------------------------- choices

_MOST_OPTIONS = 100
"""Options of a menu; people type to find one among more."""
_OPTION = 120
_LONGEST_OPTION = 1_000
"""Characters of an option; longer ones are typed."""


def offered_in(options: Sequence[str]) -> list[Element]:
    """Choices that stand for themselves; none where they would not come back as they are, or are too many."""
    each_once = list(dict.fromkeys(options))
    if len(each_once) > _MOST_OPTIONS or any(len(option) > _LONGEST_OPTION for option in each_once):
        return []
    odd = any(not option.strip() or option != option.strip() or loses_characters(option) for option in each_once)
    if odd:
        return []
    return [{"title": title, "value": option} for title, option in zip(_titles(each_once), each_once, strict=True)]


def listed(value: Any) -> list[str] | None:
    """A list of texts, as it is or as JSON, empty for nothing; `None`: it is none."""
    try:
        found = json.loads(value) if isinstance(value, str) and value else value
    except (ValueError, RecursionError):
        return None
    if found is None or found == "":
        return []
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def _titles(options: Sequence[str]) -> list[str]:
    """What is shown for each option, numbered where two would read alike."""
    shown = [label(option, _OPTION) for option in options]
    if len(set(shown)) == len(shown):
        return shown
    return [label(f"{number}. {text}", _OPTION) for number, text in enumerate(shown, 1)]
