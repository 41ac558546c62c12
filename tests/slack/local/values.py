"""What a modal's inputs are submitted as: `state.values`, of which local-slack keeps only what its page has touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYS = {
    "plain_text_input": ("initial_value", "value"),
    "number_input": ("initial_value", "value"),
    "email_text_input": ("initial_value", "value"),
    "url_text_input": ("initial_value", "value"),
    "datepicker": ("initial_date", "selected_date"),
    "timepicker": ("initial_time", "selected_time"),
    "datetimepicker": ("initial_date_time", "selected_date_time"),
    "static_select": ("initial_option", "selected_option"),
    "radio_buttons": ("initial_option", "selected_option"),
    "checkboxes": ("initial_options", "selected_options"),
    "users_select": ("initial_user", "selected_user"),
    "channels_select": ("initial_channel", "selected_channel"),
    "conversations_select": ("initial_conversation", "selected_conversation"),
}
"""Element → where it keeps what it begins with, and where Slack reports what was entered."""


def inputs_of(view: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The input blocks of a modal by their label."""
    return {block["label"]["text"]: block for block in view["blocks"] if block["type"] == "input"}


def state_values(view: Mapping[str, Any], entered: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`state.values` as Slack sends them: what was entered by label, and for the rest what the inputs began with.

    Raises `AssertionError` for a label that the modal does not have.
    """
    inputs = inputs_of(view)
    assert set(entered) <= set(inputs), f"{set(entered) - set(inputs)} is not among {list(inputs)}"
    return {
        block["block_id"]: {block["element"]["action_id"]: _state(block["element"], label, entered)}
        for label, block in inputs.items()
    }


def _state(element: Mapping[str, Any], label: str, entered: Mapping[str, Any]) -> dict[str, Any]:
    initial, reported = _KEYS[element["type"]]
    value = element.get(initial)
    if label in entered:
        value = _chosen(element, entered[label])
    return {"type": element["type"], reported: [] if value is None and reported == "selected_options" else value}


def _chosen(element: Mapping[str, Any], value: Any) -> Any:
    match element["type"]:
        case "static_select" | "radio_buttons":
            return next(option for option in element["options"] if option["text"]["text"] == value)
        case "checkboxes":
            return [option for option in element["options"] if option["text"]["text"] in value]
        case _:
            return value
