"""What people are shown: an approval, what waits for them, a thread. Read-only; nothing here waits for a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from bot.approvals.directory import PeopleDirectory
from bot.approvals.permissions import is_shown_within, permission_of
from bot.approvals.requests import is_open
from bot.card_masks import masked_card, masked_post
from bot.domain import (
    ApprovalView,
    Clock,
    ConversationReference,
    GrantView,
    MessageView,
    Overview,
    PendingApprovals,
    Person,
    Post,
    Shown,
    ThreadView,
    Together,
    Unknown,
)
from bot.gateway.thread_ids import is_gateway_thread, within_gateway
from bot.platform import Reference
from bot.records import approvals, deliveries, posts, threads, waiting
from bot.records.approvals import ApprovalRow, GrantRow
from bot.records.database import Database, Transaction
from bot.records.posts import PostRow
from bot.records.waiting import turns_of
from bot.views import approval_view, as_asked, post_of
from policies.approvers import ANYBODY, Permitted
from policies.masking import Masker
from policies.model import home_of
from translations import gettext as _

_T = TypeVar("_T")
SHOWN = 300
"""Messages and posts of a thread that are shown, the newest of each."""
RECENT = 10
"""Outcomes that an overview shows."""
LISTED = 16
"""Entries of each other kind that an overview has; no platform has space for more."""
MOST_CHANNELS = 40
"""Channels of which it is found out whether somebody is there; what was asked in others is left out."""
MOST_TOGETHER = 40
"""Approvals that can be decided with one click."""
LONGEST_LISTED = 20_000
"""Characters of arguments that are read for a list, which shows a few hundred of them. To mask a megabyte takes a
second of CPU."""
Among = Callable[[Sequence[ConversationReference]], Awaitable[Collection[str]]]
"""Returns the keys of those places whose conversations a person is in; a place where that could not be found out is
left out."""
REMEMBERED_ANSWERS = 200
"""Answers at one place that a reaction is looked for in, the newest."""


class Queries:
    """Everything that only reads. What it gives out is masked as on the cards."""

    def __init__(self, database: Database, directory: PeopleDirectory, clock: Clock, masker: Masker) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock
        self._masker = masker

    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        """An approval as it is now, if its thread's id, or a place that it was routed to, begins with `within` (a
        platform, or one workspace of it)."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
            if row is None or not is_shown_within(row, within):
                return no_approval()
            view = await approval_view(tx, approval_id, within, now=self._clock())
        return await masked_card(view, self._masker) if view else no_approval()

    async def is_ours(self, message: str, within: str) -> bool:
        """Whether a message, by the platform's id for it in a reference, is recorded as a post in a place whose key
        begins with `within`."""
        async with self._database.reading() as tx:
            return await posts.is_in_a_reference(tx, message, within)

    async def decidable_with(self, approval_id: str, person: Person) -> tuple[str, ...]:
        """Ids of the approvals that wait in the same thread and that this person may decide, oldest first."""
        async with self._database.reading() as tx:
            found = await approvals.get_short(tx, approval_id, 0)
            rows = await approvals.pending_in(tx, found[0].thread_id) if found else []
        return tuple(await self._to_decide(rows, person))

    async def together(self, approval_id: str, person: Person) -> Together:
        """Those approvals for a list: the first `MOST_TOGETHER`, but for those with long arguments."""
        theirs = await self.decidable_with(approval_id, person)
        listed: list[ApprovalView] = []
        async with self._database.reading() as tx:
            for each in theirs[:MOST_TOGETHER]:
                view = await _alone(approval_view(tx, each, now=self._clock(), longest=LONGEST_LISTED))
                if view is not None and not view.unread:
                    listed.append(await masked_card(view, self._masker))
        return Together(tuple(listed), len(theirs) - len(listed))

    async def permitted(self, approval_id: str, person: Person) -> bool:
        """Whether this person may decide it now; no, where that could not be found out."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        return row is not None and row.status == "pending" and bool(await self._to_decide([row], person))

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        """Where the card of an approval, a question, a sign-in or a broken attempt is shown, in every place; the one in
        its own thread first."""
        async with self._database.reading() as tx:
            rows = (await posts.of_subjects(tx, [subject])).get(subject, ())
            found = [await self._shown(tx, row) for row in rows]
        return tuple(each for each in found if each is not None)

    async def answer_at(self, place: ConversationReference, is_it: Callable[[Reference], bool]) -> str | None:
        """Id of the answer, among the newest at a place, whose reference fits: for reactions, which name a message."""
        async with self._database.reading() as tx:
            rows = await posts.answers_at(tx, place.key, REMEMBERED_ANSWERS)
        return next((row.key for row in rows if row.reference is not None and is_it(row.reference)), None)

    async def overview(self, person: Person, within: str, among: Among) -> Overview:
        """What this person may decide, waits for, and had settled lately, in threads whose id begins with `within` (a
        platform, or one workspace of it).

        That anybody may decide is no reason to show everybody what was asked in a private channel: its members see the
        card there, so of such places only those are shown that they are `among`. In a direct chat nobody else could
        decide, so there it is shown to whoever may.
        """
        async with self._database.reading() as tx:
            pending = await waiting.pending_approvals(tx, [within])
            mine = [row.approval_id for row in pending if row.asked.requesters[0] == person.person_id]
            mine += await waiting.open_questions(tx, person.person_id, within)
            settled = await waiting.settled_lately(tx, person.person_id, within, RECENT)
        theirs = await self._to_decide(pending, person)
        own = [subject for subject in mine if subject not in set(theirs)]
        async with self._database.reading() as tx:
            cards = await self._cards(tx, [*theirs, *own, *settled], within)
        hidden = await self._hidden(pending, cards, set(theirs) - set(mine), among)
        theirs = [subject for subject in theirs if subject in cards and subject not in hidden]
        own = [subject for subject in own if subject in cards]
        return Overview(
            to_decide=await self._listed(cards, theirs[:LISTED]),
            waiting=await self._listed(cards, own[:LISTED]),
            recent=await self._listed(cards, settled),
            more_to_decide=max(0, len(theirs) - LISTED),
            more_waiting=max(0, len(own) - LISTED),
        )

    async def pending(self, person: Person, within: str = "", most: int = LISTED) -> PendingApprovals:
        """The approvals that this person may decide now, asked on the page or where they have an account, and those
        that wait for others for what they asked for, under whichever account. Cheap where nothing waits. As in an
        overview, what anybody may decide is shown to those only who are where it was asked.

        Args:
            within: what the ids of their threads, or of places that they were routed to, begin with.
            most: how many are listed of each.
        """
        async with self._database.reading() as tx:
            if not await waiting.is_anything_asked(tx):
                return PendingApprovals()
        accounts = await self._directory.accounts_of(person.person_id)
        homes = sorted({"web:", *(f"{home_of(account)}:" for account in accounts)})
        there = tuple(max(home, within, key=len) for home in homes if _is_one_within_the_other(home, within))
        async with self._database.reading() as tx:
            found = await waiting.pending_approvals(tx, there)
        own = [row.approval_id for row in found if row.asked.requesters[0] in accounts]
        pending = [row for row in found if is_open(row, self._clock())]
        # What no conversation shows is listed first: whatever else waits is shown in its own as well.
        pending.sort(key=lambda row: not is_gateway_thread(row.thread_id))
        theirs = await self._to_decide(pending, person)
        async with self._database.reading() as tx:
            cards = await self._cards(tx, list(dict.fromkeys([*theirs, *own])), there)
        hidden = await self._hidden(pending, cards, set(theirs) - set(own), partial(self._among, person))
        theirs = [subject for subject in theirs if subject in cards and subject not in hidden]
        listed = set(theirs)
        for_others = [subject for subject in own if subject not in listed]
        return PendingApprovals(
            await self._listed(cards, theirs[:most]),
            max(0, len(theirs) - most),
            await self._listed(cards, for_others[:most]),
        )

    async def asked_through_programs(self, person: Person, most: int = LISTED) -> tuple[Shown, ...]:
        """The questions, sign-ins and unknown outcomes that wait for this very account, in calls of other agents whose
        callers are asked where it is: no conversation shows them. Oldest first."""
        async with self._database.reading() as tx:
            waiting_ = await waiting.open_questions(tx, person.person_id, within_gateway(person.person_id))
            cards = await self._cards(tx, waiting_, "") if waiting_ else {}
        oldest = sorted(cards, key=lambda subject: cards[subject][0].seq)
        return await self._listed(cards, oldest[:most])

    async def settled_for(self, person: Person, most: int = RECENT) -> tuple[Shown, ...]:
        """Those that were settled lately, the latest first."""
        accounts = await self._directory.accounts_of(person.person_id)
        async with self._database.reading() as tx:
            settled = [
                each for account in sorted(accounts) for each in await waiting.settled_lately(tx, account, "", most)
            ]
            cards = await self._cards(tx, settled, "")
        listed = await self._listed(cards, settled)
        return tuple(sorted(listed, key=_settled_at, reverse=True)[:most])

    async def decided_by(self, person: Person, most: int = LISTED) -> tuple[Shown, ...]:
        """The settled approvals on which this person has voted, wherever they have an account, the latest first."""
        accounts = await self._directory.accounts_of(person.person_id)
        async with self._database.reading() as tx:
            decided = await waiting.decided_lately(tx, sorted(accounts), most)
            cards = await self._cards(tx, decided, "")
        return await self._listed(cards, decided)

    async def cards_that_wait(self) -> tuple[int, int, int, int]:
        """A value that is another one when other cards wait for decisions, or one of them shows something else; one
        statement, for whoever would read them all whenever anything has changed. It begins with how many wait, and ends
        with how much of whatever kind waits for the calls of other agents."""
        async with self._database.reading() as tx:
            return await waiting.cards_that_wait(tx)

    async def standing_approvals(self, person: Person) -> tuple[GrantView, ...]:
        """What this person always allows themselves now, the one that ends last first."""
        async with self._database.reading() as tx:
            rows = await approvals.listed_grants(tx, person.person_id, self._clock(), LONGEST_LISTED)
        views = [_grant_view(row, unread) for row, unread in rows]
        return tuple([await masked_card(view, self._masker) for view in views])

    async def standing_approval(self, grant_id: str, person: Person) -> GrantView | Unknown:
        """One of them, with all its arguments, however long."""
        async with self._database.reading() as tx:
            row = await approvals.grant(tx, grant_id)
        if row is None or row.person_id != person.person_id or row.revoked_at is not None or row.until <= self._clock():
            return Unknown(_("Standing approval no longer available."))
        return await masked_card(_grant_view(row), self._masker)

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
        async with self._database.reading() as tx:
            return await turns_of(tx, person.person_id, within)

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        """A thread as this person may see it, oldest first; `None`: there is none."""
        async with self._database.reading() as tx:
            row = await threads.get(tx, thread_id)
            if row is None:
                return None
            messages = await deliveries.messages_of(tx, thread_id, SHOWN)
            kept = [p for p in await posts.of_thread(tx, thread_id, SHOWN) if p.only_for in {None, person.person_id}]
            here, now = [p for p in kept if p.place is None], self._clock()
            posts_here = [await _alone(post_of(tx, p, row.place, now)) for p in here]
        shown = [await masked_post(post, self._masker) for post in posts_here if post is not None]
        entries: list[MessageView | Post] = sorted([*messages, *shown], key=lambda entry: entry.at)
        return ThreadView(thread_id, row.title, tuple(entries))

    async def post(self, post_id: str) -> Post | None:
        """A post as it is shown now, where it is shown now; `None`: there is none. It may be for one person only."""
        async with self._database.reading() as tx:
            row = await posts.get(tx, post_id)
            shown = await self._shown(tx, row) if row is not None else None
        return shown.post if shown is not None else None

    async def message(self, thread_id: str, key: str) -> MessageView | None:
        """What somebody wrote in a thread; `None`: nothing that is shown."""
        async with self._database.reading() as tx:
            return await deliveries.message_of(tx, thread_id, key)

    async def _to_decide(self, rows: Sequence[ApprovalRow], person: Person) -> list[str]:
        """Ids of those that this person may decide now; not those of which that could not be found out."""
        known, now = await self._directory.for_judging(person.person_id, rows), self._clock()
        permissions = [(row.approval_id, permission_of(row, person.person_id, known, now)) for row in rows]
        return [approval_id for approval_id, permission in permissions if isinstance(permission, Permitted)]

    async def _cards(
        self, tx: Transaction, subjects: Collection[str], within: str | tuple[str, ...]
    ) -> Mapping[str, tuple[PostRow, ConversationReference]]:
        """The card of each of them that has one, and where it is shown: of several, the first that is `within`."""
        rows = await posts.of_subjects(tx, list(subjects)) if subjects else {}
        found: dict[str, tuple[PostRow, ConversationReference]] = {}
        for subject, cards in rows.items():
            card = next((row for row in cards if row.lane.startswith(within)), cards[0])
            place = await _alone(_place_of(tx, card))
            if place is not None:
                found[subject] = (card, place)
        return found

    async def _hidden(
        self,
        pending: Sequence[ApprovalRow],
        cards: Mapping[str, tuple[PostRow, ConversationReference]],
        doubtful: Collection[str],
        among: Among,
    ) -> set[str]:
        """Those that anybody may decide and that were asked where this person is not."""
        now = self._clock()
        places = {
            row.approval_id: cards[row.approval_id][1]
            for row in pending
            if row.approval_id in doubtful and row.approval_id in cards
            if ANYBODY in as_asked(row, now).approvers and not cards[row.approval_id][1].direct
        }
        seen = await among(list(places.values())) if places else ()
        return {approval_id for approval_id, place in places.items() if place.key not in seen}

    async def _among(self, person: Person, places: Sequence[ConversationReference]) -> set[str]:
        """Keys of those places in whose channels this person is, with any account of theirs."""
        channels = list(dict.fromkeys(place.channel or place.key for place in places))[:MOST_CHANNELS]
        answers = await asyncio.gather(*(self._directory.in_channel(person.person_id, channel) for channel in channels))
        theirs = {channel for channel, is_in in zip(channels, answers, strict=True) if is_in}
        return {place.key for place in places if (place.channel or place.key) in theirs}

    async def _listed(
        self, cards: Mapping[str, tuple[PostRow, ConversationReference]], subjects: Sequence[str]
    ) -> tuple[Shown, ...]:
        found: list[Shown] = []
        async with self._database.reading() as tx:
            for card, place in [cards[subject] for subject in subjects if subject in cards]:
                post = await _alone(post_of(tx, card, place, self._clock(), LONGEST_LISTED))
                if post is not None:
                    found.append(Shown(await masked_post(post, self._masker), card.reference))
        return tuple(found)

    async def _shown(self, tx: Transaction, row: PostRow) -> Shown | None:
        place = await _place_of(tx, row)
        post = await post_of(tx, row, place, self._clock()) if place else None
        return Shown(await masked_post(post, self._masker), row.reference) if post else None


def no_approval() -> Unknown:
    """Returns what is said of an approval that is not there."""
    return Unknown(_("Request no longer available."))


def _settled_at(shown: Shown) -> float:
    view = shown.post.content
    return (view.decided_at or view.asked_at) if isinstance(view, ApprovalView) else 0.0


def _is_one_within_the_other(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


async def _place_of(tx: Transaction, row: PostRow) -> ConversationReference | None:
    if row.place is not None:
        return row.place
    thread = await threads.get(tx, row.thread_id)
    return thread.place if thread else None


async def _alone(reading: Awaitable[_T]) -> _T:
    """What was read; others have their turn then, since a card with a megabyte of arguments takes 20 ms (rule 13)."""
    found = await reading
    await asyncio.sleep(0)
    return found


def _grant_view(row: GrantRow, unread: int = 0) -> GrantView:
    return GrantView(
        row.grant_id,
        row.server,
        row.tool,
        row.arguments,
        row.until,
        unread=unread,
        client=row.client or "",
        title=row.title or "",
        presentation=approvals.presentation_in(row.presentation),
    )
