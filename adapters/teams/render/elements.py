"""Words and elements of Adaptive Cards: escaped text, one function for each element, and the size of a card."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from adapters.shared.wording import Space, line
from adapters.teams.actions import action_data, dialog_data
from translations import gettext as _

_NBSP = "\u00a0"
_BLANKS = re.compile(r"(?<=\n) +| {2,}")
_ACTIVE = re.compile(r"(?<=\])\(|[\\`*\[\]~|<]|(?<![^\W_])_|_(?![^\W_])|&(?=#?[A-Za-z0-9]+;)")
"""What could begin or end Markdown within a line. An underscore between letters or digits cannot (CommonMark 6.2).

The bracket after `]` is escaped too, because older Teams apps take no notice of a backslash before `]`."""
_ACTIVE_IN_MESSAGES = re.compile(r"(?<=\])\(|[\\`*\[\]~|]|(?<![^\W_])_|_(?![^\W_])")
"""`_ACTIVE` for messages, without what `escape_message` writes as an entity."""
_MAY_BE_ACTIVE = re.compile(r"[\\`*\[\]~|_]")
_LINE_START = re.compile(
    r"^(?P<before> *[0-9]{1,9}(?=[.)](?:\s|$))| *(?=>|=|#{1,6}(?:\s|$)|[-+](?:[\s-]|$)|:-))(?P<sign>\S)", re.MULTILINE
)
"""A heading, a list, a quotation, a rule, or what makes a heading or a table of the line before."""
_FUNCTION = re.compile(r"\{(?=\{)")
_LOST = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MENTION = re.compile(r"<(?=\s*+/?\s*+at\b)", re.IGNORECASE)


def label(text: str, limit: int, unseen: int = 0) -> str:
    """`line` for a label, a title or a placeholder: nothing in it is a link or a function anywhere."""
    return line(text, limit, unseen).replace("](", "] (").replace("{{", "{ {")


def spaced(text: str) -> str:
    """The text with its blanks kept: clients show several as one, and none at the beginning of a line."""
    return _BLANKS.sub(lambda found: _NBSP * len(found[0]), text.replace("\t", "    "))


def escape(text: str) -> str:
    """Visible text → Markdown of a `TextBlock` or a `FactSet` that shows just this text, line by line."""
    escaped = _FUNCTION.sub(r"{\\", _ACTIVE.sub(r"\\\g<0>", spaced(text)))
    lines = (one for one in escape_line_starts(escaped).split("\n") if one.strip())
    return "\n\n".join(lines)


def escape_message(text: str) -> str:
    """Visible text → Markdown of a message that shows just this text. Beginnings of lines are up to the caller."""
    escaped = _ACTIVE_IN_MESSAGES.sub(r"\\\g<0>", text) if _MAY_BE_ACTIVE.search(text) else text
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_line_starts(markdown: str) -> str:
    """Markdown whose lines are text: none of them begins a heading, a list, a quotation or a rule."""
    return _LINE_START.sub(r"\g<before>\\\g<sign>", markdown)


def without_mentions(code: str) -> str:
    """Code for a message, where nothing can be escaped: Teams' own tag for a mention gets another bracket."""
    return _MENTION.sub("‹", code)


def loses_characters(text: str) -> bool:
    """Whether a client may drop some of it: control characters and halves of surrogate pairs."""
    return _LOST.search(text) is not None


# ----------------------------------------------------------- one function for each element and action
# They build parts; `fitted` makes the whole fit into a card.


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
_BEFORE_FUNCTION = re.compile(r"(?<=\{)(?=\{(?:DATE|TIME)\([0-9]{4}-)")
"""Between the two brackets of what clients replace by a date or a time."""
_EMPTY_LINE = re.compile(r"\n[^\S\n]*(?:\n|\Z)|\A[^\S\n]*\n")
_WIDE_WORD = re.compile(r"[^ \n]{31}")


# ------------------------------------------------------------------------------------------------ text
def words(text: str, **style: Any) -> Words:
    """Literal text; `style` are the properties of a `TextRun`. `text` must be visible, and holds no function that a
    client would replace: such a one is divided between two runs."""
    return tuple({"type": "TextRun", "text": part, **style} for part in _BEFORE_FUNCTION.split(spaced(text)) if part)


def bold(text: str, **style: Any) -> Words:
    """Literal text in bold."""
    return words(text, weight="Bolder", **style)


def rich(*runs: Words, **properties: Any) -> Element:
    """A paragraph of literal text."""
    return {"type": "RichTextBlock", "inlines": [run for some in runs for run in some], **properties}


def text_block(markdown: str, **properties: Any) -> Element:
    """A paragraph of our own words, in Markdown; foreign text in it has been escaped."""
    return {"type": "TextBlock", "text": markdown, "wrap": True, **properties}


def heading(text: str) -> Element:
    """The heading of a card. `text` is literal."""
    return text_block(escape(text), size="Medium", weight="Bolder", style="heading")


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


def titled(text: str, note: str, colour: str) -> Element:
    """The heading of a card with a note of that colour at its end; without one where `note` is empty. Both literal."""
    if not note:
        return heading(text)
    beside = text_block(escape(note), color=colour, weight="Bolder", horizontalAlignment="Right")
    made = [
        {"type": "Column", "width": "stretch", "items": [heading(text)]},
        {"type": "Column", "width": "auto", "items": [beside], "verticalContentAlignment": "Center"},
    ]
    return {"type": "ColumnSet", "columns": made}


def folded(name: str, items: Sequence[Element]) -> Element:
    """Elements that are not seen before `toggles` with that name is pressed."""
    return {"type": "Container", "id": name, "isVisible": False, "items": list(items)}


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


def toggles(title: str, name: str) -> Element:
    """A button that shows, and hides again, what is `folded` under that name. Nobody is told of the click."""
    return {"type": "Action.ToggleVisibility", "title": label(title, _TITLE), "targetElements": [name]}


def in_menu(action: Element) -> Element:
    """The button in the menu at the end of its row. Teams has that menu on desktops and phones since it takes cards of
    our version; a client that takes no notice of `mode` shows six buttons and leaves out the rest. Nothing in it may
    unfold, which does not work there.

    https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-format#adaptive-cards-overflow-menu,
    https://github.com/MicrosoftDocs/msteams-docs/issues/9223
    """
    return {**action, "mode": "secondary"}


# ------------------------------------------------------------------------------------------------ inputs
def text_input(name: str, title: str, *, required: bool, longest: int, **properties: Any) -> Element:
    """An input for a text of several lines."""
    made = {"type": "Input.Text", "id": name, "label": title, "isMultiline": True, "maxLength": longest}
    return {**made, **needed(required=required), **properties}


def text_line(name: str, title: str, *, longest: int) -> Element:
    """An input for one line, which may stay empty."""
    return {"type": "Input.Text", "id": name, "label": title, "maxLength": longest}


def menu(name: str, title: str, choices: Mapping[str, str]) -> Element:
    """A menu, the first of whose choices is chosen. `choices`: what is sent → what people read."""
    offered = [{"title": shown, "value": value} for value, shown in choices.items()]
    made = {"type": "Input.ChoiceSet", "id": name, "label": title, "choices": offered, "value": offered[0]["value"]}
    return {**made, **needed(required=True)}


def people_picker(name: str, title: str) -> Element:
    """Finds one person of the organisation; its value is their object id.

    https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/people-picker
    """
    people = {"type": "Data.Query", "dataset": "graph.microsoft.com/users"}
    made = {"type": "Input.ChoiceSet", "id": name, "label": title, "choices": [], "choices.data": people}
    return {**made, "style": "filtered", "placeholder": _("Type a name")}


def needed(*, required: bool) -> Element:
    """Returns the properties that say that an input has to be filled in, and what is said when it is not."""
    return {"isRequired": True, "errorMessage": _("Required")} if required else {}


# ------------------------------------------------------ size: a card is never larger than Teams takes

LARGEST_CARD = 28 * 1024
"""Bytes of a card or a dialog as JSON (Teams: 28 KB)."""
_SHARES = (1.0, 0.5, 0.25, 0.12, 0.05)


def fitted(build: Callable[[Space], Element], most: int = LARGEST_CARD) -> Element:
    """The largest of the card's sizes that is at most `most` bytes; the smallest where none is."""
    made: Element = {}
    for share in _SHARES:
        made = build(Space(share))
        if weight(made) <= most:
            break
    return made


def weight(value: Mapping[str, Any] | str) -> int:
    """Bytes as JSON in the longer of its two spellings: characters beyond ASCII as escapes."""
    return len(json.dumps(value))
