"""Where the bot was brought to, and where it was removed from."""

from __future__ import annotations

from bot.clock import Clock
from bot.domain import Notice, Place
from bot.posts import Posts, notice
from bot.records import concerns, deliveries, places, posts
from bot.records.database import Database, Transaction
from bot.waits import Waits

REMOVED = "Countersign was removed from this conversation"


class Presence:
    """Greets, and cleans up."""

    def __init__(self, database: Database, outbox: Posts, waits: Waits, clock: Clock) -> None:
        self._database = database
        self._posts = outbox
        self._waits = waits
        self._clock = clock

    async def arrived(self, key: str, place: Place, greeting: str) -> bool:
        """Greet at a place, once until the bot has left it. False: it was there already."""
        async with self._database.writing_urgently() as tx:
            is_new = await places.add(tx, place, self._clock())
            if is_new:
                hello = notice(f"greeting:{key}", place.key, Notice(greeting), place=place)
                await self._posts.say(tx, hello)
        return is_new

    async def left(self, place: Place) -> None:
        """Give up what waits there and what was not shown yet; cards of it elsewhere show that."""
        async with self._database.writing_urgently() as tx:
            await places.remove(tx, place)
            here = await places.threads_at(tx, place, await _unfinished(tx, f"{place.platform}:"))
            for thread_id in here:
                await self._waits.supersede(tx, thread_id, f"left:{place.key}", REMOVED)
            await posts.give_up_lanes(tx, [place.key, *here])


async def _unfinished(tx: Transaction, within: str) -> set[str]:
    """The threads, whose ids begin with `within`, in which anything waits for people, for us, or to be shown: few of
    all that there ever were."""
    waiting = [*await concerns.threads_of_questions(tx, within), *await deliveries.threads_waiting(tx, within)]
    return {*waiting, *await posts.lanes_with_unsent(tx)}
