"""Adds up what the audit log says of the rules, in the background, so that nothing ever reads through it.

The log is read once, from its beginning, in parts; so entries that were there before this was, and those that an older
program writes beside it, count like all others. Turns and clicks wait for none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog

from bot.audit.entries import read_entry
from bot.records import audit, rule_counts
from bot.records.database import Database, is_outage
from bot.records.locks import RULE_COUNTS
from bot.records.rule_counts import LogEntry, UnapprovedCall
from bot.repeated_failures import RepeatedFailure
from bot.rules.outcomes import UNAPPROVED, CallOutcome, LoggedEnd, counted, counts, outcome_of

log = structlog.get_logger(__name__)
AT_ONCE = 200
"""Entries that one transaction adds up: some 20 ms, most of which others may use."""
LOOKS_EVERY = 60.0
"""Seconds after which entries are counted at the latest."""
_PAUSE = 0.02
"""Seconds between two parts: turns go first."""


class RuleCounts:
    """Counts. `running` while the process does.

    Args:
        at_once: entries of one transaction.
    """

    def __init__(self, database: Database, *, at_once: int = AT_ONCE) -> None:
        self._database = database
        self._at_once = at_once
        self._one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the block runs, whatever comes is counted."""
        task = asyncio.create_task(self._keep_counting(), name="rule counts")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def up_to_date(self) -> bool:
        """Counts a part, as long as few entries are left; whether all are counted now. For whoever looks."""
        if not self._one_at_a_time.locked():
            async with self._one_at_a_time:
                await self._count_a_part()
        async with self._database.reading() as tx:
            return await rule_counts.counted_to(tx) >= await audit.newest_number(tx)

    async def count_all(self) -> None:
        """Counts whatever there is."""
        async with self._one_at_a_time:
            is_left = True
            while is_left:
                is_left = await self._count_a_part()
                await asyncio.sleep(_PAUSE)

    async def _keep_counting(self) -> None:
        failure = RepeatedFailure("rules_not_counted")
        while True:
            try:
                await self.count_all()
                failure.worked()
            except Exception as error:
                if not is_outage(error):
                    log.exception("rules_not_counted")  # a defect: nobody waits for it, and the next look may do
                else:
                    failure.failed(error)
            await asyncio.sleep(LOOKS_EVERY)

    async def _count_a_part(self) -> bool:
        """Whether there may be more."""
        async with self._database.reading() as tx:
            after = await rule_counts.counted_to(tx)
            entries = await rule_counts.entries_after(tx, after, self._at_once)
        if not entries:
            return False
        ends = await asyncio.to_thread(ends_among, entries)
        outcomes = await read_outcomes(self._database, ends)
        unapproved = [
            UnapprovedCall(each.seq, each.server, each.tool) for each in outcomes if each.outcome in UNAPPROVED
        ]
        async with self._database.writing_apart(RULE_COUNTS) as tx:
            await rule_counts.add(tx, after, entries[-1].seq, counted(outcomes), unapproved)
        return len(entries) == self._at_once


async def read_outcomes(database: Database, ends: Sequence[LoggedEnd]) -> Sequence[CallOutcome]:
    """What came of the calls whose first entries these are, by what the records have of them besides."""
    if not ends:
        return ()
    keys = {key for end in ends for key in end.earlier_keys}
    async with database.reading() as tx:
        numbers = await rule_counts.numbers_of(tx, keys)
        rounds = await rule_counts.rounds_of(tx, {end.call_id for end in ends})
    return outcomes_of(ends, numbers, rounds)


def outcomes_of(
    ends: Sequence[LoggedEnd], numbers: Mapping[str, int], rounds: Mapping[str, Sequence[Any]]
) -> Sequence[CallOutcome]:
    """What came of the calls whose first entries these are.

    Args:
        numbers: key → number, of the entries that may be earlier ones of the same calls.
        rounds: of asking people, by call.
    """
    first = [end for end in ends if not any(numbers.get(key, end.seq) < end.seq for key in end.earlier_keys)]
    return [outcome_of(end, rounds.get(end.call_id, ())) for end in first]


def ends_in(entries: Sequence[tuple[int, str, float, str]]) -> list[LoggedEnd]:
    """Those about calls that were judged, of entries with number, key, time and text; what cannot be read is passed
    over."""
    read = ((seq, key, at, read_entry(text)) for seq, key, at, text in entries)
    return [LoggedEnd(seq, key, at, entry) for seq, key, at, entry in read if entry is not None and counts(entry)]


def ends_among(entries: Sequence[LogEntry]) -> list[LoggedEnd]:
    """The same, of entries as they are read for counting."""
    return ends_in([(each.seq, each.key, each.at, each.entry) for each in entries])
