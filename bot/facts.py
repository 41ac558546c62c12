"""Finds out, before somebody is judged, what the approvals in question need to know about them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from bot.clock import Clock
from bot.directory import Directory
from bot.permissions import Known, Needs, needs_of
from bot.records import approvals, threads
from bot.records.approvals import ApprovalRow
from bot.records.database import Database
from bot.vocabulary import Person


class Facts:
    """Asks the directory once per person, group and channel, however many approvals need it."""

    def __init__(self, database: Database, directory: Directory, clock: Clock) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock

    def meet(self, person: Person) -> None:
        """What a platform has just said of somebody."""
        self._directory.meet(person)

    async def introduce(self, person_ids: Iterable[str]) -> None:
        """Ask the platforms for the names of those, among them, whom nobody has met: cards say who may decide."""
        wanted = list(dict.fromkeys(person_ids))
        async with self._database.reading() as tx:
            known = await threads.known_names(tx, wanted)
        found = await self._directory.names([person_id for person_id in wanted if person_id not in known])
        if not found:
            return
        async with self._database.writing() as tx:
            for person_id in found.keys() - (await threads.known_names(tx, found)).keys():
                await threads.remember(tx, Person(person_id, found[person_id]), self._clock())

    async def accounts_of(self, person_id: str) -> frozenset[str]:
        """All person ids, as far as they can be found out, of the human that this is one of."""
        return frozenset([person_id, *await self._directory.other_accounts(person_id)])

    async def accounts_with(self, email: str) -> Sequence[str]:
        """The person ids, as far as they can be found out, of whoever has this address."""
        return await self._directory.accounts_with(email)

    async def for_voting(self, person_id: str, approval_ids: Iterable[str]) -> Known:
        """What these approvals, as they are now, need to know about somebody who decides."""
        async with self._database.reading() as tx:
            found = [await approvals.get(tx, approval_id) for approval_id in dict.fromkeys(approval_ids)]
        pending = [row for row in found if row is not None and row.status == "pending"]
        now = self._clock()
        return await self._look_up(person_id, [(row, needs_of(row, person_id, now)) for row in pending])

    async def for_judging(self, person_id: str, rows: Sequence[ApprovalRow]) -> Known:
        """What these need to know to say whether somebody may decide; at once where nothing has to be looked up."""
        pending = [row for row in rows if row.status == "pending"]
        now = self._clock()
        return await self._look_up(person_id, [(row, needs_of(row, person_id, now)) for row in pending])

    async def _look_up(self, person_id: str, needs: Sequence[tuple[ApprovalRow, Needs]]) -> Known:
        groups, in_channel, identities = await asyncio.gather(
            self._directory.groups_of(person_id, {group for _, need in needs for group in need.groups}),
            self._channels(person_id, [row for row, need in needs if need.channel]),
            self._directory.identities({person for _, need in needs for person in need.people}),
        )
        return Known(groups, in_channel, identities)

    async def _channels(self, person_id: str, rows: Sequence[ApprovalRow]) -> Mapping[str, bool | None]:
        """By thread id. In a direct chat with the bot there is nobody but the requester."""
        async with self._database.reading() as tx:
            places = {row.thread_id: thread.place for row in rows if (thread := await threads.get(tx, row.thread_id))}
        direct = {row.thread_id: row.asked.requesters[0] == person_id for row in rows}
        wanted = {thread: place.channel or place.key for thread, place in places.items() if not place.direct}
        channels = list(dict.fromkeys(wanted.values()))
        answers = await asyncio.gather(*(self._directory.in_channel(person_id, channel) for channel in channels))
        found = dict(zip(channels, answers, strict=True))
        return {thread: found[wanted[thread]] if thread in wanted else direct[thread] for thread in places}
