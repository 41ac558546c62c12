"""Leases: whoever is alone with something says each second that it still is.

A lock of PostgreSQL's goes with its connection, whether its process has died or only the connection, while the process
goes on with a service. Which of the two it was, others find out by listening to it for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import sqlalchemy as sa
import structlog

from bot.records.database import seen_through
from bot.records.locks import UNLOCKED

if TYPE_CHECKING:
    from bot.records.postgresql import PostgresDatabase

log = structlog.get_logger(__name__)
SAID_EVERY = 1.0
"""Seconds between two words of a holder."""
WORD_SECONDS = 2.0
"""How long one may take to be said."""
SILENT_SECONDS = 8.0
"""Seconds of listening without a word after which the holder is taken to be gone: more than lie between two words when
the one between them was not heard, and took as long as it may. What was not heard before counts for nothing: PostgreSQL
may have been away."""
LOOKS_EVERY = 0.5
"""Seconds between two looks of somebody who waits."""
WAITS_SECONDS = 45.0
"""How long somebody waits for a holder who is there."""
FORGOTTEN_SECONDS = 3600.0
"""Seconds without a word after which a lease that nobody asked for is deleted."""
_TAKE = """
WITH taken AS (
    INSERT INTO leases (name, holder, said_at) VALUES (%(name)s, %(mine)s, extract(epoch FROM clock_timestamp()))
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, said_at = excluded.said_at
    WHERE leases.holder = %(gone)s AND leases.said_at = %(gone_since)s
    RETURNING holder, said_at
)
SELECT holder, said_at FROM taken
UNION ALL SELECT holder, said_at FROM leases WHERE name = %(name)s AND NOT EXISTS (SELECT FROM taken)
"""
_SAY = """
INSERT INTO leases (name, holder, said_at) VALUES (%(name)s, %(mine)s, extract(epoch FROM clock_timestamp()))
ON CONFLICT (name) DO UPDATE SET said_at = excluded.said_at WHERE leases.holder = excluded.holder
RETURNING holder
"""
"""Also where no lease is left: a server that takes over from another one may lack what was written last."""
_END = """
DELETE FROM leases
WHERE (name = %(name)s AND holder = %(mine)s) OR said_at < extract(epoch FROM clock_timestamp()) - %(forgotten)s
"""


class _Word(NamedTuple):
    """What a holder has said last."""

    holder: str
    at: float


_NOBODY = _Word("", 0.0)


class Leases:
    """The leases that this process takes."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[None]:
        """Within it no other process that can be heard of is within it under this name. Raises
        `sqlalchemy.exc.TimeoutError` when another one does not end."""
        mine = uuid4().hex
        try:
            await self._wait(name, mine)
            saying = asyncio.create_task(self._say(name, mine), name=f"lease {name}")
            try:
                yield
            finally:
                saying.cancel()
                await asyncio.gather(saying, return_exceptions=True)
        finally:
            await seen_through(asyncio.create_task(self._end(name, mine)))

    async def _wait(self, name: str, mine: str) -> None:
        began = since = time.monotonic()
        heard = gone = _NOBODY
        while (word := await self._take(name, mine, gone)).holder != mine:
            now = time.monotonic()
            if now - began >= WAITS_SECONDS:
                raise sa.exc.TimeoutError("another process is alone with it, and does not end")
            if word != heard:
                heard, since = word, now
            gone = heard if now - since >= SILENT_SECONDS else _NOBODY
            if gone is _NOBODY:
                await asyncio.sleep(LOOKS_EVERY)

    async def _take(self, name: str, mine: str, gone: _Word) -> _Word:
        """What the holder says by now, which is this one if nobody else was or whoever was is `gone`."""
        values = {"name": name, "mine": mine, "gone": gone.holder, "gone_since": gone.at}
        async with self._database.writing_apart(UNLOCKED) as tx:
            row = await (await tx.execute(_TAKE, values)).fetchone()
        return _NOBODY if row is None else _Word(*row)

    async def _say(self, name: str, mine: str) -> None:
        overtaken = False
        while True:
            await asyncio.sleep(SAID_EVERY)
            try:
                # One statement, which is broken off where it takes too long; a commit would be waited for.
                async with asyncio.timeout(WORD_SECONDS), self._database.at_once() as tx:
                    said = await (await tx.execute(_SAY, {"name": name, "mine": mine})).fetchone()
            except (TimeoutError, sa.exc.SQLAlchemyError) as error:
                log.debug("lease_not_said", cause=type(error).__name__)  # whoever could hear it has the same trouble
                continue
            if said is None and not overtaken:
                log.warning("lease_overtaken", what=name.partition(":")[0])
            overtaken = said is None

    async def _end(self, name: str, mine: str) -> None:
        try:
            async with self._database.writing_apart(UNLOCKED) as tx:
                await tx.execute(_END, {"name": name, "mine": mine, "forgotten": FORGOTTEN_SECONDS})
        except sa.exc.SQLAlchemyError as error:
            log.debug("lease_not_ended", cause=type(error).__name__)  # others hear soon that nobody says anything
