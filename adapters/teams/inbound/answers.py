"""How the person who did something is answered: nobody else sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from adapters.shared.calls import CallFailed
from adapters.teams.ids import Activity, person_id
from adapters.teams.inbound.visitors import TeamsVisitor
from adapters.teams.render.dialogs import Dialog, note_dialog
from adapters.teams.render.posts import note
from adapters.teams.sender import TeamsSender
from bot.domain import Person, Unwelcome
from translations import choose, in_language, language
from translations import gettext as _

log = structlog.get_logger(__name__)


def not_found_out() -> str:
    """Returns what is said to somebody who could not be looked up."""
    return _("Couldn’t check who you are in Teams, so nothing changed. Try again.")


def not_counted() -> str:
    """Returns the one thing that others may see of a refusal: where neither a targeted message nor a chat exists."""
    return _("Someone’s click didn’t count. Open a chat with me first, so that I can say why.")


@contextmanager
def for_one(visitor: TeamsVisitor) -> Iterator[None]:
    """Within it, what is written is for this person alone, and in their language."""
    with in_language(choose(visitor.caller.locale)):
        yield


class TeamsAnswers:
    """Says who somebody is, and answers them alone: in their language, within `for_one`. What others may read is in
    the language in which this was made."""

    def __init__(self, sender: TeamsSender) -> None:
        self._sender = sender
        self._shared = language()

    async def who(self, visitor: TeamsVisitor) -> Person | Unwelcome:
        """Who it is who does something. Whoever cannot be looked up now is not let in."""
        caller = visitor.caller
        try:
            return await self._sender.people.admitted(visitor.location, caller)
        except CallFailed as failure:
            log.warning("teams_person_not_known", tenant=caller.tenant, user=caller.user, error=failure.error)
            return Unwelcome(not_found_out())

    async def say(self, visitor: TeamsVisitor, text: str, *, instead: Callable[[], str] | None = not_counted) -> None:
        """A sentence, for them alone; where that is impossible, what `instead` writes for everybody there."""
        await self.tell(visitor, note(text), None if instead is None else lambda: note(instead()))

    async def tell(self, visitor: TeamsVisitor, activity: Activity, instead: Callable[[], Activity] | None) -> None:
        """A message for them alone; where that is impossible what `instead` makes, which everybody there may read."""
        caller = visitor.caller
        told = await self._sender.private.tell(
            visitor.location, person_id(caller.tenant, caller.user), activity, address=caller.address
        )
        if told is None and instead is not None:
            with in_language(self._shared):
                public = instead()
            await self.post(visitor, public)

    async def post(self, visitor: TeamsVisitor, activity: Activity) -> None:
        """A message where they are, for everybody there."""
        try:
            await self._sender.connector.send(visitor.location, activity)
        except CallFailed as failure:
            log.warning("teams_person_not_told", tenant=visitor.location.tenant, error=failure.error)


# ----------------------------------------------------------- answers to invokes, in Teams' own shapes
# https://learn.microsoft.com/adaptive-cards/authoring-cards/universal-action-model#response-format
# https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/task-modules/invoking-task-modules

CARD = "application/vnd.microsoft.card.adaptive"
MESSAGE = "application/vnd.microsoft.activity.message"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request is answered with."""

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
