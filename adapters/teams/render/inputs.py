"""The fields of a form → inputs of a card or a dialog. What they cannot hold is left as it is, and named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from adapters.shared import forms
from adapters.teams.actions import input_id
from adapters.teams.render.elements import Element, columns, label, loses_characters, needed, rich, weight, words
from bot.domain import Form
from bot.forms.values import LONGEST_TEXT
from graph.interrupts import FieldType, FormField
from translations import gettext as _

_MOST_BYTES = 14 * 1024
"""Bytes of all inputs as JSON with the form's own values, so that there is space for what people type and for
mistakes."""
_MOST_TYPED_BYTES = 19 * 1024
"""Bytes of all inputs with what people typed, when they are shown again."""
_HINT = 300
_MOST_OPTIONS = 100
"""Options of a menu; people type to find one among more."""
_OPTION = 120
_LONGEST_OPTION = 1_000
"""Characters of an option; longer ones are typed."""
_TIME_OF = "time:"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
_LATEST = 253_402_300_799
"""The last second of the year 9999: the client's functions take years of four digits."""

Elements = tuple[Element, ...]
DrawnInput = forms.Drawn[Elements]


def reader_time(seconds: float) -> str:
    """A time as Markdown of a `TextBlock`, in each reader's own zone and language: "Sat, Nov 21, 2026 at 10:00 AM".
    `seconds` since the epoch, UTC."""
    if not (when := _instant(seconds)):
        return _("an unknown time")
    return _("{date} at {time}").format(date=f"{{{{DATE({when},SHORT)}}}}", time=f"{{{{TIME({when})}}}}")


def reader_clock(seconds: float) -> str:
    """The time of day likewise: "10:00 AM"."""
    when = _instant(seconds)
    return f"{{{{TIME({when})}}}}" if when else _("an unknown time")


def _instant(seconds: float) -> str:
    """A time as the functions take it; empty where they do not."""
    if not 0 <= seconds <= _LATEST:
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def inputs(form: Form) -> forms.DrawnForm[Elements]:
    """An input for each field, in order, as many as a card holds. Raises nothing."""
    return forms.drawn_form(form, _drawn, _weight, most_bytes=_MOST_BYTES)


def filled(made: forms.DrawnForm[Elements], values: Mapping[str, Any]) -> tuple[DrawnInput, ...]:
    """Returns the inputs of a form with what was typed into them, where a card holds that; a text that is too long is
    lost."""
    left = _MOST_TYPED_BYTES - sum(_weight(each.input) for each in made.drawn)
    shown: list[DrawnInput] = []
    for each in made.drawn:
        again = _again(each, values)
        more = _weight(again.input) - _weight(each.input)
        shown.append(again if more <= left else each)
        left -= more if more <= left else 0
    return tuple(shown)


def time_id(field: str) -> str:
    """Id of the second input of a date and time; the first has the field's own."""
    return f"{_TIME_OF}{field}"


def field_label(field: FormField) -> str:
    """What a field is called."""
    return label(field.label or field.name, forms.LONGEST_FIELD_LABEL)


def _weight(elements: Elements) -> int:
    return weight({"": elements})


def _again(each: DrawnInput, values: Mapping[str, Any]) -> DrawnInput:
    """The input with what was typed. What was a text stays one: what comes back is read as what was drawn first."""
    if each.field.name not in values:
        return each
    draw = _text if each.input[0]["type"] == "Input.Text" else _DRAWN.get(each.field.type, _text)
    try:
        return forms.Drawn(each.field, _with_hint(draw, each.field, values[each.field.name]))
    except forms.NotShowableError:
        return each


def _drawn(field: FormField, value: Any) -> Elements:
    if loses_characters(field.name):
        raise forms.NotShowableError  # it names the input to Teams, and has to come back as it is
    return _with_hint(_DRAWN.get(field.type, _text), field, value)


def _with_hint(draw: Callable[[FormField, Any], Elements], field: FormField, value: Any) -> Elements:
    elements = draw(field, value)
    told, unseen = forms.hint(field, value, _HINT, is_text=elements[0]["type"] == "Input.Text")
    below = rich(words(label(told, _HINT, unseen), size="Small", isSubtle=True), spacing="None")
    return (*elements, below) if told else elements


# ------------------------------------------------------------------------------------------------ elements
def _input(kind: str, field: FormField, **properties: Any) -> Element:
    """`properties` without those that are None."""
    given = {name: value for name, value in properties.items() if value is not None}
    common = {"id": input_id(field.name), "label": field_label(field), **needed(required=field.required)}
    return {"type": kind, **common, **given}


def _text(field: FormField, value: Any) -> Elements:
    """A text input with whatever the value is; the last resort of every other kind. Raises `NotShowableError`."""
    text = forms.in_text(value)
    if len(text) > LONGEST_TEXT or loses_characters(text.translate({10: None, 13: None, 9: None})):
        raise forms.NotShowableError
    return (
        _input(
            "Input.Text", field, maxLength=LONGEST_TEXT, isMultiline=forms.has_lines(field, text), value=text or None
        ),
    )


def _number(field: FormField, value: Any) -> Elements:
    if isinstance(value, str) and len(value) <= forms.LONGEST_NUMBER and _NUMBER.fullmatch(value):
        value = json.loads(value)
    if value is None:
        return (_input("Input.Number", field),)
    number = forms.number_in(field, value)
    return _text(field, value) if number is None else (_input("Input.Number", field, value=number),)


def _date(field: FormField, value: Any) -> Elements:
    return (_input("Input.Date", field, value=value),) if value is None or forms.is_date(value) else _text(field, value)


def _time(field: FormField, value: Any) -> Elements:
    return (_input("Input.Time", field, value=value),) if value is None or forms.is_time(value) else _text(field, value)


def _date_time(field: FormField, value: Any) -> Elements:
    """A date beside a time, where they give the same back: without seconds and offset."""
    day, clock = _halves(value)
    if value is not None and day is None and clock is None:
        return _text(field, value)
    at = _input("Input.Time", field, value=clock)
    return (columns(_input("Input.Date", field, value=day), {**at, "id": time_id(field.name), "label": _("Time")}),)


def _halves(value: Any) -> tuple[str | None, str | None]:
    """Date and time of `2026-11-21T09:30`, or the half that is there."""
    if forms.is_date(value):
        return value, None
    if forms.is_time(value):
        return None, value
    day, divider, clock = value.partition("T") if isinstance(value, str) else ("", "", "")
    return (day, clock) if divider and forms.is_date(day) and forms.is_time(clock) else (None, None)


def offered_in(options: Sequence[str]) -> list[Element]:
    """Choices that stand for themselves; none where they would not come back as they are, or are too many."""
    each_once = list(dict.fromkeys(options))
    if len(each_once) > _MOST_OPTIONS or any(len(option) > _LONGEST_OPTION for option in each_once):
        return []
    if any(not option.strip() or option != option.strip() or loses_characters(option) for option in each_once):
        return []
    titles = forms.option_titles(each_once, lambda option: label(option, _OPTION))
    return [{"title": title, "value": option} for title, option in zip(titles, each_once, strict=True)]


def _choice(field: FormField, value: Any) -> Elements:
    """A menu whose options stand for themselves; text where they would not come back as they are."""
    offered = offered_in(field.options)
    if not offered or (value is not None and value not in field.options):
        return _text(field, value)
    return (_input("Input.ChoiceSet", field, style="compact", choices=offered, value=value),)


def _choices(field: FormField, value: Any) -> Elements:
    """A list of options, any number of them; else JSON as text. Teams joins what is chosen by commas."""
    offered, chosen = offered_in(field.options), forms.listed(value)
    if not offered or chosen is None or any("," in option for option in field.options):
        return _text(field, value)
    if set(chosen) - set(field.options) or len(set(chosen)) < len(chosen):
        return _text(field, value)
    given = ",".join(chosen) or None
    return (_input("Input.ChoiceSet", field, isMultiSelect=True, choices=offered, value=given),)


def _yes_no(field: FormField, value: Any) -> Elements:
    """A switch. One that has to be on could not say no, so it is never required."""
    made = _input(
        "Input.Toggle",
        field,
        title=_("Yes"),
        value="true" if forms.is_yes(value) else "false",
        valueOn="true",
        valueOff="false",
    )
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


def is_as_drawn(given: Mapping[str, Any], form: Form) -> bool:
    """Whether what was filled in (`entries`) is what the form was drawn with. Raises nothing."""
    drawn = {each.field.name: str(_entry(each, _untouched(each.input))) for each in inputs(form).drawn}
    return {name: str(value) for name, value in given.items()} == drawn  # numbers come as text


def _untouched(elements: Elements) -> dict[str, Any]:
    """What the inputs send when nobody touches them."""
    sent: dict[str, Any] = {}
    for element in elements:
        for each in [column["items"][0] for column in element.get("columns", [])] or [element]:
            if "id" in each:
                sent[each["id"]] = each.get("value", each.get("valueOff", ""))
    return sent


def _entry(drawn: DrawnInput, data: Mapping[str, Any]) -> Any:
    name, element = drawn.field.name, drawn.input[0]
    value = _plain(data.get(input_id(name)))
    match element["type"]:
        case "Input.ChoiceSet" if element.get("isMultiSelect"):
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
    """Returns date and time as one value, as far as they were given: half of it is for the form's reader to refuse."""
    if day is None or clock is None:
        return day if clock is None else clock
    return f"{day}T{clock}"
