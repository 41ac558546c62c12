"""What people ask to see: an approval, what waits, what concerns them. Read-only: nothing here waits for a turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from bot.approvals import ApprovalBook
from bot.permissions import is_within
from bot.platform import Reference
from bot.records import approvals, clarifications, concerns, deliveries, posts, threads
from bot.records.clarifications import ClarificationRow
from bot.records.database import Database, Transaction
from bot.records.posts import PostRow
from bot.turns import turns_of
from bot.views import approval_view, post_of
from bot.vocabulary import (
    ApprovalView,
    Form,
    MessageView,
    Overview,
    Person,
    Place,
    Post,
    Refused,
    Shown,
    ThreadSummary,
    ThreadView,
    Unknown,
)

SHOWN = 300
"""Messages and posts of a thread that are shown, the newest of each."""
RECENT = 10
"""Outcomes that an overview shows."""
REMEMBERED_ANSWERS = 200
"""Answers at one place that a reaction is looked for in, the newest."""
NO_APPROVAL = Unknown("This approval does not exist (any more).")
NO_QUESTION = Unknown("This question does not exist (any more).")


class Overviews:
    """The reading half of the desk."""

    def __init__(self, database: Database, book: ApprovalBook) -> None:
        self._database = database
        self._approvals = book

    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        """An approval as it is now, if its thread's id, or a place that it was routed to, begins with `within`."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
            if row is None or not is_within(row, within):
                return NO_APPROVAL
            return await approval_view(tx, approval_id, within) or NO_APPROVAL

    async def is_ours(self, message: str, within: str) -> bool:
        """Whether a message, by the platform's id, is recorded as a post of ours."""
        async with self._database.reading() as tx:
            return await posts.is_in_a_reference(tx, message, within)

    async def together(self, approval_id: str, person: Person) -> tuple[ApprovalView, ...]:
        """The approvals that wait in the same thread and that this person may decide, oldest first."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
            rows = await approvals.pending_in(tx, row.thread_id) if row else []
            theirs = [each for each in rows if self._approvals.may_decide(each, person)]
            views = [await approval_view(tx, each.approval_id) for each in theirs]
        return tuple(view for view in views if view is not None)

    async def permitted(self, approval_id: str, person: Person) -> bool:
        """Whether this person may decide it now."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        return row is not None and row.status == "pending" and self._approvals.may_decide(row, person)

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        """Where a card is shown, in every place; the one in its own thread first."""
        async with self._database.reading() as tx:
            rows = (await posts.of_subjects(tx, [subject])).get(subject, ())
            found = [await _shown(tx, row) for row in rows]
        return tuple(each for each in found if each is not None)

    async def answer_at(self, place: Place, is_it: Callable[[Reference], bool]) -> str | None:
        """Id of the answer, among the newest at a place, whose reference fits."""
        async with self._database.reading() as tx:
            rows = await posts.answers_at(tx, place.key, REMEMBERED_ANSWERS)
        return next((row.key for row in rows if row.reference is not None and is_it(row.reference)), None)

    async def question_form(self, clarification_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to answer an open question with, for whom it was put to."""
        async with self._database.reading() as tx:
            row = await clarifications.get(tx, clarification_id)
        if row is None:
            return NO_QUESTION
        if row.requester != person.person_id:
            return Refused("This question is for somebody else.")
        if row.status != "open":
            return Refused("This question was settled already.")
        return _question_form(row)

    async def overview(self, person: Person, within: str) -> Overview:
        """What concerns this person in threads whose id begins with `within`."""
        async with self._database.reading() as tx:
            pending = await concerns.pending_approvals(tx, within)
            mine = [row.approval_id for row in pending if row.asked.requesters[0] == person.person_id]
            mine += await concerns.open_questions(tx, person.person_id, within)
            lately = await concerns.settled_lately(tx, person.person_id, within, RECENT)
            theirs = [row.approval_id for row in pending if self._approvals.may_decide(row, person)]
            settled = [row.approval_id for row in lately]
            cards = await _cards(tx, dict.fromkeys([*theirs, *mine, *settled]), within)
        to_decide, waiting, recent = (
            tuple(cards[subject] for subject in subjects if subject in cards) for subjects in (theirs, mine, settled)
        )
        return Overview(to_decide, waiting, recent)

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
        async with self._database.reading() as tx:
            return await turns_of(tx, person.person_id, within)

    async def threads(self, platform: str, limit: int) -> tuple[ThreadSummary, ...]:
        """The newest threads of a platform."""
        async with self._database.reading() as tx:
            return await threads.newest(tx, platform, limit)

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        """A thread as this person may see it, oldest first."""
        async with self._database.reading() as tx:
            row = await threads.get(tx, thread_id)
            if row is None:
                return None
            messages = await deliveries.messages_of(tx, thread_id, SHOWN)
            kept = [p for p in await posts.of_thread(tx, thread_id, SHOWN) if p.only_for in {None, person.person_id}]
            here = [p for p in kept if p.place is None]
            shown = [post for p in here if (post := await post_of(tx, p, row.place)) is not None]
        entries: list[MessageView | Post] = sorted([*messages, *shown], key=_time)
        return ThreadView(thread_id, row.title, tuple(entries))


async def _cards(tx: Transaction, subjects: Collection[str], within: str) -> Mapping[str, Shown]:
    """The card of each of them that has one: of several, the first that is shown `within`."""
    rows = await posts.of_subjects(tx, list(subjects)) if subjects else {}
    found: dict[str, Shown] = {}
    for subject, cards in rows.items():
        shown = await _shown(tx, next((row for row in cards if row.lane.startswith(within)), cards[0]))
        if shown is not None:
            found[subject] = shown
    return found


async def _shown(tx: Transaction, row: PostRow) -> Shown | None:
    thread = await threads.get(tx, row.thread_id) if row.place is None else None
    place = row.place or (thread.place if thread else None)
    post = await post_of(tx, row, place) if place else None
    return Shown(post, row.reference) if post else None


def _question_form(row: ClarificationRow) -> Form:
    defaults = {field.name: field.default for field in row.fields if field.default is not None}
    return Form(row.question, row.fields, defaults)


def _time(entry: MessageView | Post) -> float:
    return entry.at
