"""The life of an approval beside its votes: asked, reminded of, escalated, expired, superseded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal

from bot.cards import Cards
from bot.clock import Clock
from bot.ids import NewId
from bot.posts import Posts, said
from bot.records import approvals, deliveries, threads
from bot.records.approvals import ApprovalRow
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from graph.interrupts import Answer, ApprovalAsked, Approved, Expired, Rejected, Superseded, Withdrawn
from graph.ports import Spoken
from policies.model import Ask

Bell = Literal["remind", "escalate", "expire"]

Introduce = Callable[[Iterable[str]], Awaitable[None]]
"""Sees to it that people (and groups, which it passes over) who were never met have names, where these can be found
out."""


class ApprovalBook:
    """Asks, and settles what people do not. Fills `graph.ports.Approvals`."""

    def __init__(
        self,
        database: Database,
        posts: Posts,
        cards: Cards,
        clock: Clock,
        new_id: NewId,
        *,
        introduce: Introduce,
        timer_set: Callable[[], None],
    ) -> None:
        self._database = database
        self._posts = posts
        self._cards = cards
        self._clock = clock
        self._new_id = new_id
        self._introduce = introduce
        self._timer_set = timer_set

    async def ask(self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken]) -> None:
        """Say what was said before it, record the approval, post its cards and set its timers, in one
        transaction."""
        await self._introduce([*asked.ask.approvers, *asked.ask.escalate_to])
        async with self._database.writing() as tx:
            for each in spoken:
                await self._posts.say(tx, said(thread_id, each))
            await self.record(tx, thread_id, asked)

    async def record(self, tx: Transaction, thread_id: str, asked: ApprovalAsked) -> None:
        """The same within a transaction; what is recorded already stays as it is."""
        now, approval_id = self._clock(), self._new_id()
        expires_at = None if asked.ask.expires_in is None else now + asked.ask.expires_in
        if not await approvals.add(tx, approval_id, thread_id, asked, now=now, expires_at=expires_at):
            return
        await self._posts.show_again(tx, await approvals.void_unused(tx, asked.call_id, asked.round))
        await self._cards.post(tx, thread_id, approval_id, asked)
        for timer in timers_of(approval_id, thread_id, asked.ask, now):
            await deliveries.add(tx, timer)
            tx.afterwards(self._timer_set)

    async def ring(self, tx: Transaction, timer: Delivery) -> bool:
        """A timer is due. Whether its thread goes on now; a timer of something settled does nothing."""
        approval_id = timer.body["approval"]
        match bell_of(timer):
            case "remind":
                await self._remind(tx, approval_id)
            case "escalate":
                await self._escalate(tx, approval_id)
            case "expire":
                return await self.expire(tx, approval_id, timer.key)
        return False

    async def expire(self, tx: Transaction, approval_id: str, key: str) -> bool:
        """Settle as expired; also true when the same timer did so before; false when somebody was earlier."""
        if await approvals.settle(tx, approval_id, "expired", key=key, now=self._clock()):
            await self._posts.show_again(tx, [approval_id])
            return True
        row = await approvals.get(tx, approval_id)
        return row is not None and row.settled_key == key

    async def _remind(self, tx: Transaction, approval_id: str) -> None:
        row = await self._still_open(tx, approval_id)
        if row is not None:
            await self._cards.remind(tx, row, self._clock())

    async def _escalate(self, tx: Transaction, approval_id: str) -> None:
        """From now on others may decide too: they get the card, and every card says so."""
        row = await self._still_open(tx, approval_id)
        if row is not None:
            await self._cards.post_also(tx, row, row.asked.ask.escalate_to)
            await self._posts.show_again(tx, [approval_id])

    async def _still_open(self, tx: Transaction, approval_id: str) -> ApprovalRow | None:
        row = await approvals.hold(tx, approval_id)
        return row if row is not None and is_open(row, self._clock()) else None

    async def supersede(self, tx: Transaction, row: ApprovalRow, key: str, why: str) -> None:
        """Settle as superseded, if it is still pending."""
        if await approvals.settle(tx, row.approval_id, "superseded", key=key, now=self._clock(), reason=why):
            await self._posts.show_again(tx, [row.approval_id])

    async def supersede_unused(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """What was approved and shall not be started any more."""
        given_up = await approvals.supersede_unused(tx, thread_id, key=key, now=self._clock(), reason=why)
        await self._posts.show_again(tx, given_up)

    async def void(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """What waits or was approved in a thread that does not know of it any more."""
        await self._posts.show_again(tx, await approvals.void_in(tx, thread_id, key=key, now=self._clock(), reason=why))


def is_open(row: ApprovalRow, now: float) -> bool:
    """Whether it can still be decided."""
    return row.status == "pending" and not has_expired(row, now)


def has_expired(row: ApprovalRow, now: float) -> bool:
    """Whether its time is over, though its timer may not have been handled yet."""
    return row.expires_at is not None and row.expires_at <= now


async def answer_of(tx: Transaction, row: ApprovalRow) -> Answer | None:
    """What a settled approval tells the graph; `None` while it is pending."""
    cast = await approvals.votes_on(tx, row.approval_id)
    match row.status:
        case "pending":
            return None
        case "approved":
            by = tuple(v.name for v in cast if v.verb == "approve")
            arguments = dict(row.approved_arguments) if row.approved_arguments is not None else None
            return Approved(by=by, arguments=arguments, edited_by=row.edited_by)
        case "rejected":
            by_whom = ", ".join(v.name for v in cast if v.verb == "reject")
            return Rejected(by=by_whom or "somebody", reason=row.reason)
        case "expired":
            return Expired()
        case "withdrawn":
            names = await threads.names(tx, row.asked.requesters[:1])
            return Withdrawn(by=names[row.asked.requesters[0]])
        case _:
            return Superseded(reason=row.reason)


def timers_of(approval_id: str, thread_id: str, ask: Ask, now: float) -> Sequence[Delivery]:
    """Returns what is to happen when nobody decides, as rows of the inbox that are due later and outlive restarts.
    What would come after the end is left out."""
    after: dict[Bell, float | None] = {
        "remind": ask.remind_after,
        "escalate": ask.escalate_after if ask.escalate_to else None,
        "expire": ask.expires_in,
    }
    end = float("inf") if ask.expires_in is None else ask.expires_in
    return [
        Delivery(f"{bell}:{approval_id}", thread_id, "timer", {"approval": approval_id}, False, now, now + seconds)
        for bell, seconds in after.items()
        if seconds is not None and (seconds < end or bell == "expire")
    ]


def bell_of(timer: Delivery) -> Bell:
    """Returns which of them a timer is. Raises `ValueError` when it is none."""
    match timer.key.partition(":")[0]:
        case ("remind" | "escalate" | "expire") as bell:
            return bell
        case other:
            raise ValueError(f"unknown kind of timer: {other}")
