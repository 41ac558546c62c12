"""The answers to invokes, in Teams' own shapes. Pure.

https://learn.microsoft.com/adaptive-cards/authoring-cards/universal-action-model#response-format
https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/task-modules/invoking-task-modules
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.teams.render.dialogs import Dialog, note_dialog

CARD = "application/vnd.microsoft.card.adaptive"
MESSAGE = "application/vnd.microsoft.activity.message"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the door answers."""

    status: int
    body: Mapping[str, Any] | None = None
    """JSON; `None`: nothing."""
    sentence: str = ""
    """What it says in words, for whom it reaches too late; empty: nothing that the card does not show."""


NOTHING = Reply(200)
"""Taken. A dialog closes with it."""


def shown_card(card: Mapping[str, Any]) -> Reply:
    """The card's next state, for whoever clicked alone."""
    return Reply(200, {"statusCode": 200, "type": CARD, "value": card})


def told(text: str) -> Reply:
    """A sentence that only the person who clicked sees; their card stays as it is, inputs included."""
    return Reply(200, {"statusCode": 200, "type": MESSAGE, "value": text}, text)


def opened(dialog: Dialog, sentence: str = "") -> Reply:
    """A dialog, or another one in its place; `sentence`: what it says, where it says something."""
    value = {
        "title": dialog.title,
        "height": dialog.height,
        "width": dialog.width,
        "card": {"contentType": CARD, "content": dialog.card},
    }
    return Reply(200, {"task": {"type": "continue", "value": value}}, sentence)


def said(text: str) -> Reply:
    """A sentence in a dialog's place."""
    return opened(note_dialog(text), text)


def closing(text: str) -> Reply:
    """The end of a dialog: a sentence in its place, or nothing when there is nothing to say."""
    return said(text) if text else NOTHING


def refused(status: int, code: str, message: str) -> Reply:
    """What was sent is not for us; `code` as the Bot Framework names it (`BadArgument`, `NotImplemented`)."""
    return Reply(status, {"error": {"code": code, "message": message}})
