"""Who wrote a message, and what was said before it: looked up when its turn has come, not at the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.accounts.codes import Codes, code_in
from bot.clock import Clock
from bot.domain import Arrival, Message, Person, Quote, Unwelcome
from bot.platform import Platform
from bot.records import deliveries, threads
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.threads import ThreadRow
from graph.calls import storable


class Introductions:
    """Asks the platform of a message's thread."""

    def __init__(self, database: Database, platforms: Mapping[str, Platform], clock: Clock, codes: Codes) -> None:
        self._database = database
        self._platforms = platforms
        self._clock = clock
        self._codes = codes

    async def of(self, delivery: Delivery, thread: ThreadRow) -> Delivery | Unwelcome:
        """The delivery in words: its author's name and time zone, its text, and the `background` it is said before.

        Raises `PostFailed` when the platform cannot tell now.
        """
        platform = self._platforms.get(thread.place.platform)
        if platform is None:
            return delivery
        async with self._database.reading() as tx:
            heard = await deliveries.heard_before(tx, delivery.thread_id, delivery.key)
        introduced = await platform.introduce(Arrival(message_of(delivery, thread, delivery.body["text"]), heard))
        if isinstance(introduced, Unwelcome):
            return introduced
        await self._remember(introduced.author)
        background = await self._codes.without_codes(introduced.background)
        body = {
            **delivery.body,
            "name": storable(introduced.author.name),
            "time_zone": introduced.author.time_zone,
            "text": storable(introduced.text),
            "background": storable(in_lines(background)),
        }
        return replace(delivery, body=body)

    async def _remember(self, person: Person) -> None:
        person = replace(person, name=storable(person.name))
        async with self._database.reading() as tx:
            if await threads.is_kept(tx, person):
                return
        async with self._database.writing() as tx:
            await threads.remember(tx, person, self._clock())


def in_lines(background: Sequence[Quote]) -> str:
    """What was said, one paragraph each, with who said it. Further lines of a paragraph are set in, so that nobody can
    seem to be another."""
    told = (quote for quote in background if code_in(quote.text) is None)  # a code of a sign-in is for no model
    return "\n".join(f"{' '.join(quote.author.split())}: {_set_in(quote.text)}" for quote in told)


def _set_in(text: str) -> str:
    return "\n  ".join(text.splitlines())


def message_of(delivery: Delivery, thread: ThreadRow, text: str) -> Message:
    """The message that was accepted as this delivery, with a text that may be another one since."""
    body = delivery.body
    return Message(
        key=delivery.key,
        place=thread.place,
        author=Person(body["person"], body["name"], body["time_zone"]),
        text=text,
        at=body.get("at", delivery.accepted_at),
        addressed=body["addressed"],
        origin=body.get("origin", {}),
    )
