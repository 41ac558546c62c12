"""What came back from a modal → entries by field name, and mistakes in them → the inputs they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from adapters.slack.actions import INPUT, block_of
from adapters.slack.render.clock_times import wall_clock, zone_of
from adapters.slack.render.words import line
from bot.domain import Person
from graph.fields import FieldType, FormField

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
            return _several(state.get("selected_options"), field)
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


def _several(selected: Any, field: FormField) -> list[str] | None:
    """The options that were ticked. None ticked is an empty list where a list is needed, else no answer."""
    ticked = [_option(_at(one, "value"), field.options) for one in selected] if isinstance(selected, list) else []
    chosen = [option for option in ticked if option is not None]
    return chosen if chosen or field.required else None


def _moment(epoch: Any, person: Person) -> str | None:
    """In the person's own time, as `inputs` asked for it; without a known zone no picker was shown, so that UTC is
    only for requests that no modal of ours made."""
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        return None
    return wall_clock(epoch, zone_of(person.time_zone) or UTC)
