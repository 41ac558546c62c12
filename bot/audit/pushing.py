"""The audit log, pushed to a SIEM: every entry at least once, in order, with its place in the chain.

How far it is stands in the records, and goes on from there in whichever process. One process sends at a time; where one
dies between sending and writing down that it was taken, the next one sends the same again. Nothing waits for any of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import structlog

from bot.audit.entries import Link, in_utc
from bot.audit.ocsf import LogSource, event_of
from bot.domain import Clock
from bot.events import happens
from bot.records import audit, audit_pushes
from bot.records.audit_pushes import PushRow
from bot.records.database import Database, is_outage
from bot.records.locks import UNLOCKED
from bot.repeated_failures import RepeatedFailure

log = structlog.get_logger(__name__)
MOST_EVENTS = 100
"""Of one request; making them takes some milliseconds."""
LARGEST_BATCH = 900_000
"""Bytes of one request, but for an event that is larger alone: Splunk's collector takes 1 MB, Sumo Logic's too."""
LOOK_SECONDS = 2.0
"""Between two looks for what was written meanwhile."""
SENDING_SECONDS = 20.0
"""How long one request may take."""
HELD_SECONDS = 45.0
"""Seconds for which the process that sends is the only one: more than two requests take. So long it takes, too, until
another one goes on where one was killed."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a try after one that failed; they double."""
REFUSED_PAUSE = 300.0
"""The same after a refusal, which only a person can do something about."""
FURTHEST_AHEAD = 900.0
"""Seconds from now within which a next try can be, with room for clocks that differ; a service may ask to wait 600.
What is further ahead was written by a clock that has been set back since."""
ENDING_SECONDS = 1.5
"""Seconds at the end for what is left to be sent."""
HEALTH_SECONDS = 2.0
"""How long the records may take to say how far it is."""


class NotTaken(Exception):  # noqa: N818  # like PostFailed
    """A SIEM did not take what was sent.

    Attributes:
        why: In some words, without the address, and without what the service says.
        refused: The same will not be taken later either, unless somebody mends something.
        too_large: Less at once may be taken.
        retry_after: Seconds that it asks to wait.
    """

    def __init__(
        self, why: str, *, refused: bool = False, too_large: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(why)
        self.why = why
        self.refused = refused
        self.too_large = too_large
        self.retry_after = retry_after


class Siem(Protocol):
    """Takes events."""

    async def push(self, lines: bytes) -> None:
        """Returns once these events, JSON Lines, are taken. Raises `NotTaken`."""
        ...


def destination_of(address: str) -> str:
    """What an address is known by in the records. It may hold a secret."""
    return hashlib.sha256(address.encode()).hexdigest()


def batch_of(links: Sequence[Link], source: LogSource, now: float) -> tuple[bytes, Sequence[Link]]:
    """The events of as many entries as one request may have, from the first on, as JSON Lines; and these entries."""
    lines: list[bytes] = []
    size = 0
    for link in links:
        line = json.dumps(event_of(link, source, now)).encode() + b"\n"
        if lines and size + len(line) > LARGEST_BATCH:
            break
        lines.append(line)
        size += len(line)
    return b"".join(lines), links[: len(lines)]


def pause_after(failure: NotTaken, failures: int, chance: float) -> float:
    """Seconds before the next try.

    Args:
        failures: how many tries failed before this one.
        chance: from 0 to 1, so that not everybody comes back at the same moment.
    """
    if failure.retry_after is not None:
        return failure.retry_after
    if failure.refused:
        return REFUSED_PAUSE
    return float(min(FIRST_PAUSE * 2.0 ** min(failures, 10), LONGEST_PAUSE)) * (0.5 + chance / 2)


class AuditPush:
    """Sends what the log has to one SIEM.

    Args:
        source: what events say of where they come from.
        destination: of its address, as `destination_of` makes it.
        me: this process; the same again after a restart where there can only be one.
        chance: returns a number from 0 to 1.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        siem: Siem,
        source: LogSource,
        *,
        destination: str,
        me: str,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._clock = clock
        self._siem = siem
        self._source = source
        self.destination = destination
        self._me = me
        self._chance = chance
        self._most = MOST_EVENTS
        self._has_tried = False
        self._told: str | None = None
        """Why the log was told last that it does not work."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the block runs, entries are sent as they come; at its end what is left, if it does not take long."""
        ending = asyncio.Event()
        task = asyncio.create_task(self._keep_sending(ending), name="audit push")
        try:
            yield
        finally:
            ending.set()
            await asyncio.wait({task}, timeout=ENDING_SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(Exception):  # then another process goes on a little later
                async with asyncio.timeout(ENDING_SECONDS), self._database.writing_apart(UNLOCKED) as tx:
                    await audit_pushes.release(tx, self.destination, self._me)

    async def _keep_sending(self, ending: asyncio.Event) -> None:
        failure = RepeatedFailure("audit_push_without_records")
        while True:
            is_last = ending.is_set()
            pause = LOOK_SECONDS
            try:
                pause = await self.look()
                failure.worked()
            except Exception as error:  # noqa: BLE001  # the records fail in many ways, and may be back any time
                failure.failed(error, with_traceback=not is_outage(error))
            if pause and is_last:
                return
            await happens(ending, pause)

    async def look(self) -> float:
        """Sends what comes next, if there is something and it is this process that sends. Returns the seconds until the
        next look; 0: there may be more. Raises what the records raise."""
        row = await self._taken_over()
        if row is None:
            return LOOK_SECONDS
        links = await self._following(row)
        if not links:
            return 0.0  # from the beginning
        body, sent = await asyncio.to_thread(batch_of, links, self._source, self._clock())
        try:
            await self._siem.push(body)
        except NotTaken as failure:
            return await self._not_taken(row, sent, failure)
        return await self._was_taken(row, sent)

    async def health(self) -> Mapping[str, Any]:
        """How far it is, for operators; JSON."""
        try:
            async with asyncio.timeout(HEALTH_SECONDS), self._database.reading() as tx:
                row, (newest, _) = await audit_pushes.get(tx, self.destination), await audit_pushes.newest(tx)
        except Exception as error:
            if isinstance(error, TimeoutError) or is_outage(error):
                return {"problem": "the records are out of reach"}
            raise
        return standing(row, newest)

    async def _taken_over(self) -> PushRow | None:
        """How far it is, if there is something to send and this process is the one that sends."""
        now = self._clock()
        async with self._database.reading() as tx:
            row, newest = await audit_pushes.get(tx, self.destination), await audit_pushes.newest(tx)
        if newest == ((row.seq, row.hash) if row is not None else (0, newest[1])):
            return None
        if row is not None and now < row.next_at <= now + FURTHEST_AHEAD and self._has_tried:
            return None  # a start tries: something may be mended
        if row is not None and row.is_held_by_another(self._me, now, HELD_SECONDS):
            return None
        async with self._database.writing_apart(UNLOCKED) as tx:  # one statement decides
            return await audit_pushes.take(tx, self.destination, self._me, now, HELD_SECONDS)

    async def _following(self, row: PushRow) -> Sequence[Link]:
        """The entries after those that were taken; none: the log is not the one that these were of, and is to be sent
        from its beginning."""
        async with self._database.reading() as tx:
            links = await audit.links(tx, None, None, after=row.seq - 1, limit=self._most + 1)
        if not row.seq:
            return links[: self._most]
        if links and (links[0].seq, str(links[0].hash)) == (row.seq, row.hash):
            return links[1:]
        log.error("audit_log_changed", seq=row.seq, note="the entry that was pushed last is not there any more")
        async with self._database.writing_apart(UNLOCKED) as tx:
            await audit_pushes.begin_again(tx, row)
        return ()

    async def _was_taken(self, row: PushRow, sent: Sequence[Link]) -> float:
        last = sent[-1]
        async with self._database.writing_apart(UNLOCKED) as tx:
            is_ours = await audit_pushes.advance(tx, row, last.seq, str(last.hash), self._clock())
        if self._told is not None:
            log.info("audit_push_works_again", last=last.seq)
        self._told, self._has_tried, self._most = None, True, min(2 * self._most, MOST_EVENTS)
        log.debug("audit_pushed", first=sent[0].seq, last=last.seq)
        return 0.0 if is_ours else LOOK_SECONDS

    async def _not_taken(self, row: PushRow, sent: Sequence[Link], failure: NotTaken) -> float:
        if failure.too_large and len(sent) > 1:
            self._most = len(sent) // 2
            return 0.0
        if not failure.refused:  # what is slow, or cuts off what is large, without a word may take less
            self._most = max(1, len(sent) // 2)
        now = self._clock()
        pause = pause_after(failure, row.failures, self._chance())
        self._has_tried = True
        async with self._database.writing_apart(UNLOCKED) as tx:
            await audit_pushes.fail(tx, row, failure.why, now, now + pause)
        if failure.why != self._told:
            self._told = failure.why
            tell = log.error if failure.refused else log.warning
            tell(
                "audit_push_refused" if failure.refused else "audit_push_failed",
                cause=failure.why,
                first=sent[0].seq,
                last=sent[-1].seq,
                seconds=round(pause, 1),
            )
        return LOOK_SECONDS


def standing(row: PushRow | None, newest: int) -> Mapping[str, Any]:
    """How far it is, as JSON.

    Args:
        row: `None`: nothing was ever sent.
        newest: number of the newest entry.
    """
    if row is None:
        return {"pushed": 0, "waiting": newest, "problem": None}
    since = {"failing_since": in_utc(row.failing_since)} if row.failing_since is not None else {}
    last = {"last": in_utc(row.pushed_at)} if row.pushed_at is not None else {}
    return {"pushed": row.seq, "waiting": max(0, newest - row.seq), **last, "problem": row.problem or None, **since}
