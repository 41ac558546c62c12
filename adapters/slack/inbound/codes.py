"""One-time codes of sign-ins, typed where they are no message: into their form, after the command, into the shortcut's
form. A code is for the services alone: it is not posted, and not quoted from a message either."""

from __future__ import annotations

from uuid import uuid4

from adapters.slack.ids import within_team
from adapters.slack.inbound.gestures import Visitor
from bot.accounts.codes import code_in
from bot.domain import ClickResult, CodeEntry, Invalid, Person

__all__ = ["code_entry", "code_in", "in_words", "without_code"]


def code_entry(visitor: Visitor, person: Person, code: str, sign_in_id: str | None = None) -> CodeEntry:
    """What was typed, as `Connections.enter_code` takes it.

    Its key is the trigger of the gesture, which is another one for each try: the modal stays the same after a wrong
    code, and by its own key further tries would pass for the first, delivered again, and not be counted.
    """
    return CodeEntry(f"{within_team(visitor.team)}code:{visitor.trigger_id or uuid4().hex}", person, code, sign_in_id)


def in_words(result: ClickResult) -> str:
    """What came of it, for the person who typed it."""
    return " ".join(result.errors.values()) if isinstance(result, Invalid) else result.text


def without_code(text: str) -> str:
    """A message that is to be quoted; empty when all of it is a code, whoever it is for."""
    return "" if code_in(text) else text
