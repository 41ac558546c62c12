"""Buttons and inputs of a card as Teams' own client works them: what is found, filled in and sent. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.fakes.teams.world import Json

CARD = "application/vnd.microsoft.card.adaptive"
_FIELD = "field:"


def card_in(message: Mapping[str, Any]) -> Json:
    """The card of a message. Raises `AssertionError`: it has none."""
    for attachment in message.get("attachments", []):
        if attachment.get("contentType") == CARD:
            return dict(attachment["content"])
    raise AssertionError(f"the message has no card: {message.get('text', '')!r}")


def actions_of(card: Mapping[str, Any]) -> Iterator[tuple[Json, list[Json]]]:
    """All actions of a card, also those behind or instead of `Action.ShowCard`, each with the inputs that it sends."""
    inputs = list(inputs_of(card))
    for action in _buttons(card):
        if action.get("type") == "Action.ShowCard":
            yield from ((inner, [*inputs, *more]) for inner, more in actions_of(action["card"]))
            if isinstance(action.get("fallback"), dict):
                yield action["fallback"], inputs
        else:
            yield action, [] if action.get("associatedInputs") == "none" else inputs


def inputs_of(node: Any) -> Iterator[Json]:
    """The inputs of a card's body; those of cards behind buttons are not among them."""
    for child in _children(node):
        if str(child.get("type", "")).startswith("Input."):
            yield child
        yield from inputs_of(child)


def find_action(card: Mapping[str, Any], name: str, subject: str = "") -> tuple[Json, list[Json]]:
    """The one action with our name (and id), and the inputs it sends. Raises `AssertionError`: none, or several."""
    found = [
        (action, inputs)
        for action, inputs in actions_of(card)
        if _ours(action) == name and subject in ("", _data(action).get("id"))
    ]
    shown = [(_ours(action), _data(action).get("id")) for action, _ in actions_of(card)]
    assert found, f"there is no {name!r} {subject} among {shown}"
    assert all(_data(action) == _data(found[0][0]) for action, _ in found), (
        f"there are several {name!r}; say which subject: {shown}"
    )
    return found[-1]  # the button itself, where another falls back to the same


def filled(inputs: list[Json], values: Mapping[str, Any]) -> Json:
    """What is sent when somebody fills in `values`, by an input's id or its field's name; the rest stays as it is.

    Raises `AssertionError` for what Teams' client does not let through: no such input, a required one left empty,
    what its pattern or bounds forbid, a choice that is not offered.
    """
    unused, sent = dict(values), {}
    for one in inputs:
        name = one["id"]
        key = name if name in unused else name.removeprefix(_FIELD)
        value = _sent(one, unused.pop(key)) if key in unused else str(one.get("value", ""))
        if one["type"] == "Input.Toggle" and value == "":
            value = one.get("valueOff", "false")
        _let_through(one, value)
        if value != "" or one["type"] in ("Input.Text", "Input.ChoiceSet"):
            sent[name] = value
    assert not unused, f"there is no input for {sorted(unused)}; there are {[one['id'] for one in inputs]}"
    return sent


def _sent(one: Json, value: Any) -> str:
    """Teams sends every value as text."""
    if one["type"] == "Input.Toggle" and isinstance(value, bool):
        return str(one.get("valueOn", "true") if value else one.get("valueOff", "false"))
    if one["type"] != "Input.ChoiceSet":
        return "" if value is None else str(value)
    chosen = value if isinstance(value, (list, tuple)) else [] if value in (None, "") else [value]
    return ",".join(_choice(one, single) for single in chosen)


def _choice(one: Json, value: Any) -> str:
    if "choices.data" in one:
        return str(value)  # whoever the people picker has found
    for choice in one["choices"]:
        if str(value) in (choice["value"], choice["title"]):
            return str(choice["value"])
    raise AssertionError(f"{value!r} is not offered: {one['choices']}")


def _let_through(one: Json, value: str) -> None:
    name = one["id"]
    assert value or not one.get("isRequired"), f"Teams' client asks for {name!r} before it sends"
    if not value:
        return
    if one["type"] == "Input.Text":
        assert len(value) <= one.get("maxLength", len(value)), f"{name!r} takes {one['maxLength']} characters"
        assert "\n" not in value or one.get("isMultiline"), f"{name!r} has one line"
        pattern = one.get("regex")
        assert not pattern or re.search(pattern, value), f"{name!r} does not match {pattern}"
    elif one["type"] == "Input.Number":
        number = float(value)
        assert one.get("min", number) <= number <= one.get("max", number), f"{name!r} is out of bounds"
    elif one["type"] in ("Input.Date", "Input.Time"):
        shape = r"\d{4}-\d\d-\d\d" if one["type"] == "Input.Date" else r"\d\d:\d\d"
        assert re.fullmatch(shape, value), f"{name!r} cannot be {value!r}"
        assert one.get("min", value) <= value <= one.get("max", value), f"{name!r} is out of bounds"


def _buttons(node: Any) -> Iterator[Json]:
    """The actions of a card and of the sets and elements in it."""
    if isinstance(node, Mapping):
        yield from (action for action in node.get("actions", []) if isinstance(action, dict))
        if isinstance(node.get("selectAction"), dict):
            yield node["selectAction"]
    for child in _children(node):
        yield from _buttons(child)


def _children(node: Any) -> Iterator[Json]:
    for name in ("body", "items", "columns", "rows", "cells"):
        for child in node.get(name, []) if isinstance(node, Mapping) else ():
            if isinstance(child, dict):
                yield child


def _data(action: Mapping[str, Any]) -> Json:
    data = action.get("data")
    return data if isinstance(data, dict) else {}


def _ours(action: Mapping[str, Any]) -> Any:
    return _data(action).get("countersign")
