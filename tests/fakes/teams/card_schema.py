"""The part of Adaptive Cards 1.5 that our product uses: which properties things have, and what may stand in them.

https://adaptivecards.io/explorer, Microsoft's adaptive-card.json 1.5. Left out are images, media and sign-in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Check = Callable[[Any], str]
"""What is wrong with a value; empty: nothing."""


@dataclass(frozen=True)
class Kind:
    """An element, an action or a part of one."""

    properties: Mapping[str, Check]
    required: frozenset[str] = frozenset()
    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Properties that are lists of other things, and of which types."""
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Properties that are one other thing."""
    default: bool = False
    """Whether `type` may be left out."""


def one_of(*words: str) -> Check:
    """One of these words, in whatever case."""

    def check(value: Any) -> str:
        known = isinstance(value, str) and value.lower() in words
        return "" if known else f"{value!r} is none of {', '.join(words)}"

    return check


def text(value: Any) -> str:
    """Any text."""
    if not isinstance(value, str):
        return f"{type(value).__name__} is no text"
    return "half a character" if any("\ud800" <= character <= "\udfff" for character in value) else ""


def said(value: Any) -> str:
    """A text that is not empty: clients leave empty ones out."""
    return text(value) or ("" if value else "it is empty")


def flag(value: Any) -> str:
    """Yes or no."""
    return "" if isinstance(value, bool) else f"{value!r} is neither true nor false"


def number(value: Any) -> str:
    """A number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if is_number else f"{value!r} is no number"


def length(value: Any) -> str:
    """A count of characters."""
    return "" if isinstance(value, int) and not isinstance(value, bool) and value > 0 else f"{value!r} is no length"


def matching(pattern: str) -> Check:
    """A text of this shape."""

    def check(value: Any) -> str:
        matches = isinstance(value, str) and re.fullmatch(pattern, value)
        return "" if matches else f"{value!r} is not of the shape {pattern}"

    return check


def width(value: Any) -> str:
    """Of a column: `auto`, `stretch`, a weight, or pixels."""
    return "" if not number(value) else matching(r"auto|stretch|\d+(px)?")(value)


def pattern(value: Any) -> str:
    """A regular expression."""
    try:
        re.compile(value)
    except (TypeError, re.error) as wrong:
        return f"no regular expression: {wrong}"
    return ""


def anything(_value: Any) -> str:
    """Checked elsewhere."""
    return ""


PIXELS = matching(r"\d+px")
DATE = matching(r"\d{4}-\d\d-\d\d")
TIME = matching(r"\d\d:\d\d")
COLOUR = one_of("default", "dark", "light", "accent", "good", "warning", "attention")
STYLE = one_of("default", "emphasis", "good", "attention", "warning", "accent")
ALIGNED = one_of("left", "center", "right")
UPRIGHT = one_of("top", "center", "bottom")

SELECTED = frozenset({"Action.Execute", "Action.OpenUrl", "Action.Submit", "Action.ToggleVisibility"})
ACTIONS = SELECTED | {"Action.ShowCard"}
INPUTS = frozenset(f"Input.{name}" for name in ("Text", "Number", "Date", "Time", "Toggle", "ChoiceSet"))
ELEMENTS = INPUTS | {"TextBlock", "RichTextBlock", "Container", "ColumnSet", "FactSet", "ActionSet", "Table"}

_SPACED: dict[str, Check] = {
    "id": said,
    "isVisible": flag,
    "separator": flag,
    "spacing": one_of("default", "none", "small", "medium", "large", "extralarge", "padding"),
}
_ELEMENT: dict[str, Check] = {**_SPACED, "height": one_of("auto", "stretch"), "fallback": one_of("drop")}
_LETTERS: dict[str, Check] = {
    "text": said,
    "color": COLOUR,
    "fontType": one_of("default", "monospace"),
    "isSubtle": flag,
    "size": one_of("default", "small", "medium", "large", "extralarge"),
    "weight": one_of("default", "lighter", "bolder"),
}
_BOX: dict[str, Check] = {
    "style": STYLE,
    "verticalContentAlignment": UPRIGHT,
    "bleed": flag,
    "minHeight": PIXELS,
    "rtl": flag,
}
_CELLS: dict[str, Check] = {"horizontalCellContentAlignment": ALIGNED, "verticalCellContentAlignment": UPRIGHT}
_INPUT: dict[str, Check] = {**_ELEMENT, "label": said, "isRequired": flag, "errorMessage": said}
_ACTION: dict[str, Check] = {
    "title": said,
    "id": said,
    "style": one_of("default", "positive", "destructive"),
    "tooltip": said,
    "isEnabled": flag,
    "mode": one_of("primary", "secondary"),
}
_SENDS: dict[str, Check] = {**_ACTION, "data": anything, "associatedInputs": one_of("auto", "none")}
_NEEDS_ID = frozenset({"id"})


def _input(*required: str, lists: Mapping[str, frozenset[str]] | None = None, **properties: Check) -> Kind:
    return Kind({**_INPUT, **properties}, _NEEDS_ID | set(required), lists or {})


KINDS: dict[str, Kind] = {
    "AdaptiveCard": Kind(
        {
            "version": matching(r"1\.[0-5]"),
            "$schema": text,
            "fallbackText": said,
            "speak": said,
            "lang": said,
            "minHeight": PIXELS,
            "rtl": flag,
            "verticalContentAlignment": UPRIGHT,
            "msteams": anything,
        },
        frozenset({"body"}),
        lists={"body": ELEMENTS, "actions": ACTIONS},
        parts={"refresh": frozenset({"Refresh"}), "selectAction": SELECTED},
    ),
    "Refresh": Kind(
        {"userIds": anything},
        frozenset({"action"}),
        parts={"action": frozenset({"Action.Execute"})},
        default=True,
    ),
    "TextBlock": Kind(
        {
            **_ELEMENT,
            **_LETTERS,
            "horizontalAlignment": ALIGNED,
            "maxLines": length,
            "wrap": flag,
            "style": one_of("default", "heading"),
        },
        frozenset({"text"}),
    ),
    "RichTextBlock": Kind(
        {**_ELEMENT, "horizontalAlignment": ALIGNED},
        frozenset({"inlines"}),
        lists={"inlines": frozenset({"TextRun"})},
    ),
    "TextRun": Kind(
        {**_LETTERS, "highlight": flag, "italic": flag, "strikethrough": flag, "underline": flag},
        frozenset({"text"}),
        parts={"selectAction": SELECTED},
    ),
    "Container": Kind(
        {**_ELEMENT, **_BOX}, frozenset({"items"}), lists={"items": ELEMENTS}, parts={"selectAction": SELECTED}
    ),
    "ColumnSet": Kind(
        {**_ELEMENT, "style": STYLE, "bleed": flag, "minHeight": PIXELS, "horizontalAlignment": ALIGNED},
        frozenset({"columns"}),
        lists={"columns": frozenset({"Column"})},
        parts={"selectAction": SELECTED},
    ),
    "Column": Kind(
        {**_SPACED, **_BOX, "width": width, "fallback": one_of("drop")},
        frozenset({"items"}),
        lists={"items": ELEMENTS},
        parts={"selectAction": SELECTED},
        default=True,
    ),
    "FactSet": Kind(_ELEMENT, frozenset({"facts"}), lists={"facts": frozenset({"Fact"})}),
    "Fact": Kind({"title": said, "value": said}, frozenset({"title", "value"}), default=True),
    "ActionSet": Kind(_ELEMENT, frozenset({"actions"}), lists={"actions": ACTIONS}),
    "Table": Kind(
        {**_ELEMENT, **_CELLS, "firstRowAsHeader": flag, "showGridLines": flag, "gridStyle": STYLE},
        frozenset({"columns", "rows"}),
        lists={"columns": frozenset({"TableColumnDefinition"}), "rows": frozenset({"TableRow"})},
    ),
    "TableColumnDefinition": Kind({**_CELLS, "width": width}, default=True),
    "TableRow": Kind(
        {**_CELLS, "style": STYLE}, frozenset({"cells"}), lists={"cells": frozenset({"TableCell"})}, default=True
    ),
    "TableCell": Kind(
        _BOX, frozenset({"items"}), lists={"items": ELEMENTS}, parts={"selectAction": SELECTED}, default=True
    ),
    "Input.Text": _input(
        isMultiline=flag,
        maxLength=length,
        placeholder=said,
        regex=pattern,
        style=one_of("text", "tel", "url", "email", "password"),
        value=text,
    ),
    "Input.Number": _input(min=number, max=number, placeholder=said, value=number),
    "Input.Date": _input(min=DATE, max=DATE, placeholder=said, value=DATE),
    "Input.Time": _input(min=TIME, max=TIME, placeholder=said, value=TIME),
    "Input.Toggle": _input("title", title=said, value=text, valueOn=text, valueOff=text, wrap=flag),
    "Input.ChoiceSet": _input(
        "choices",
        lists={"choices": frozenset({"Input.Choice"})},
        **{"choices.data": anything},
        isMultiSelect=flag,
        style=one_of("compact", "expanded", "filtered"),
        value=text,
        placeholder=said,
        wrap=flag,
    ),
    "Input.Choice": Kind({"title": said, "value": said}, frozenset({"title", "value"}), default=True),
    "Action.Execute": Kind(
        {**_SENDS, "verb": said}, frozenset({"verb"}), parts={"fallback": frozenset({"Action.Submit"})}
    ),
    "Action.Submit": Kind(_SENDS),
    "Action.OpenUrl": Kind({**_ACTION, "url": said}, frozenset({"url"})),
    "Action.ShowCard": Kind(
        _ACTION,
        frozenset({"card"}),
        parts={"card": frozenset({"AdaptiveCard"}), "fallback": frozenset({"Action.Execute", "Action.Submit"})},
    ),
    "Action.ToggleVisibility": Kind({**_ACTION, "targetElements": anything}, frozenset({"targetElements"})),
}
