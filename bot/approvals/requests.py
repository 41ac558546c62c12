"""Approvals that the graph asks for: recorded, shown wherever they have to be, and ended where nobody decides.

The timers of an approval are here too: a reminder, an escalation (others may decide as well), the expiry. What people
decide is in `bot.approvals.decisions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import structlog

from bot.crypto import NewId
from bot.domain import Clock, ConversationReference, Notice
from bot.gateway.thread_ids import is_gateway_thread
from bot.outbox import Outbox, notice, said
from bot.platform import Platform
from bot.records import approvals, deliveries, posts, threads
from bot.records.approvals import ApprovalRow
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost, PostRow
from bot.safe_text import one_line
from bot.views import deciders_in_words, shown_client
from graph.interrupts import ApprovalAsked, Approved, Expired, InterruptAnswer, Rejected, Superseded, Withdrawn
from graph.ports import InTurn, Spoken
from policies.model import LONGEST_CLIENT, Ask
from translations import gettext as _

log = structlog.get_logger(__name__)
TimerKind = Literal["remind", "escalate", "expire"]
LearnNames = Callable[[Iterable[str]], Awaitable[None]]
"""Finds out, where that can be done, the names of those people among these ids who have none yet."""


class ApprovalRequests:
    """Records approvals and posts their cards. Fills `graph.ports.ApprovalPort`.

    A place has one card of an approval, however often it is named.

    Args:
        platforms: of which each may know the places that a policy names.
        learn_names: of those who may decide, since cards name them.
        timer_set: called when a timer was kept, once that is committed.
        gateway_place: where the calls of programs are asked about whose rule names no place; `None`: none is set.
    """

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        platforms: Mapping[str, Platform],
        clock: Clock,
        new_id: NewId,
        *,
        learn_names: LearnNames,
        timer_set: Callable[[], None],
        gateway_place: str | None = None,
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._platforms = platforms
        self._clock = clock
        self._new_id = new_id
        self._learn_names = learn_names
        self._timer_set = timer_set
        self._gateway_place = gateway_place
        outbox.when_given_up(self._card_given_up)

    # ------------------------------------------------------------------------------------------- asking

    async def ask(
        self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken], in_turn: InTurn
    ) -> ApprovalAsked:
        """Keeps what the model said before the call, and `record`s the approval, in one transaction. Returns what is
        recorded: what a card shows, and what an approval of it is given for, stays what was asked first."""
        await self._learn_names([*asked.ask.approvers, *asked.ask.escalate_to])
        await in_turn()
        async with self._database.writing(thread_id) as tx:
            for each in spoken:
                await self._outbox.say(tx, said(thread_id, each))
            await self.record(tx, thread_id, asked)
            row = await approvals.of_call(tx, asked.call_id, asked.round)
        return row.asked if row is not None else asked

    async def not_asked(self, call_id: str, round_: int) -> None:
        """Supersedes what was asked about this round of a call by a run that broke off, if it is still pending."""
        async with self._database.reading() as tx:
            row = await approvals.of_call(tx, call_id, round_)
        if row is not None:
            async with self._database.writing(row.thread_id) as tx:
                why = _("The rules changed before anyone decided")
                await self.supersede(tx, row, f"not asked:{row.approval_id}", why)

    async def record(self, tx: Transaction, thread_id: str, asked: ApprovalAsked) -> None:
        """Records an approval, posts its cards, in its thread and in each place that the rule routes it to, and sets
        its timers. What is recorded already stays as it is."""
        now, approval_id = self._clock(), self._new_id()
        expires_at = None if asked.ask.expires_in is None else now + asked.ask.expires_in
        if not await approvals.add(tx, approval_id, thread_id, asked, now=now, expires_at=expires_at):
            return
        if asked.round > 1:
            await self._outbox.show_again(tx, await approvals.void_unused(tx, asked.call_id, asked.round))
        if not self._is_asked_elsewhere(thread_id, asked):
            await self._outbox.say(tx, _card(thread_id, approval_id))
        await self._show_elsewhere(tx, thread_id, approval_id, asked, asked.ask.route_to)
        for timer in timers_of(approval_id, thread_id, asked.ask, now):
            await deliveries.add(tx, timer)
            tx.afterwards(self._timer_set)

    async def show_to(self, tx: Transaction, row: ApprovalRow, references: Iterable[str]) -> None:
        """Posts a card in each of these places and direct chats that has none yet."""
        await self._show_elsewhere(tx, row.thread_id, row.approval_id, row.asked, references)

    def reaches(self, person_id: str) -> bool:
        """Returns whether there is a place where this person, alone, can be shown a card."""
        return any(platform.named_place(person_id) is not None for platform in self._platforms.values())

    async def _show_elsewhere(
        self, tx: Transaction, thread_id: str, approval_id: str, asked: ApprovalAsked, references: Iterable[str]
    ) -> None:
        places = self._places(references, asked)
        if not places:
            return
        own = _card(thread_id, approval_id)
        thread, here = await threads.get(tx, thread_id), set[str]()
        if thread and not self._is_asked_elsewhere(thread_id, asked):
            here.add(thread.place.channel or thread.place.key)
            if thread.place.direct:
                here.add(asked.requesters[0])
        for key, place in places.items():
            if key not in here:
                await self._outbox.say(tx, replace(own, key=f"{own.key}@{key}", place=place))

    def _is_asked_elsewhere(self, thread_id: str, asked: ApprovalAsked) -> bool:
        """Whether the thread's own place gets no card: the call of a program, which nobody follows there, is shown
        where the rule routes it to."""
        return is_gateway_thread(thread_id) and bool(self._places(asked.ask.route_to, asked))

    def _places(self, references: Iterable[str], asked: ApprovalAsked) -> Mapping[str, ConversationReference]:
        places: dict[str, ConversationReference] = {}
        for reference in references:
            named = (platform.named_place(reference) for platform in self._platforms.values())
            place = next((place for place in named if place is not None), None)
            if place is None:
                log.warning("route_not_known", rule=asked.ask.rule, place=reference)
            else:
                places.setdefault(place.key, place)
        return places

    async def _card_given_up(self, tx: Transaction, post: PostRow) -> None:
        """A card cannot be shown where the call of a program was routed to. When nobody sees another one, the caller
        is shown one in their own place."""
        if post.kind != "approval" or post.subject is None or post.place is None or post.reference is not None:
            return
        row = await self._still_open(tx, post.subject) if is_gateway_thread(post.thread_id) else None
        if row is None:
            return
        named = self._places([self._gateway_place] if self._gateway_place else [], row.asked)
        by = "GATEWAY_PLACE" if post.place.key in named else row.asked.ask.rule
        log.warning("approval_not_shown", approval=row.approval_id, place=post.place.key, named_by=by)
        cards = (await posts.of_subjects(tx, [row.approval_id])).get(row.approval_id, ())
        thread = await threads.get(tx, row.thread_id)
        if thread and thread.place.platform in self._platforms and all(card.is_nowhere for card in cards):
            await self._outbox.say(tx, _card(row.thread_id, row.approval_id))

    # ------------------------------------------------------------------------------------------- timers

    async def on_timer(self, tx: Transaction, timer: Delivery) -> bool:
        """Reminds, escalates or expires, unless the approval is settled. Returns whether its thread goes on now."""
        approval_id = timer.body["approval"]
        match timer_kind(timer):
            case "remind":
                await self._remind(tx, approval_id)
            case "escalate":
                await self._escalate(tx, approval_id)
            case "expire":
                return await self._expire(tx, approval_id, timer.key)
        return False

    async def _remind(self, tx: Transaction, approval_id: str) -> None:
        """Says beside each card that it still waits."""
        row = await self._still_open(tx, approval_id)
        if row is None:
            return
        asked_by = (await threads.names(tx, row.asked.requesters[:1]))[row.asked.requesters[0]]
        client = one_line(shown_client(row.asked.client, row.thread_id), LONGEST_CLIENT)
        if client:
            told = _("Reminder: {call} needs approval. Requested by {name} through {program}. Approver: {approvers}.")
        elif row.asked.agent:
            told = _(
                "Reminder: {call} needs approval. Requested by {name} through the {agent} agent. Approver: {approvers}."
            )
        else:
            told = _("Reminder: {call} needs approval. Requested by {name}. Approver: {approvers}.")
        text = told.format(
            call=f"{row.asked.server}: {row.asked.tool}",
            name=asked_by,
            program=client,
            agent=row.asked.agent,
            approvers=await deciders_in_words(tx, row, self._clock()),
        )
        for card in (await posts.of_subjects(tx, [row.approval_id])).get(row.approval_id, ()):
            key = f"remind:{row.approval_id}" + (f"@{card.place.key}" if card.place else "")
            await self._outbox.say(tx, notice(key, row.thread_id, Notice(text), place=card.place))

    async def _escalate(self, tx: Transaction, approval_id: str) -> None:
        """Lets others decide too from now on: they get the card, and every card says so."""
        row = await self._still_open(tx, approval_id)
        if row is not None:
            await self.show_to(tx, row, row.asked.ask.escalate_to)
            await self._outbox.show_again(tx, [approval_id])

    async def _expire(self, tx: Transaction, approval_id: str, key: str) -> bool:
        """Whether it has expired by this timer, now or when the timer was handled before."""
        if await approvals.settle(tx, approval_id, "expired", key=key, now=self._clock()):
            await self._outbox.show_again(tx, [approval_id])
            return True
        row = await approvals.get(tx, approval_id)
        return row is not None and row.settled_key == key

    async def _still_open(self, tx: Transaction, approval_id: str) -> ApprovalRow | None:
        row = await approvals.hold(tx, approval_id)
        return row if row is not None and is_open(row, self._clock()) else None

    # ------------------------------------------------------------------------------------------- no longer wanted

    async def supersede(self, tx: Transaction, row: ApprovalRow, key: str, why: str) -> None:
        """Supersedes an approval, if it is still pending.

        Args:
            key: of the delivery that does it.
            why: shown on the card.
        """
        if await approvals.settle(tx, row.approval_id, "superseded", key=key, now=self._clock(), reason=why):
            await self._outbox.show_again(tx, [row.approval_id])

    async def supersede_unused(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """Supersedes what was approved in a thread and is not to be started any more."""
        given_up = await approvals.supersede_unused(tx, thread_id, key=key, now=self._clock(), reason=why)
        await self._outbox.show_again(tx, given_up)

    async def void(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """Voids what waits or was approved in a thread that does not know of it any more."""
        await self._outbox.show_again(
            tx, await approvals.void_in(tx, thread_id, key=key, now=self._clock(), reason=why)
        )


def timers_of(approval_id: str, thread_id: str, ask: Ask, now: float) -> Sequence[Delivery]:
    """Returns what is to happen when nobody decides, as rows of the inbox that are due later and outlive restarts. What
    would come after the end is left out."""
    after: dict[TimerKind, float | None] = {
        "remind": ask.remind_after,
        "escalate": ask.escalate_after if ask.escalate_to else None,
        "expire": ask.expires_in,
    }
    end = float("inf") if ask.expires_in is None else ask.expires_in
    return [
        Delivery(f"{kind}:{approval_id}", thread_id, "timer", {"approval": approval_id}, False, now, now + seconds)
        for kind, seconds in after.items()
        if seconds is not None and (seconds < end or kind == "expire")
    ]


def timer_kind(timer: Delivery) -> TimerKind:
    """Returns what a timer of an approval is for. Raises `ValueError` for any other timer."""
    match timer.key.partition(":")[0]:
        case ("remind" | "escalate" | "expire") as kind:
            return kind
        case other:
            raise ValueError(f"unknown kind of timer: {other}")


def is_open(row: ApprovalRow, now: float) -> bool:
    """Returns whether it can still be decided. `now`: seconds since the epoch."""
    return row.status == "pending" and not has_expired(row, now)


def has_expired(row: ApprovalRow, now: float) -> bool:
    """Returns whether its time is over, though its timer may not have been handled yet."""
    return row.expires_at is not None and row.expires_at <= now


def is_gone(row: ApprovalRow, now: float) -> bool:
    """Returns whether nobody has decided it and nobody can any more."""
    return has_expired(row, now) if row.status == "pending" else row.status not in {"approved", "rejected"}


async def answer_of(tx: Transaction, row: ApprovalRow) -> InterruptAnswer | None:
    """Returns what a settled approval tells the graph; `None` while it is pending.

    One that is void since its call was asked about again tells what it told then: whoever died right after that, before
    it was kept how far the call is, comes to the same asking by it. Nothing runs under it.
    """
    cast = await approvals.votes_on(tx, row.approval_id)
    was_approved = row.status == "void" and row.settled_at is not None and not row.reason
    match "approved" if was_approved else row.status:
        case "pending":
            return None
        case "approved":
            by = tuple(v.name for v in cast if v.verb == "approve")
            arguments = dict(row.approved_arguments) if row.approved_arguments is not None else None
            return Approved(by=by, arguments=arguments, edited_by=row.edited_by, notes=approvals.notes_in(cast))
        case "rejected":
            by_whom = ", ".join(v.name for v in cast if v.verb == "reject")
            return Rejected(by=by_whom or "someone", reason=row.reason)
        case "expired":
            return Expired()
        case "withdrawn":
            names = await threads.names(tx, row.asked.requesters[:1])
            return Withdrawn(by=names[row.asked.requesters[0]])
        case _:
            return Superseded(reason=row.reason)


def _card(thread_id: str, approval_id: str) -> NewPost:
    return NewPost(f"approval:{approval_id}", thread_id, "approval", subject=approval_id)
