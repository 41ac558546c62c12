"""Rows of `places`: where the bot was brought to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict

import sqlalchemy as sa

from bot.domain import Place
from bot.records.database import Transaction, insert_new
from bot.records.tables import places, threads

AT_ONCE = 500
"""Ids in one statement; SQLite takes 32,766."""


async def add(tx: Transaction, place: Place, now: float) -> bool:
    """Note that the bot is there; false when that was known."""
    return await insert_new(tx, places, {"place_key": place.key, "place": asdict(place), "arrived_at": now})


async def remove(tx: Transaction, place: Place) -> None:
    """The bot is not there any more."""
    await tx.run(sa.delete(places).where(places.c.place_key == place.key))


async def threads_at(tx: Transaction, place: Place, among: Collection[str]) -> Sequence[str]:
    """The threads, `among` these, that are held at a place, or in the channel that it is."""
    here = threads.c.place_key == place.key
    if place.channel:
        here |= threads.c.place["channel"].as_string() == place.channel
    query = sa.select(threads.c.thread_id).where(here)
    candidates, found = list(among), list[str]()
    for start in range(0, len(candidates), AT_ONCE):
        some = query.where(threads.c.thread_id.in_(candidates[start : start + AT_ONCE]))
        found += [row.thread_id for row in await tx.all(some)]
    return found
