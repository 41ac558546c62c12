"""What was filled in → entries by field name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.teams.actions import input_id
from adapters.teams.render.inputs import Drawn, inputs, time_id
from bot.domain import Form

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
