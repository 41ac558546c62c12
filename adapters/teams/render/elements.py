"""The building bricks of Adaptive Cards: one small function for each element and action that we use.

They build. That the whole fits into a card is seen to by `room.fitted`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adapters.teams.actions import action_data, dialog_data
from adapters.teams.render.text import escape, label, spaced

Element = dict[str, Any]
"""An element, an inline or an action, as JSON."""
Card = Mapping[str, Any]
"""An Adaptive Card, as JSON."""
Words = tuple[Element, ...]
"""Text runs."""

VERSION = "1.5"
"""The newest version that every Teams client shows."""
_TITLE = 60
_SPOKEN = 300
_FUNCTION = re.compile(r"(?<=\{)(?=\{(?:DATE|TIME)\([0-9]{4}-)")
"""Between the two brackets of what clients replace by a date or a time."""
_EMPTY_LINE = re.compile(r"\n[^\S\n]*(?:\n|\Z)|\A[^\S\n]*\n")
_WIDE_WORD = re.compile(r"[^ \n]{31}")

# ------------------------------------------------------------------------------------------------ text


def words(text: str, **style: Any) -> Words:
    """Literal text; `style` are the properties of a `TextRun`. `text` must be visible, and holds no function that a
    client would replace: such a one is divided between two runs."""
    return tuple({"type": "TextRun", "text": part, **style} for part in _FUNCTION.split(spaced(text)) if part)


def bold(text: str) -> Words:
    """Literal text in bold."""
    return words(text, weight="Bolder")


def rich(*runs: Words, **properties: Any) -> Element:
    """A paragraph of literal text."""
    return {"type": "RichTextBlock", "inlines": [run for some in runs for run in some], **properties}


def text_block(markdown: str, **properties: Any) -> Element:
    """A paragraph of our own words, in Markdown; foreign text in it has been escaped."""
    return {"type": "TextBlock", "text": markdown, "wrap": True, **properties}


def heading(text: str) -> Element:
    """The heading of a card. `text` is literal."""
    return text_block(escape(text), size="Large", weight="Bolder", style="heading")


def small(markdown: str) -> Element:
    """Small print: our own words, in Markdown."""
    return text_block(markdown, size="Small", isSubtle=True, spacing="Small")


def fact_set(facts: Iterable[tuple[str, str]]) -> list[Element]:
    """Labels and values, all of them literal; none for no facts.

    Clients clip words that are wider than a column, and leave out empty lines, so that facts with such a word or line
    stand below, each as a paragraph.
    """
    narrow: list[Element] = []
    wide: list[Element] = []
    for name, value in facts:
        if _EMPTY_LINE.search(value) or _WIDE_WORD.search(spaced(f"{name}\n{value}")):
            wide.append(rich(bold(f"{name}: "), words(value), spacing="Small"))
        else:
            narrow.append({"title": escape(name), "value": escape(value)})
    return [*([{"type": "FactSet", "facts": narrow}] if narrow else []), *wide]


# ------------------------------------------------------------------------------------------------ containers


def container(style: str, *items: Element, **properties: Any) -> Element:
    """Elements on a coloured ground: `default`, `emphasis`, `good`, `attention`, `warning` or `accent`."""
    return {"type": "Container", "style": style, "items": list(items), **properties}


def columns(*items: Element) -> Element:
    """Elements side by side, each as wide as the others."""
    made = [{"type": "Column", "width": "stretch", "items": [item]} for item in items]
    return {"type": "ColumnSet", "columns": made}


def action_set(*actions: Element) -> Element:
    """A row of buttons within a card."""
    return {"type": "ActionSet", "actions": list(actions)}


def card(body: Sequence[Element], actions: Sequence[Element] = (), *, summary: str) -> Element:
    """A card; `summary` says in a sentence what it is about, for clients that cannot show it and for screen readers."""
    spoken = label(summary, _SPOKEN)
    made: Element = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": VERSION,
        "fallbackText": spoken,
        # Speech may be SSML, in which angle brackets mean something.
        "speak": html.escape(spoken, quote=False),
        "msteams": {"width": "full"},
        "body": list(body),
    }
    return {**made, "actions": list(actions)} if actions else made


# ------------------------------------------------------------------------------------------------ actions


def execute(title: str, name: str, subject: str, *, inputs: str = "none", **properties: Any) -> Element:
    """A button whose click is answered with the card's next state; where a client does not know that, with a message.

    `inputs`: `auto` when what is filled in on the card belongs to it.
    """
    data, shown = action_data(name, subject), label(title, _TITLE)
    common = {"title": shown, "data": data, "associatedInputs": inputs, **properties}
    return {"type": "Action.Execute", "verb": name, **common, "fallback": {"type": "Action.Submit", **common}}


def submit(title: str, name: str, subject: str, *, inputs: str = "auto", **properties: Any) -> Element:
    """A button of a dialog, which sends what was filled in."""
    common = {"title": label(title, _TITLE), "data": action_data(name, subject), "associatedInputs": inputs}
    return {"type": "Action.Submit", **common, **properties}


def opens_dialog(title: str, name: str, subject: str, **properties: Any) -> Element:
    """A button that opens a dialog."""
    common = {"title": label(title, _TITLE), "data": dialog_data(name, subject), "associatedInputs": "none"}
    return {"type": "Action.Submit", **common, **properties}


def opens_page(title: str, url: str, **properties: Any) -> Element:
    """A button that opens a web page. Teams does not tell us of the click."""
    return {"type": "Action.OpenUrl", "title": label(title, _TITLE), "url": url, **properties}


def unfolds(title: str, body: Sequence[Element], actions: Sequence[Element], **properties: Any) -> Element:
    """A button that shows more of the card: something to fill in, and more buttons."""
    inner = {"type": "AdaptiveCard", "version": VERSION, "body": list(body), "actions": list(actions)}
    return {"type": "Action.ShowCard", "title": label(title, _TITLE), "card": inner, **properties}


# ------------------------------------------------------------------------------------------------ inputs


def text_input(name: str, title: str, *, required: bool, longest: int, **properties: Any) -> Element:
    """An input for a text of several lines."""
    made = {"type": "Input.Text", "id": name, "label": title, "isMultiline": True, "maxLength": longest}
    return {**made, **needed(required=required), **properties}


def text_line(name: str, title: str, *, longest: int) -> Element:
    """An input for one line, which may stay empty."""
    return {"type": "Input.Text", "id": name, "label": title, "maxLength": longest}


def menu(name: str, title: str, choices: Iterable[str]) -> Element:
    """A menu, the first of whose choices is chosen."""
    offered = [{"title": each, "value": each} for each in choices]
    made = {"type": "Input.ChoiceSet", "id": name, "label": title, "choices": offered, "value": offered[0]["value"]}
    return {**made, **needed(required=True)}


def people_picker(name: str, title: str) -> Element:
    """Finds one person of the organisation; its value is their object id.

    https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/people-picker
    """
    people = {"type": "Data.Query", "dataset": "graph.microsoft.com/users"}
    made = {"type": "Input.ChoiceSet", "id": name, "label": title, "choices": [], "choices.data": people}
    return {**made, "style": "filtered", "placeholder": "Type a name"}


def needed(*, required: bool) -> Element:
    """That an input has to be filled in, and what is said when it is not."""
    return {"isRequired": True, "errorMessage": "This is needed."} if required else {}
