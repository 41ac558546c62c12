"""Conversations of the page and of programs: whose they are, what of one somebody may see, and where a turn stands.

A conversation belongs to whoever began it. Who may decide something in it sees the turns that this is about, and
operators see all of it, which the audit log says. For everybody else there is none. Read-only but for that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from bot.approvals.directory import PeopleDirectory
from bot.approvals.permissions import permission_of
from bot.audit.entries import Link
from bot.card_masks import masked_arguments, masked_card
from bot.domain import (
    ApprovalView,
    ClarificationView,
    Clock,
    MessageView,
    Notice,
    OutcomeView,
    Person,
    PlanView,
    Post,
    Said,
    Search,
    SignInView,
    ThreadSummary,
    ThreadView,
    Unknown,
)
from bot.gateway.thread_ids import is_gateway_thread
from bot.queries import SHOWN, Queries, no_approval
from bot.records import (
    approvals,
    asked,
    attempts,
    audit,
    clarifications,
    deliveries,
    posts,
    thread_owners,
    threads,
    turn_marks,
    waiting,
)
from bot.records.approvals import ApprovalRow
from bot.records.asked import AskedRow
from bot.records.attempts import AttemptRow
from bot.records.database import Database, Pauses, Transaction
from bot.task_threads import conversation_of, is_task_thread, turn_of_call
from bot.views import approval_view, clarification_view, outcome_view, place_in_turn, sign_in_view
from graph.citations import Source, kept_sources
from policies.approvers import Permitted
from policies.masking import Masker
from translations import gettext as _

MOST_AUDIT_ENTRIES = 500
"""That are read at once."""
LISTED = 100
"""Conversations in a list."""
SEARCHED_AT_ONCE = 50
"""Messages, or answers, that are read at once; each has 20,000 characters at most."""
MOST_SEARCHED = 20_000_000
"""Characters that are looked through in one search, half a second of CPU."""
MOST_FOUND = 30
"""Conversations that a search lists."""
FIRST_TOO_LARGE = 2**63
"""No conversation has this number, nor a larger one: databases could not look for all of them."""
FOR_ONE_PERSON = "[result for that person only]"
"""Stands for what came of a call over somebody else's account."""

IsOperator = Callable[[Person], Awaitable[bool]]


def no_conversation() -> Unknown:
    """Returns what is said of a conversation that is not there, or not for whoever asks."""
    return Unknown(_("This conversation doesn’t exist, or you can’t see it."))


class NoteReading(Protocol):
    """Keeps, in the audit log, that an operator looked at something; `AuditLog.read` is one."""

    async def __call__(self, person: Person, what: str, thread_id: str = "") -> None:
        """`what`: in two or three words. `thread_id`: of the conversation that it is."""
        ...


@dataclass(frozen=True, slots=True)
class CallState:
    """A tool call of a turn, and what has come of it."""

    call_id: str
    server: str
    tool: str
    """The server's own name for it."""
    arguments: Mapping[str, Any]
    """Secrets are masked."""
    status: Literal["waiting", "running", "done", "failed", "unknown", "not made"]
    result: str = ""
    """What the tool returned, what went wrong, or why it was not made."""
    why: str = ""
    """Of a call that was not made: `denied`, `limited`, `rejected`, `expired`, `withdrawn`, `superseded`, …"""
    approval_id: str | None = None
    """Of a call that waits for people."""


@dataclass(frozen=True, slots=True)
class SaidInTurn:
    """Something that the bot said in a turn."""

    message_id: str
    """`{delivery}.{step}`, as of the text while it is written."""
    text: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where a turn stands."""

    thread_id: str
    delivery: str
    """Key of the message that began it."""
    status: Literal["running", "waiting", "ended"]
    """`waiting`: for people, in what is listed below."""
    answer: str = ""
    """What the bot said last in it; empty: nothing yet."""
    answer_id: str = ""
    """Post id of that."""
    answer_number: int = 0
    notices: tuple[Notice, ...] = ()
    """Sentences of the bot's own about the message: why no turn began, or that something went wrong."""
    calls: tuple[CallState, ...] = ()
    approvals: tuple[ApprovalView, ...] = ()
    clarifications: tuple[ClarificationView, ...] = ()
    sign_ins: tuple[SignInView, ...] = ()
    outcomes: tuple[OutcomeView, ...] = ()
    said: tuple[SaidInTurn, ...] = ()
    """All that the bot said in it, oldest first; the answer is the last of it."""
    agent: str = ""
    """Name of the agent that said the answer; empty: the default one."""
    sources: tuple[Source, ...] = ()
    """What the answer cites."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """All approvals of the turn, oldest first → how they stand; `changed`: somebody edited the call, so that people are
    asked anew and nothing runs under it."""


@dataclass(frozen=True, slots=True)
class _WhatIsSeen:
    """What of a conversation somebody sees."""

    seen_as: Literal["owner", "approver", "operator"]
    turns: frozenset[str] = field(default=frozenset())
    """Keys of the messages that began what an approver sees."""
    approvals: frozenset[str] = field(default=frozenset())


class Conversations:
    """Reads conversations for those who may see them."""

    def __init__(
        self,
        database: Database,
        directory: PeopleDirectory,
        clock: Clock,
        masker: Masker,
        *,
        queries: Queries,
        is_operator: IsOperator,
        note_reading: NoteReading,
    ) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock
        self._masker = masker
        self._queries = queries
        self._is_operator = is_operator
        self._note_reading = note_reading

    async def owned(self, person: Person, limit: int = LISTED) -> tuple[ThreadSummary, ...]:
        """Their own conversations, under whichever of their accounts, in which something happened last."""
        owners = await self._directory.accounts_of(person.person_id)
        async with self._database.reading() as tx:
            return await thread_owners.threads_of(tx, owners, limit)

    async def of_everybody(self, operator: Person, limit: int = LISTED) -> tuple[ThreadSummary, ...] | None:
        """The newest conversations of the page and of programs, whoever began them; `None`: this is no operator."""
        if not await self._is_operator(operator):
            return None
        await self._note_reading(operator, "the conversations of everybody")
        async with self._database.reading() as tx:
            return await threads.newest(tx, "web", limit)

    async def search(self, person: Person, text: str) -> Search:
        """Their own conversations whose title has this text in it, or in which they or the bot have said it, the newest
        first; at most `MOST_FOUND`. Capital letters are as small ones.

        Looked through are the `thread_owners.MOST_LOOKED_AT` that they began last, until `MOST_SEARCHED` characters.
        """
        owned = await self.owned(person, thread_owners.MOST_LOOKED_AT)
        wanted, left = text.casefold(), MOST_SEARCHED
        found: list[ThreadSummary] = []
        pauses = Pauses()
        for each in owned:
            is_found = wanted in each.title.casefold()
            if not is_found and left > 0:
                async with self._database.reading() as tx:
                    is_found, looked_through = await _is_said(tx, each.thread_id, wanted, left, pauses)
                left -= looked_through
            if is_found:
                found.append(each)
                if len(found) == MOST_FOUND:
                    return Search(tuple(found), is_whole=False)
        return Search(tuple(found), is_whole=left > 0 and len(owned) < thread_owners.MOST_LOOKED_AT)

    async def is_operator(self, person: Person) -> bool:
        """Whether they may see what belongs to others."""
        return await self._is_operator(person)

    async def audit_entries(
        self, operator: Person, since: float | None, until: float | None, *, after: int, limit: int
    ) -> Sequence[Link] | None:
        """Entries of the audit log by number, of a time range (seconds since the epoch, `until` not included); `None`:
        this is no operator.

        Args:
            after: only those with a greater number.
            limit: at most so many, and never more than `MOST_AUDIT_ENTRIES`.
        """
        if not await self._is_operator(operator):
            return None
        await self._note_reading(operator, "the audit log")
        async with self._database.reading() as tx:
            return await audit.links(tx, since, until, after=after, limit=min(limit, MOST_AUDIT_ENTRIES))

    async def owners_for(self, thread_id: str, person: Person) -> frozenset[str] | None:
        """Person ids of this human, when a conversation is theirs or nobody has begun it; `None`: it is somebody
        else's. The thread of another agent's call is theirs whose agent it is, that of a task of a plan belongs to its
        conversation. Looks their other accounts up only where it matters."""
        async with self._database.reading() as tx:
            owner = await thread_owners.owner_of(tx, conversation_of(thread_id))
        if not owner and is_gateway_thread(thread_id):
            return None  # nobody begins such a thread by writing in it
        if not owner or owner == person.person_id:
            return frozenset([person.person_id])
        accounts = await self._directory.accounts_of(person.person_id)
        return accounts if owner in accounts else None

    async def owners_to_write(self, thread_id: str, person: Person) -> frozenset[str] | None:
        """As `owners_for`, of what can be written in or stopped; `None` also of the thread of another agent's call, or
        of a task of a plan, which is no conversation."""
        if is_gateway_thread(thread_id) or is_task_thread(thread_id):
            return None
        return await self.owners_for(thread_id, person)

    async def accounts_of(self, person: Person) -> frozenset[str]:
        """All person ids of this human."""
        return await self._directory.accounts_of(person.person_id)

    async def view(self, thread_id: str, person: Person) -> ThreadView | Unknown | None:
        """A conversation as this person may see it, oldest first; `None`: nobody has begun it; `Unknown`: it is not for
        them."""
        if not thread_id.startswith("web:") or is_task_thread(thread_id):
            return no_conversation()
        seen = await self._seen(thread_id, person)
        if seen is None:
            return no_conversation()
        whole = await self._queries.thread(thread_id, person)
        if whole is None or seen.seen_as != "approver":
            return whole and replace(whole, seen_as=seen.seen_as)
        entries = tuple(entry for entry in whole.entries if _is_in(entry, seen))
        # The conversation's own is the beginning of its first message, which may be in no turn of these.
        title = next((entry.text for entry in entries if isinstance(entry, MessageView)), "")
        return ThreadView(thread_id, title, entries, "approver")

    async def holds_for(self, subject: str, person: Person) -> bool:
        """Whether a question, a sign-in or a broken attempt belongs to a conversation of this person's."""
        async with self._database.reading() as tx:
            threads_ = await posts.threads_of_subject(tx, subject)
        return any([await self.owners_for(each, person) is not None for each in threads_ if each.startswith("web:")])

    async def may_see(self, thread_id: str, person: Person) -> bool:
        """Whether any of a conversation is for this person."""
        return await self._seen(thread_id, person) is not None

    async def _is_deleted(self, thread_id: str) -> bool:
        async with self._database.reading() as tx:
            return await thread_owners.owner_of(tx, conversation_of(thread_id)) == thread_owners.DELETED

    async def _seen(self, thread_id: str, person: Person) -> _WhatIsSeen | None:
        if await self._is_deleted(thread_id):
            return None
        if await self.owners_for(thread_id, person) is not None:
            return _WhatIsSeen("owner")
        if await self._looks_as_operator(thread_id, person):
            return _WhatIsSeen("operator")
        accounts = await self._directory.accounts_of(person.person_id)
        async with self._database.reading() as tx:
            cards = await thread_owners.approvals_in(tx, thread_id, SHOWN)
            voted = await thread_owners.voted_in(tx, thread_id, accounts)
        # Also of what is settled: whoever has a card open sees what became of it.
        as_asked = [replace(row, status="pending") for row in cards]
        known, now = await self._directory.for_judging(person.person_id, as_asked), self._clock()
        theirs = [
            (row.approval_id, row.asked.call_id)
            for row in as_asked
            if isinstance(permission_of(row, person.person_id, known, row.settled_at or now), Permitted)
        ]
        found = {*theirs, *voted}
        if not found:
            return None
        turns = frozenset(turn_of_call(call_id) for _, call_id in found)
        return _WhatIsSeen("approver", turns, frozenset(approval_id for approval_id, _ in found))

    async def card(self, approval_id: str, person: Person) -> ApprovalView | Unknown:
        """An approval as it is now, for whoever sees its conversation or may decide it."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
            view = await approval_view(tx, approval_id, now=self._clock()) if row is not None else None
        if row is None or view is None or not await self._sees(row, person):
            return no_approval()
        return await masked_card(view, self._masker)

    async def seen_among(self, approval_ids: Collection[str], person: Person) -> frozenset[str]:
        """Which of these approvals this person may hear of: those that `card` shows them."""
        async with self._database.reading() as tx:
            rows = await approvals.without_arguments(tx, dict.fromkeys(approval_ids))
        return frozenset([row.approval_id for row in rows if await self._sees(row, person)])

    async def _sees(self, row: ApprovalRow, person: Person) -> bool:
        """Also of one that somebody else has decided meanwhile, whoever might have decided it hears that. Nobody sees
        anything of a conversation that was deleted."""
        if await self._is_deleted(row.thread_id):
            return False
        accounts = await self._directory.accounts_of(person.person_id)
        if accounts & {*row.asked.requesters, *row.handed_to}:
            return True
        as_asked = replace(row, status="pending")
        known = await self._directory.for_judging(person.person_id, [as_asked])
        if isinstance(permission_of(as_asked, person.person_id, known, row.settled_at or self._clock()), Permitted):
            return True
        async with self._database.reading() as tx:
            if any(vote.person_id in accounts for vote in await approvals.votes_on(tx, row.approval_id)):
                return True
        if not row.thread_id.startswith("web:") and not is_gateway_thread(row.thread_id):
            return False
        if await self.owners_for(row.thread_id, person) is not None:
            return True
        return await self._looks_as_operator(row.thread_id, person)

    async def _looks_as_operator(self, thread_id: str, person: Person) -> bool:
        if not await self._is_operator(person):
            return False
        await self._note_reading(person, "a conversation", thread_id)
        return True

    # ------------------------------------------------------------------------------------------- turns

    async def turn(self, thread_id: str, key: str, reader: Collection[str]) -> TurnState | None:
        """Where the turn stands that a message began, or that it is a part of; `None`: there is no such message. One
        that was taken as a one-time code, and kept nowhere, has ended with what its author was told.

        Args:
            key: of the message.
            reader: person ids of who asks: results over others' accounts are not shown.
        """
        async with self._database.reading() as tx:
            if await deliveries.message_of(tx, thread_id, key) is None:
                told = await posts.get(tx, f"{posts.CODE}{key}")
                if told is None or told.thread_id != thread_id or told.only_for not in reader or not told.content:
                    return None
                notice = Notice(told.content["text"], told.content["tone"])
                return TurnState(thread_id, key, status="ended", notices=(notice,))
            is_busy = not await deliveries.is_handled(tx, key) or await self._is_at_work(tx, thread_id)
            answered = await clarifications.call_answered_by(tx, key)
            turn = turn_of_call(answered) if answered else key
            open_ = await waiting.in_thread(tx, thread_id)
            made = await attempts.in_turn(tx, turn)
            unmade = await audit.entries_of_turn(tx, turn)
            said = await posts.said_in_turn(tx, thread_id, turn)
            about = [*await posts.notices_about(tx, thread_id, sorted({turn, key}), reader)]
            about += await posts.failures_of_resumes(tx, thread_id, await deliveries.accepted_at(tx, turn), reader)
            statuses = await approvals.statuses_in_turn(tx, turn)
            now = self._clock()
            asked = [await approval_view(tx, row.approval_id, now=now) for row in open_.approvals]
            questions = [await clarification_view(tx, row.clarification_id) for row in open_.clarifications]
            links = [await sign_in_view(tx, row.sign_in_id, now) for row in open_.sign_ins]
            lost = [await outcome_view(tx, row.attempt_id) for row in open_.outcomes]
            # With PostgreSQL each statement reads what is committed by then: when somebody decides meanwhile, nothing
            # is waited for any more, and of what follows nothing was going on yet.
            is_busy = is_busy or await self._is_at_work(tx, thread_id)
            has_changed = (await waiting.in_thread(tx, thread_id)).ids != open_.ids
        approvals_ = [await masked_card(view, self._masker) for view in asked if view is not None]
        contents = [(post, post.content or {}) for post in said]
        newest = contents[-1] if contents else None
        is_final = newest is not None and newest[1].get("final", True)
        waits = bool(approvals_ or questions or links or lost)
        return TurnState(
            thread_id,
            turn,
            # A call that is approved runs while others still wait.
            status="running" if is_busy or has_changed else "waiting" if waits else "ended",
            answer=str(newest[1].get("text", "")) if newest is not None else "",
            answer_id=newest[0].key if newest is not None and is_final else "",
            answer_number=newest[0].seq if newest is not None else 0,
            agent=str(newest[1].get("agent", "")) if newest is not None else "",
            sources=kept_sources(newest[1].get("sources")) if newest is not None else (),
            notices=tuple(Notice(p.content["text"], p.content["tone"]) for p in about if p.content),
            calls=tuple(await self._calls(made, unmade, approvals_, reader)),
            approvals=tuple(approvals_),
            clarifications=tuple([await masked_card(view, self._masker) for view in questions if view is not None]),
            sign_ins=tuple(view for view in links if view is not None),
            outcomes=tuple([await masked_card(view, self._masker) for view in lost if view is not None]),
            said=tuple(
                SaidInTurn(p.key.removeprefix("said:"), str(content.get("text", ""))) for p, content in contents
            ),
            asked=statuses,
        )

    async def is_at_rest(self, thread_id: str, key: str) -> bool:
        """Whether `turn` would not say that it runs: looked up in one statement. Of a message that is there."""
        async with self._database.reading() as tx:
            return await turn_marks.rests(tx, thread_id, key, self._clock())

    async def marks(self, thread_id: str, key: str, turn: str) -> tuple[Any, ...]:
        """What is another value when `turn` would say something else than before: looked up in one statement.

        Args:
            key: of the message.
            turn: key of the message that began its turn.
        """
        async with self._database.reading() as tx:
            return await turn_marks.marks(tx, thread_id, key, turn, self._clock())

    async def _is_at_work(self, tx: Transaction, thread_id: str) -> bool:
        """Whether anything goes on in a thread, or is about to. An approval that has expired lets its turn go on under
        its timer."""
        return await deliveries.is_at_work(tx, thread_id, self._clock())

    async def message(self, thread_id: str, key: str) -> MessageView | None:
        """What somebody wrote in a conversation, by its key."""
        async with self._database.reading() as tx:
            return await deliveries.message_of(tx, thread_id, key)

    async def is_begun(self, thread_id: str) -> bool:
        """Whether there is this conversation, whosever it is."""
        async with self._database.reading() as tx:
            return await threads.get(tx, thread_id) is not None

    async def newest_message(self, thread_id: str) -> str | None:
        """Key of what somebody wrote last in a conversation; `None`: nobody has written there."""
        async with self._database.reading() as tx:
            return await deliveries.newest_message(tx, thread_id)

    async def asked_about(self, thread_id: str, call_ids: Collection[str]) -> Sequence[AskedRow]:
        """Everything that people were asked about these calls of a conversation, open or settled."""
        async with self._database.reading() as tx:
            return await asked.about_calls(tx, thread_id, call_ids)

    async def newest_post_number(self, thread_id: str) -> int:
        """Number of what the bot posted last in a conversation, cards too; 0: nothing."""
        async with self._database.reading() as tx:
            return await posts.newest_number(tx, thread_id)

    # ------------------------------------------------------------------------------------------- numbers

    async def number_of(self, thread_id: str, person: Person) -> int:
        """The number of a conversation, which it gets now if it has none."""
        async with self._database.writing_urgently(thread_id) as tx:
            return await thread_owners.number_of(tx, thread_id, person.person_id)

    async def by_number(self, number: int) -> tuple[str, str] | None:
        """Thread id and owner of the conversation with this number; `None`: there is none."""
        if not 0 < number < FIRST_TOO_LARGE:
            return None
        async with self._database.reading() as tx:
            return await thread_owners.of_number(tx, number)

    async def _calls(
        self,
        made: Sequence[AttemptRow],
        entries: Sequence[str],
        asked: Sequence[ApprovalView],
        reader: Collection[str],
    ) -> list[CallState]:
        """The calls of a turn in the order in which the model made them."""
        found: dict[str, CallState] = {}
        for entry in map(json.loads, entries):
            if entry["attempt"] is None and entry["status"] in _NOT_MADE:
                found[entry["call"]] = CallState(
                    entry["call"],
                    entry["server"],
                    entry["tool"],
                    entry["arguments"] if isinstance(entry["arguments"], Mapping) else {},
                    "not made",
                    entry["note"],
                    why=entry["status"],
                )
        for row in made:
            await asyncio.sleep(0)  # a turn may have hundreds, each with many arguments
            arguments = (await masked_arguments(row.arguments, self._masker)).value
            # What came of it was masked before it was kept, as `bot.card_masks` says.
            text = row.text if row.owner in {None, *reader} else FOR_ONE_PERSON
            status = _STATUS.get(row.status)
            if status is not None:
                found[row.call_id] = CallState(row.call_id, row.server, row.tool, arguments, status, text)
        for view in asked:
            call = CallState(view.call_id, view.server, view.tool, view.arguments, "waiting")
            found[view.call_id] = replace(call, approval_id=view.approval_id)
        return [found[call_id] for call_id in sorted(found, key=place_in_turn)]


_STATUS: Mapping[str, Literal["running", "done", "failed", "unknown"]] = {
    "started": "running",
    "asking": "running",
    "done": "done",
    "failed": "failed",
    "unknown": "unknown",
}
_NOT_MADE = frozenset({"denied", "limited", "rejected", "expired", "withdrawn", "superseded", "failed", "skipped"})


async def _is_said(tx: Transaction, thread_id: str, wanted: str, most: int, pauses: Pauses) -> tuple[bool, int]:
    """Whether somebody or the bot has said this in a conversation, in so many characters, and how many were looked
    through."""
    looked_through = 0
    for texts_before in (deliveries.texts_before, posts.texts_before):
        before = FIRST_TOO_LARGE - 1
        while looked_through < most and (texts := await texts_before(tx, thread_id, before, SEARCHED_AT_ONCE)):
            for number, said in texts:
                before, looked_through = number, looked_through + len(said)
                if wanted in said.casefold():
                    return True, looked_through
                await pauses.when_due()
    return False, looked_through


def _is_in(entry: MessageView | Post, seen: _WhatIsSeen) -> bool:
    """Whether an entry belongs to what an approver sees: the message that began a turn, what the bot said in it, how
    far its plan is, and the cards that are theirs to decide."""
    if isinstance(entry, MessageView):
        return entry.key in seen.turns
    match entry.content:
        case ApprovalView(approval_id=approval_id):
            return approval_id in seen.approvals
        case Said():
            message_id = entry.post_id.removeprefix("said:")
            return message_id.rpartition(".")[0] in seen.turns
        case PlanView(plan_id=plan_id):
            return turn_of_call(plan_id) in seen.turns
        case _:
            return False
