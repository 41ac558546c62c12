"""Giving an approval into other hands: to a colleague who may decide it, or back to nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bot.approvals.directory import Facts
from bot.approvals.permissions import Known, permission_of, stranger
from bot.approvals.requests import has_expired, is_open
from bot.cards import Cards
from bot.clock import Clock
from bot.domain import AlreadySettled, ClickResult, Handover, Person, Refused, Settled
from bot.posts import Posts
from bot.records import approvals, threads
from bot.records.approvals import ApprovalRow
from bot.records.database import Database, Transaction
from bot.voting import EXPIRED, NO_SUCH
from policies.approvers import CouldNotFindOut, Permitted, as_of, several_may_decide
from policies.model import home_of

PATIENCE = 2.5
"""Seconds that whoever hands over waits for all look-ups together: Slack waits 3 for the answer to a form."""
NOT_FOUND_OUT = Refused("Whether they may decide this could not be found out. Try again in a moment.")
ONLY_YOU = Refused("Nobody but you may decide this: the policy says so.")
NOBODY = Refused("I have met nobody with this address.")


class Handing:
    """Judges who may hand over to whom, and who may take back."""

    def __init__(self, database: Database, posts: Posts, cards: Cards, facts: Facts, clock: Clock) -> None:
        self._database = database
        self._posts = posts
        self._cards = cards
        self._facts = facts
        self._clock = clock

    async def hand_over(self, handover: Handover) -> ClickResult:
        """Somebody who may decide asks another who may: that person gets the card, and every card says so."""
        person_id, approval_id = handover.person.person_id, handover.approval_id
        try:
            async with asyncio.timeout(PATIENCE):  # whose address it is and whether they may are asked in turn
                of_them, others = await asyncio.gather(
                    self._facts.for_voting(person_id, [approval_id]), self._meant(handover)
                )
        except TimeoutError:
            return NOT_FOUND_OUT
        async with self._database.writing_urgently() as tx:
            row, now = await approvals.hold(tx, approval_id), self._clock()
            if row is None:
                return NO_SUCH
            outside = stranger(row, person_id, now)
            if outside is not None:
                return Refused(outside.reason)
            if not is_open(row, now):
                return AlreadySettled("This has been settled already.")
            permission = permission_of(row, person_id, of_them, now)
            if not isinstance(permission, Permitted):
                return Refused(permission.reason)
            if not several_may_decide(as_of(row.asked.ask, row.asked_at, now), row.asked.requesters):
                return ONLY_YOU
            if person_id in others:
                return Refused("You may decide this yourself.")
            if not others:
                return NOBODY
            permissions = {to: permission_of(row, to, of_other, now) for to, of_other in others.items()}
            to = next((to for to, found in permissions.items() if isinstance(found, Permitted)), next(iter(others)))
            name = handover.name or (await threads.names(tx, [to]))[to]
            match permissions[to]:
                case Permitted():
                    if handover.name and await threads.person(tx, to) is None:
                        await threads.remember(tx, Person(to, name), now)
                    return await self._handed(tx, row, to, name)
                case CouldNotFindOut():
                    return Refused(f"Whether {name} may decide this could not be found out. Try again in a moment.")
                case _:
                    return Refused(f"{name} is not one of the people who may decide this.")

    async def _meant(self, handover: Handover) -> Mapping[str, Known]:
        """Each account of whoever is asked, with what is to be known of it; those of the same workspace first."""
        accounts = [handover.to]
        if _is_address(handover.to):
            here = home_of(handover.person.person_id)
            accounts = sorted(await self._facts.accounts_with(handover.to), key=lambda each: home_of(each) != here)
        known = await asyncio.gather(*(self._facts.for_voting(each, [handover.approval_id]) for each in accounts))
        return dict(zip(accounts, known, strict=True))

    async def _handed(self, tx: Transaction, row: ApprovalRow, to: str, name: str) -> ClickResult:
        people = tuple(dict.fromkeys((*row.handed_to, to)))
        if people != row.handed_to:
            if not await approvals.hand_to(tx, row.approval_id, people):
                return AlreadySettled("This has been settled already.")
            await self._cards.post_also(tx, row, [to])
            await self._posts.show_again(tx, [row.approval_id])
        return Settled(f"{name} was asked to decide. You still may, too.", final=False)

    async def requester_accounts(self, approval_id: str, person: Person) -> frozenset[str]:
        """Person ids under which this person may have asked for it; looked up before a transaction, where it must."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        if row is None or row.asked.requesters[0] == person.person_id:
            return frozenset([person.person_id])
        return await self._facts.accounts_of(person.person_id)

    async def take_back(
        self, tx: Transaction, key: str, approval_id: str, accounts: frozenset[str]
    ) -> tuple[ClickResult, str | None]:
        """The requester, under whichever of their accounts, does not want it any more. Also the thread that goes on."""
        row, now = await approvals.hold(tx, approval_id), self._clock()
        if row is None:
            return NO_SUCH, None
        if row.asked.requesters[0] not in accounts:
            return Refused("Only the person who asked for this can withdraw it."), None
        if row.status == "pending" and has_expired(row, now):
            return EXPIRED, None
        if not await approvals.settle(tx, approval_id, "withdrawn", key=key, now=now):
            twice = row.settled_key == key
            return Settled("Withdrawn.") if twice else AlreadySettled(f"This was {row.status} already."), None
        await self._posts.show_again(tx, [approval_id])
        return Settled("Withdrawn."), row.thread_id


def _is_address(text: str) -> bool:
    return "@" in text
