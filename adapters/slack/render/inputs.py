"""The fields of a form as inputs of a modal. What Slack cannot show is left out and named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from adapters.shared.wording import line
from adapters.slack.actions import INPUT, block_of
from adapters.slack.render.blocks import Block, plain
from bot.domain import Form, Person
from bot.safe_text import beginning_of_list, holds_unseen
from graph.fields import FieldType, FormField

_EARLIEST, _LATEST = 1_000_000_000, 9_999_999_999
"""Seconds since the epoch that the picker takes (Slack: ten digits): from September 2001 to November 2286."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_MINUTES = "%Y-%m-%dT%H:%M"


def zone_of(name: str) -> tzinfo | None:
    """The time zone of that IANA name; `None` when there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # no such file, no such key, or a key that is no key at all
        return None


def is_date(value: Any) -> bool:
    """Whether it is a day written as `2026-11-21`."""
    try:
        return isinstance(value, str) and bool(_DATE.fullmatch(value)) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def is_time(value: Any) -> bool:
    """Whether it is a time of day written as `09:30`."""
    return isinstance(value, str) and bool(_TIME.fullmatch(value))


def epoch_of(value: Any, zone: tzinfo) -> int | None:
    """Seconds since the epoch of a wall clock time `2026-11-21T09:30` in a zone.

    `None` when it is written otherwise (with seconds, or an offset), when the zone's clocks skip it, or when the
    picker could not hold it: then the picker would give something else back.
    """
    if not isinstance(value, str) or not is_date(value[:10]) or value[10:11] != "T" or not is_time(value[11:]):
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


# -------------------------------------------------------------- fields of a form as inputs of a modal
# What Slack cannot show is left out and named.

MOST_INPUTS = 95
"""Inputs of a modal, so that there is room for words around them (Slack: 100 blocks)."""
LONGEST_INPUT = 3_000
"""Characters in a text input (Slack)."""
MOST_OPTIONS = 100
"""Options of a select menu (Slack)."""
MOST_CHECKBOXES = 10
"""Options of a group of checkboxes (Slack)."""
LONGEST_OPTION = 75
"""Characters of an option's text (Slack)."""
_MOST_BYTES = 200_000
"""Of all inputs as JSON (Slack: a view has 250 KB)."""
_LABEL = 150
_HINT = 600
_LONGEST_NUMBER = 15
"""Digits that a number keeps in everybody's JSON."""
_USER = re.compile(r"[UW][A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")
_LOST = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""What a text input may drop: control characters and halves of surrogate pairs."""
_YES = ("yes", "true", "on", "1")


@dataclass(frozen=True, slots=True)
class SlackInputs:
    """A form's inputs, and what is not among them."""

    blocks: tuple[Block, ...]
    kept: tuple[str, ...]
    """Labels of the fields that stay as they are."""


class NotShowableError(Exception):
    """No input of Slack's can hold the value and give it back unchanged."""


def input_blocks(form: Form, person: Person) -> SlackInputs:
    """An input for each field, in order, as many as a modal holds. Raises nothing."""
    blocks: list[Block] = []
    kept: list[str] = []
    room = _MOST_BYTES
    for field in _each_once(form.fields):
        try:
            block = _input(field, form.values.get(field.name, field.default), person)
        except NotShowableError:
            kept.append(_label(field))
            continue
        size = len(json.dumps(block))
        if len(blocks) == MOST_INPUTS or size > room:
            kept.append(_label(field))
        else:
            blocks.append(block)
            room -= size
    return SlackInputs(tuple(blocks), tuple(kept))


def _each_once(fields: Iterable[FormField]) -> Iterable[FormField]:
    """The first field of each name, since the names tell inputs apart."""
    first: dict[str, FormField] = {}
    for field in fields:
        first.setdefault(field.name, field)
    return first.values()


def text_input(name: str, label: str, *, optional: bool = False) -> Block:
    """An input for a text of several lines."""
    element = {"type": "plain_text_input", "action_id": INPUT, "multiline": True, "max_length": LONGEST_INPUT}
    return {
        "type": "input",
        "block_id": block_of(name),
        "label": plain(label),
        "element": element,
        "optional": optional,
    }


def option_texts(options: Sequence[str]) -> list[str]:
    """What is shown for each option: at most 75 characters, and numbered where two would read alike."""
    shown = [line(option, LONGEST_OPTION) for option in options]
    if len(set(shown)) == len(shown):
        return shown
    return [line(f"{number}. {text}", LONGEST_OPTION) for number, text in enumerate(shown, 1)]


def _input(field: FormField, value: Any, person: Person) -> Block:
    if not field.name.isprintable():
        raise NotShowableError  # it names the input to Slack, and has to come back as it is
    element = _DRAWN.get(field.type, _text)(field, value, person)
    hint = _hint(field, value, element)
    block = {
        "type": "input",
        "block_id": block_of(field.name),
        "label": plain(_label(field)),
        "element": {**element, "action_id": INPUT},
        # Checkboxes of which one has to be ticked could not say no, nor none of these.
        "optional": not field.required or element["type"] in ("checkboxes", "multi_static_select"),
    }
    return {**block, "hint": plain(hint)} if hint else block


def _label(field: FormField) -> str:
    return line(field.label or field.name, _LABEL)


def _hint(field: FormField, value: Any, element: Block) -> str:
    hints = [field.help] if field.help.strip() else []
    unseen = 0
    if element["type"] == "plain_text_input":
        hints += [text for kind, text in _WANTED.items() if kind is field.type]
        if field.options:
            several = "As a JSON list, any of" if field.type is FieldType.JSON else "One of"
            options, unseen = beginning_of_list(field.options, ", ", _HINT)
            hints.append(f"{several}: {options}.")
        if isinstance(value, str) and holds_unseen(value):
            hints.append(f"Holds characters that cannot be seen: {value}")
    text, further = beginning_of_list(hints, " ", _HINT)
    return line(text, _HINT, unseen + further) if hints else ""


_WANTED = {
    FieldType.DATE: "A date such as 2026-11-21.",
    FieldType.TIME: "A time such as 09:30.",
    FieldType.DATE_TIME: "A date and time such as 2026-11-21T09:30.",
    FieldType.NUMBER: "A number.",
    FieldType.INTEGER: "A whole number.",
    FieldType.YES_NO: "Yes or no.",
}


# ------------------------------------------------------------------------------------------------ elements
def _text(field: FormField, value: Any, _person: Person) -> Block:
    """A text input with whatever the value is; the last resort of every other kind. Raises `NotShowableError`."""
    text = _written(value)
    if len(text) > LONGEST_INPUT or _LOST.search(text):
        raise NotShowableError
    element: Block = {"type": "plain_text_input", "max_length": LONGEST_INPUT}
    element["multiline"] = field.multiline or field.type is FieldType.JSON or "\n" in text or "\r" in text
    return {**element, "initial_value": text} if text else element


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


def _number(field: FormField, value: Any, person: Person) -> Block:
    decimal = field.type is FieldType.NUMBER
    element: Block = {"type": "number_input", "is_decimal_allowed": decimal}
    if value is None:
        return element
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return _text(field, value, person)
    if not decimal and not float(value).is_integer():
        return _text(field, value, person)
    written = str(value) if decimal else str(int(value))
    if len(written) > _LONGEST_NUMBER or "e" in written:
        return _text(field, value, person)
    return {**element, "initial_value": written}


def _date(field: FormField, value: Any, person: Person) -> Block:
    if value is None:
        return {"type": "datepicker"}
    return {"type": "datepicker", "initial_date": value} if is_date(value) else _text(field, value, person)


def _time(field: FormField, value: Any, person: Person) -> Block:
    if value is None:
        return {"type": "timepicker"}
    return {"type": "timepicker", "initial_time": value} if is_time(value) else _text(field, value, person)


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
    options = [{"text": plain(text), "value": str(number)} for number, text in enumerate(option_texts(field.options))]
    element: Block = {"type": "static_select", "options": options}
    return element if value is None else {**element, "initial_option": options[field.options.index(value)]}


def _several(field: FormField, value: Any, person: Person) -> Block:
    """Any number of options, for the JSON of a list of them; text for every other JSON."""
    chosen = _listed(value)
    as_ticked = [option for option in field.options if option in (chosen or ())]
    if not 0 < len(field.options) <= MOST_OPTIONS or chosen != as_ticked:
        return _text(field, value, person)
    options = [{"text": plain(text), "value": str(number)} for number, text in enumerate(option_texts(field.options))]
    kind = "checkboxes" if len(options) <= MOST_CHECKBOXES else "multi_static_select"
    initial = [option for option, text in zip(options, field.options, strict=True) if text in as_ticked]
    return {"type": kind, "options": options, **({"initial_options": initial} if initial else {})}


def _listed(value: Any) -> list[str] | None:
    """A list of texts, from the JSON of one too; `None`: it is something else."""
    try:
        items = json.loads(value) if isinstance(value, str) and value.strip() else value or []
    except (ValueError, RecursionError):
        return None
    return items if isinstance(items, list) and all(isinstance(item, str) for item in items) else None


def _yes_no(_field: FormField, value: Any, _person: Person) -> Block:
    option = {"text": plain("Yes"), "value": "yes"}
    ticked = value is True or (isinstance(value, str) and value.strip().lower() in _YES)
    element: Block = {"type": "checkboxes", "options": [option]}
    return {**element, "initial_options": [option]} if ticked else element


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
