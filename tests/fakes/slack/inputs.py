"""Buttons and inputs as Slack's own client works them: what is chosen, and how that is sent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.fakes.slack.block_rules import elements_of
from tests.fakes.slack.world import Json

CHOSEN = {
    "plain_text_input": ("value", "initial_value"),
    "number_input": ("value", "initial_value"),
    "email_text_input": ("value", "initial_value"),
    "url_text_input": ("value", "initial_value"),
    "datepicker": ("selected_date", "initial_date"),
    "timepicker": ("selected_time", "initial_time"),
    "datetimepicker": ("selected_date_time", "initial_date_time"),
    "users_select": ("selected_user", "initial_user"),
    "channels_select": ("selected_channel", "initial_channel"),
    "conversations_select": ("selected_conversation", "initial_conversation"),
    "overflow": ("selected_option", ""),
    "static_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "multi_static_select": ("selected_options", "initial_options"),
    "checkboxes": ("selected_options", "initial_options"),
}
"""By type: what a choice is called when it is sent, and what is chosen before anybody touches it."""


def find_element(blocks: list[Json], action_id: str, value: str | None) -> tuple[Json, Json]:
    """The one element with that action_id (and value), or the menu behind ⋯ with an entry that begins with it, with its
    block. Raises `AssertionError`: none, or several."""
    found = [
        (block, element)
        for block in blocks
        for element in elements_of(block)
        if (element.get("action_id") == action_id and (value is None or _takes(element, value)))
        or _entry(element, action_id, value)
    ]
    shown = [(e.get("action_id"), *_values(e)) for block in blocks for e in elements_of(block)]
    assert found, f"there is no {action_id!r} {value or ''} among {shown}"
    assert len(found) == 1, f"there are several {action_id!r}; say which value: {shown}"
    return found[0]


def action(block: Json, element: Json, value: str | None, action_ts: str) -> Json:
    """One entry of `actions` in a block_actions payload."""
    common = {"type": element["type"], "action_id": element["action_id"], "block_id": block["block_id"]}
    match element["type"]:
        case "button":
            told: Json = {name: element[name] for name in ("text", "value", "url", "style") if name in element}
        case "feedback_buttons":
            told = dict(_pressed(element, value))
        case _:
            told = state_of(element, value)
    return {**common, **told, "action_ts": action_ts}


def _entry(element: Json, action: str, subject: str | None) -> Json | None:
    """The entry of a menu behind ⋯ that does this, about that id (or any)."""
    for option in element["options"] if element["type"] == "overflow" else ():
        name, _, about = option["value"].partition(" ")
        if name == action and subject in (None, about):
            return {"text": option["text"], "value": option["value"]}
    return None


def chosen_value(element: Json, action_id: str, value: str | None) -> str | None:
    """What is chosen by an action's name: of a menu behind ⋯ the value of its entry, else as given."""
    found = _entry(element, action_id, value)
    return str(found["value"]) if found else value


def state_values(blocks: list[Json], values: Mapping[str, Any]) -> Json:
    """`view.state.values` when somebody fills in `values`, by block_id or by what stands behind its colon.

    Raises `AssertionError` for what Slack's client does not let through: no such input, a required one left empty,
    an option that is not offered, a text too long or too short.
    """
    state: Json = {}
    unused = dict(values)
    for block in blocks:
        if block["type"] == "input":
            block_id, element = block["block_id"], block["element"]
            name = next((n for n in (block_id, block_id.partition(":")[2]) if n in unused), None)
            chosen = state_of(element, unused.pop(name)) if name is not None else initial_state(element)
            _let_through(block, chosen)
            state[block_id] = {element["action_id"]: chosen}
        else:
            kept = [e for e in elements_of(block) if e["type"] in CHOSEN and e["type"] != "overflow"]
            touched = {e["action_id"]: initial_state(e) for e in kept}
            state |= {block["block_id"]: touched} if touched else {}
    assert not unused, f"there is no input for {sorted(unused)}; there are {sorted(state)}"
    return state


def state_of(element: Json, value: Any) -> Json:
    """What is sent when somebody chooses `value`: text, a number, the `value` (or text) of an option, or several."""
    name, _ = CHOSEN[element["type"]]
    if name == "selected_option":
        return {"type": element["type"], name: None if value is None else _option(element, value)}
    if name == "selected_options":
        return {"type": element["type"], name: [_option(element, one) for one in value or ()]}
    if name == "selected_date_time":
        return {"type": element["type"], name: None if value is None else int(value)}
    return {"type": element["type"], name: None if value in (None, "") else str(value)}


def initial_state(element: Json) -> Json:
    """What is sent when nobody touches it."""
    name, initial = CHOSEN[element["type"]]
    return {"type": element["type"], name: element.get(initial, [] if name == "selected_options" else None)}


def _option(element: Json, value: Any) -> Json:
    for option in element["options"]:
        if str(value) in (option["value"], option["text"]["text"]):
            return {"text": option["text"], "value": option["value"]}
    offered = [(option["value"], option["text"]["text"]) for option in element["options"]]
    raise AssertionError(f"{value!r} is not offered: {offered}")


def _let_through(block: Json, chosen: Json) -> None:
    element, (name, _) = block["element"], CHOSEN[block["element"]["type"]]
    value = chosen[name]
    if not block.get("optional") and not value:
        raise AssertionError(f"Slack's client asks for {block['block_id']!r} before it submits")
    if element["type"] == "plain_text_input" and value:
        least, most = element.get("min_length", 0), element.get("max_length", 3000)
        assert least <= len(value) <= most, f"{block['block_id']!r} takes {least} to {most} characters"


def _takes(element: Json, value: str) -> bool:
    anything = element["type"] in CHOSEN and "options" not in element
    return anything or value in _values(element)


def _values(element: Json) -> Iterator[str]:
    if element["type"] == "feedback_buttons":
        yield from (element[name]["value"] for name in ("positive_button", "negative_button"))
    elif "options" in element:
        yield from (option["value"] for option in element["options"])
    elif "value" in element:
        yield element["value"]


def _pressed(element: Json, value: str | None) -> Iterator[tuple[str, Any]]:
    buttons = [element["positive_button"], element["negative_button"]]
    button = next((b for b in buttons if b["value"] == value), buttons[0])
    yield from (("text", button["text"]), ("value", button["value"]))
