"""The fields of a form as inputs of a modal. What Slack cannot show is left out and named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from adapters.shared import forms
from adapters.shared.wording import line
from adapters.slack.actions import (
    INPUT,
    block_of,
)
from adapters.slack.render.blocks import (
    Block,
    plain,
)
from bot.domain import Form, Person
from graph.interrupts import FieldType, FormField
from translations import gettext as _

_EARLIEST, _LATEST = 1_000_000_000, 9_999_999_999
"""Seconds since the epoch that the picker takes (Slack: ten digits): from September 2001 to November 2286."""
_MINUTES = "%Y-%m-%dT%H:%M"
MOST_INPUTS = 95
"""Inputs of a modal, so that there is space for words around them (Slack: 100 blocks)."""
LONGEST_INPUT = 3_000
"""Characters in a text input (Slack)."""
MOST_OPTIONS = 100
"""Options of a select menu (Slack)."""
MOST_CHECKBOXES = 10
"""Options of a group of checkboxes (Slack)."""
LONGEST_OPTION = 75
"""Characters of an option's text (Slack)."""
_MOST_BYTES = 200_000
"""Bytes of all inputs as JSON (Slack: a view has 250 KB)."""
_HINT = 600
_USER = re.compile(r"[UW][A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")
_LOST = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""What a text input may drop: control characters and halves of surrogate pairs."""


def drawn_inputs(form: Form, person: Person) -> forms.DrawnForm[Block]:
    """An input for each field, in order, as many as a modal holds. Raises nothing."""
    draw = partial(_input, person)
    return forms.drawn_form(
        form, draw, lambda block: len(json.dumps(block)), most_bytes=_MOST_BYTES, most_inputs=MOST_INPUTS
    )


def field_label(field: FormField) -> str:
    """What a field is called."""
    return line(field.label or field.name, forms.LONGEST_FIELD_LABEL)


def text_input(name: str, label: str, *, optional: bool = False, hint: str = "") -> Block:
    """An input for a text of several lines."""
    element = {"type": "plain_text_input", "action_id": INPUT, "multiline": True, "max_length": LONGEST_INPUT}
    block = {
        "type": "input",
        "block_id": block_of(name),
        "label": plain(label),
        "element": element,
        "optional": optional,
    }
    return {**block, "hint": plain(hint)} if hint else block


def _input(person: Person, field: FormField, value: Any) -> Block:
    if not field.name.isprintable():
        raise forms.NotShowableError  # it names the input to Slack, and has to come back as it is
    element = _DRAWN.get(field.type, _text)(field, value, person)
    is_text = element["type"] == "plain_text_input"
    told, unseen = forms.hint(field, value, _HINT, is_text=is_text, any_of=_("As a JSON list, any of: {options}."))
    block = {
        "type": "input",
        "block_id": block_of(field.name),
        "label": plain(field_label(field)),
        "element": {**element, "action_id": INPUT},
        # Checkboxes of which one has to be ticked could not say no, nor none of these.
        "optional": not field.required or element["type"] in ("checkboxes", "multi_static_select"),
    }
    return {**block, "hint": plain(line(told, _HINT, unseen))} if told else block


def _options(field: FormField) -> list[Block]:
    titles = forms.option_titles(field.options, lambda option: line(option, LONGEST_OPTION))
    return [{"text": plain(text), "value": str(number)} for number, text in enumerate(titles)]


# ------------------------------------------------------------------------------------------------ times
def zone_of(name: str) -> tzinfo | None:
    """The time zone of that IANA name; `None` when there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # no such file, no such key, or a key that is no key at all
        return None


def epoch_of(value: Any, zone: tzinfo) -> int | None:
    """Seconds since the epoch of a wall clock time `2026-11-21T09:30` in a zone.

    `None` when it is written otherwise (with seconds, or an offset), when the zone's clocks skip it, or when the
    picker could not hold it: then the picker would give something else back.
    """
    if (
        not isinstance(value, str)
        or not forms.is_date(value[:10])
        or value[10:11] != "T"
        or not forms.is_time(value[11:])
    ):
        return None
    try:
        epoch = int(datetime.strptime(value, _MINUTES).replace(tzinfo=zone).timestamp())
    except (ValueError, OverflowError):  # in the first or last hours of the calendar
        return None
    return epoch if _EARLIEST <= epoch <= _LATEST and wall_clock(epoch, zone) == value else None


def wall_clock(epoch: int, zone: tzinfo) -> str | None:
    """The time on the clocks of a zone, `2026-11-21T09:30`; `None` when there is no such time."""
    try:
        return datetime.fromtimestamp(epoch, zone).isoformat(timespec="minutes")[:16]
    except (ValueError, OverflowError, OSError):
        return None


# ------------------------------------------------------------------------------------------------ elements
def _text(field: FormField, value: Any, _person: Person) -> Block:
    """A text input with whatever the value is; the last resort of every other kind. Raises `NotShowableError`."""
    text = forms.in_text(value)
    if len(text) > LONGEST_INPUT or _LOST.search(text):
        raise forms.NotShowableError
    element: Block = {"type": "plain_text_input", "max_length": LONGEST_INPUT}
    element["multiline"] = forms.has_lines(field, text)
    return {**element, "initial_value": text} if text else element


def _number(field: FormField, value: Any, person: Person) -> Block:
    element: Block = {"type": "number_input", "is_decimal_allowed": field.type is FieldType.NUMBER}
    if value is None:
        return element
    number = forms.number_in(field, value)
    return _text(field, value, person) if number is None else {**element, "initial_value": str(number)}


def _date(field: FormField, value: Any, person: Person) -> Block:
    if value is None:
        return {"type": "datepicker"}
    return {"type": "datepicker", "initial_date": value} if forms.is_date(value) else _text(field, value, person)


def _time(field: FormField, value: Any, person: Person) -> Block:
    if value is None:
        return {"type": "timepicker"}
    return {"type": "timepicker", "initial_time": value} if forms.is_time(value) else _text(field, value, person)


def _date_time(field: FormField, value: Any, person: Person) -> Block:
    """A picker, which Slack shows in the person's time zone; text where it could not give the same back."""
    zone = zone_of(person.time_zone)
    if zone is None:
        return _text(field, value, person)
    if value is None:
        return {"type": "datetimepicker"}
    epoch = epoch_of(value, zone)
    return _text(field, value, person) if epoch is None else {"type": "datetimepicker", "initial_date_time": epoch}


def _choice(field: FormField, value: Any, person: Person) -> Block:
    if not 0 < len(field.options) <= MOST_OPTIONS or (value is not None and value not in field.options):
        return _text(field, value, person)
    options = _options(field)
    element: Block = {"type": "static_select", "options": options}
    return element if value is None else {**element, "initial_option": options[field.options.index(value)]}


def _several(field: FormField, value: Any, person: Person) -> Block:
    """Any number of options, for the JSON of a list of them; text for every other JSON."""
    chosen = forms.listed(value)
    as_ticked = [option for option in field.options if option in (chosen or ())]
    if not 0 < len(field.options) <= MOST_OPTIONS or chosen != as_ticked:
        return _text(field, value, person)
    options = _options(field)
    kind = "checkboxes" if len(options) <= MOST_CHECKBOXES else "multi_static_select"
    initial = [option for option, text in zip(options, field.options, strict=True) if text in as_ticked]
    return {"type": kind, "options": options, **({"initial_options": initial} if initial else {})}


def _yes_no(_field: FormField, value: Any, _person: Person) -> Block:
    option = {"text": plain(_("Yes")), "value": "yes"}
    element: Block = {"type": "checkboxes", "options": [option]}
    return {**element, "initial_options": [option]} if forms.is_yes(value) else element


def _user(field: FormField, value: Any, person: Person) -> Block:
    if value is None:
        return {"type": "users_select"}
    if isinstance(value, str) and _USER.fullmatch(value):
        return {"type": "users_select", "initial_user": value}
    return _text(field, value, person)


def _channel(field: FormField, value: Any, person: Person) -> Block:
    element: Block = {"type": "conversations_select", "filter": {"include": ["public", "private"]}}
    if value is None:
        return element
    if isinstance(value, str) and _CHANNEL.fullmatch(value):
        return {**element, "initial_conversation": value}
    return _text(field, value, person)


_DRAWN: dict[FieldType, Callable[[FormField, Any, Person], Block]] = {
    FieldType.NUMBER: _number,
    FieldType.INTEGER: _number,
    FieldType.DATE: _date,
    FieldType.TIME: _time,
    FieldType.DATE_TIME: _date_time,
    FieldType.CHOICE: _choice,
    FieldType.YES_NO: _yes_no,
    FieldType.PERSON: _user,
    FieldType.CHANNEL: _channel,
    FieldType.JSON: _several,
}


# ----------------------------------------------------- submitted values, and where mistakes are shown
_LONGEST_ERROR = 500
"""Characters under an input."""


_ABOUT_THE_WHOLE = ""


_SELECTED = {
    "plain_text_input": "value",
    "number_input": "value",
    "datepicker": "selected_date",
    "timepicker": "selected_time",
    "users_select": "selected_user",
    "conversations_select": "selected_conversation",
}

_BEGINS = {
    "plain_text_input": "initial_value",
    "number_input": "initial_value",
    "datepicker": "initial_date",
    "timepicker": "initial_time",
    "users_select": "initial_user",
    "conversations_select": "initial_conversation",
}
"""What an input of a kind begins with."""


def entries(state_values: Mapping[str, Any], fields: Sequence[FormField], person: Person) -> dict[str, Any]:
    """`view.state.values` by field name: what was typed or chosen, `None` for nothing.

    A field that had no input is not in it, and so keeps its value. Reads anything, raises nothing.
    """
    made: dict[str, Any] = {}
    for field in fields:
        state = _at(_at(state_values, block_of(field.name)), INPUT)
        if isinstance(state, Mapping):
            made[field.name] = _entry(state, field, person)
    return made


def is_unchanged(state_values: Mapping[str, Any], form: Form, person: Person) -> bool:
    """Returns whether what came back of a form is what its inputs began with."""
    drawn = {each.field.name: {INPUT: _begun(each.input["element"])} for each in drawn_inputs(form, person).drawn}
    begun = {block_of(name): state for name, state in drawn.items()}
    fields = [field for field in form.fields if field.name in drawn]
    before, after = entries(begun, fields, person), entries(state_values, fields, person)
    return all((after.get(name) or None) == (value or None) for name, value in before.items())


def _begun(element: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of an input that nobody touched."""
    kind = element["type"]
    match kind:
        case "static_select":
            return {"type": kind, "selected_option": element.get("initial_option")}
        case "checkboxes" | "multi_static_select":
            return {"type": kind, "selected_options": element.get("initial_options", [])}
        case "datetimepicker":
            return {"type": kind, "selected_date_time": element.get("initial_date_time")}
        case _:
            return {"type": kind, _SELECTED[kind]: element.get(_BEGINS[kind])}


def error_blocks(errors: Mapping[str, str], view: Mapping[str, Any]) -> dict[str, str]:
    """Mistakes by the block_id of the input that they are shown under; those of the whole form under the first.

    Empty when the view has no input at all.
    """
    blocks = view.get("blocks")
    inputs = [
        str(block.get("block_id"))
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, Mapping) and block.get("type") == "input"
    ]
    if not inputs:
        return {}
    told: dict[str, list[str]] = {}
    for field, error in errors.items():
        block = block_of(field)
        told.setdefault(block if field != _ABOUT_THE_WHOLE and block in inputs else inputs[0], []).append(error)
    return {block: line(" ".join(sentences), _LONGEST_ERROR) for block, sentences in told.items()}


def _at(values: Any, key: str) -> Any:
    return values.get(key) if isinstance(values, Mapping) else None


def _entry(state: Mapping[str, Any], field: FormField, person: Person) -> Any:
    match state.get("type"):
        case "checkboxes" | "multi_static_select" if field.type is FieldType.JSON:
            return _ticked(state.get("selected_options"), field)
        case "checkboxes":
            return bool(state.get("selected_options"))
        case "static_select":
            return _option(_at(state.get("selected_option"), "value"), field.options)
        case "datetimepicker":
            return _moment(state.get("selected_date_time"), person)
        case str() as kind if kind in _SELECTED:
            value = state.get(_SELECTED[kind])
            return value if isinstance(value, str) else None
        case _:
            return None


def _option(number: Any, options: Sequence[str]) -> str | None:
    position = int(number) if isinstance(number, str) and number.isdecimal() and len(number) < 5 else len(options)
    return options[position] if position < len(options) else None


def _ticked(selected: Any, field: FormField) -> list[str] | None:
    """The options that were ticked. None ticked is an empty list where a list is needed, else no answer."""
    ticked = [_option(_at(one, "value"), field.options) for one in selected] if isinstance(selected, list) else []
    chosen = [option for option in ticked if option is not None]
    return chosen if chosen or field.required else None


def _moment(epoch: Any, person: Person) -> str | None:
    """Returns a time in the person's own zone, as `inputs` asked for it; without a known zone no picker was shown, so
    that UTC is only for requests that no modal of ours made."""
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        return None
    return wall_clock(epoch, zone_of(person.time_zone) or UTC)
