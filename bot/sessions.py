"""Which thread a message belongs to: its place's own, or, where a place has no threads, the current session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.domain import ConversationReference, Message
from bot.records import threads, waiting
from bot.records.database import Transaction
from bot.records.threads import SessionRow

QUIET_SECONDS = 8 * 3600.0
"""After so long without a word, and with nothing pending, a place without threads starts a new session: what
`SESSION_QUIET_HOURS` is when it is not set."""

NEW = frozenset({"new", "new conversation", "start over", "/new"})
"""What a person says to start one at once."""

SessionBeginning = Literal["asked", "quiet"]
"""Why a session is a new one, where that has to be said: somebody said "new", or it had been quiet for long."""


@dataclass(frozen=True, slots=True)
class ThreadForMessage:
    """The thread that a message belongs to."""

    thread_id: str
    begins: SessionBeginning | None = None
    """`None`: it goes on with what there is, or nothing there could be mistaken for its beginning."""


def asks_for_new(text: str) -> bool:
    """Whether the whole message asks for a new conversation."""
    return text.strip().rstrip(".!").lower() in NEW


async def current_thread(tx: Transaction, place: ConversationReference, person_id: str) -> str | None:
    """The thread that this person is in at a place: in their own session while it waits for people, else in the newest.

    `None`: the place has no session yet.
    """
    if place.has_threads:
        return place.key
    session = await _current_session(tx, place, person_id)
    return session.thread_id if session else None


async def thread_for(
    tx: Transaction, message: Message, now: float, *, quiet_seconds: float = QUIET_SECONDS
) -> ThreadForMessage:
    """The thread of a message. Places without threads get `{place}#{number}`.

    `quiet_seconds`: how long a session lasts without a message while nothing is pending in it.
    """
    place = message.place
    if place.has_threads:
        return ThreadForMessage(place.key)
    session = await _current_session(tx, place, message.author.person_id)
    asked = message.addressed and asks_for_new(message.text)
    was_quiet = session is not None and now - session.updated_at >= quiet_seconds
    if session is not None and not asked and await _continues(tx, session, message, was_quiet=was_quiet):
        return ThreadForMessage(session.thread_id)
    newest = await threads.newest_session(tx, place.key)
    number = int(newest.thread_id.rsplit("#", 1)[1]) + 1 if newest else 1
    return ThreadForMessage(f"{place.key}#{number}", "asked" if asked else "quiet" if was_quiet else None)


async def _continues(tx: Transaction, session: SessionRow, message: Message, *, was_quiet: bool) -> bool:
    waited_for = await waiting.waited_for(tx, session.thread_id)
    if waited_for:
        # Somebody else's question is open here: whoever speaks to the bot meanwhile gets a session of their own.
        return not message.addressed or message.author.person_id in waited_for
    return not was_quiet


async def _current_session(tx: Transaction, place: ConversationReference, person_id: str) -> SessionRow | None:
    own = await threads.newest_session(tx, place.key, of=person_id)
    if own is not None and person_id in await waiting.waited_for(tx, own.thread_id):
        return own
    return await threads.newest_session(tx, place.key)
