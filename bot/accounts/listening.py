"""Codes come as forms, and as messages that nobody but us may read: no record, no model, no log."""

from __future__ import annotations

from collections.abc import Sequence

from bot.accounts.codes import code_in, codes_among
from bot.accounts.entering import CodeDesk
from bot.inbox.sessions import current_thread
from bot.posts import Posts, notice
from bot.records import posts, threads
from bot.records.database import Database, Transaction
from bot.records.posts import NewPost
from bot.vocabulary import ClickResult, CodeEntry, Invalid, Message, Notice, Quote, Settled

REST = "I have not read the rest of your message, as there was a code in it: please send that again."


class Codes:
    """Takes codes, however they come."""

    def __init__(self, database: Database, outbox: Posts, desk: CodeDesk) -> None:
        self._database = database
        self._posts = outbox
        self._desk = desk

    async def enter(self, entry: CodeEntry) -> ClickResult:
        """A form with a code was submitted."""
        async with self._database.writing_urgently() as tx:
            return await self._desk.enter(tx, entry)

    async def taken(self, message: Message) -> bool | None:
        """Take a message as a code; what came of it is told its author alone. False: it was taken before. `None`: it is
        no code, but a message like others."""
        if not codes_among(message.text):
            return None
        async with self._database.writing_urgently() as tx:
            if await posts.get(tx, _answer_to(message)) is not None:
                return False
            return True if await self.take(tx, message) else None

    async def take(self, tx: Transaction, message: Message) -> bool:
        """As `taken`, within a transaction, for a message that was not taken before. False: it is no code."""
        code = await self._desk.told_in(tx, message.author.person_id, message.text)
        if code is None:
            return False
        result = await self._desk.enter(tx, CodeEntry(message.key, message.author, code))
        await self._posts.say(tx, await _told(tx, message, result))
        return True

    async def without_codes(self, quotes: Sequence[Quote]) -> tuple[Quote, ...]:
        """What was said in a thread, without what has a code in it: a code is for no model."""
        among = {quote: codes_among(quote.text) for quote in quotes}
        async with self._database.reading() as tx:
            codes = await self._desk.codes_of(tx, frozenset[str]().union(*among.values()))
        return tuple(quote for quote in quotes if not among[quote] & codes)


def _answer_to(message: Message) -> str:
    return f"code:{message.key}"


async def _told(tx: Transaction, message: Message, result: ClickResult) -> NewPost:
    """The answer, in the thread of the message where there is one, else at its place."""
    key = _answer_to(message)
    text = " ".join(result.errors.values()) if isinstance(result, Invalid) else result.text
    if code_in(message.text) is None:
        text = f"{text} {REST}"
    told = Notice(text, "info" if isinstance(result, Settled) else "warning")
    author, place = message.author.person_id, message.place
    thread_id = await current_thread(tx, place, author)
    if thread_id is not None and await threads.get(tx, thread_id) is not None:
        return notice(key, thread_id, told, only_for=author)
    return notice(key, place.key, told, only_for=author, place=place)
