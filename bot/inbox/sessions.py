"""Which thread a message belongs to: its place's own, or, where a place has none, the session that is going on."""

from __future__ import annotations

from bot.records import threads, waiting
from bot.records.database import Transaction
from bot.vocabulary import Message

QUIET_SECONDS = 8 * 3600.0
"""After so long without a word, and with nothing pending, a place without threads starts a new session."""

NEW = frozenset({"new", "new conversation", "start over", "/new"})
"""What a person says to start one at once."""


class Sessions:
    """Finds or names threads. `quiet_seconds` is how long a session lasts without a word."""

    def __init__(self, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._quiet_seconds = quiet_seconds

    async def thread_for(self, tx: Transaction, message: Message, now: float) -> str:
        """The thread id of a message. Places without threads get `{place}#{number}`."""
        place = message.place
        if place.has_threads:
            return place.key
        newest = await threads.newest_session(tx, place.key)
        if newest is None:
            return f"{place.key}#1"
        thread_id, updated_at = newest
        if await self._goes_on(tx, thread_id, updated_at, message, now):
            return thread_id
        return f"{place.key}#{int(thread_id.rsplit('#', 1)[1]) + 1}"

    async def _goes_on(self, tx: Transaction, thread_id: str, updated_at: float, message: Message, now: float) -> bool:
        if message.text.strip().lower() in NEW:
            return False
        pending = await waiting.in_thread(tx, thread_id)
        if pending:
            thread = await threads.get(tx, thread_id)
            # Somebody else's question is open here: whoever speaks to the bot meanwhile gets a session of their own.
            return not message.addressed or thread is None or thread.requester == message.author.person_id
        return now - updated_at < self._quiet_seconds
