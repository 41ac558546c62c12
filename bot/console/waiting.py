"""All that waits for people, whosever it is: for whom, since when, and by which rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.console.access import OperatorAccess
from bot.domain import Clock, Person
from bot.records import threads, turns, waiting
from bot.records.approvals import ApprovalRow
from bot.records.database import Database
from bot.records.turns import VoteOn
from bot.task_threads import conversation_of, turn_of_call
from bot.views import as_asked, escalates_at, named_deciders, shown_client
from policies.reasons import why

MOST_WAITING = 100
"""Approvals of one answer."""
MOST_QUESTIONS = 200
"""Of one kind."""
FROM_THE_BEGINNING = (0.0, "")


@dataclass(frozen=True, slots=True)
class WaitingApproval:
    """An approval that waits."""

    approval_id: str
    call_id: str
    turn: str
    """Key of the message that began its turn."""
    thread_id: str
    """Of the conversation, also of what a task of a plan asks."""
    server: str
    tool: str
    title: str
    risk: tuple[str, ...]
    requester_id: str
    requester: str
    client: str
    """The program that asks; empty: our own agent does."""
    agent: str
    """Which agent of ours asks; empty: the default one, or a program."""
    for_whom: str
    """Who may decide, in words."""
    approvers: tuple[str, ...]
    """The same, as the policy names them, with those to whom it was escalated."""
    handed_to: tuple[str, ...]
    """Names of those who were asked by somebody else who may decide."""
    rule: str
    why: str
    """Why it is asked; empty: an earlier version asked."""
    quorum: int
    votes: Sequence[VoteOn]
    asked_at: float
    expires_at: float | None
    escalates_at: float | None
    """When others may decide, too; `None`: never, or they may already."""


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """What waits for one person: a question, a sign-in, or an outcome that nobody knows."""

    kind: str
    """`clarification`, `sign_in` or `outcome`."""
    subject: str
    call_id: str
    turn: str
    thread_id: str
    person_id: str
    person: str
    server: str
    """Empty: the model asks."""
    text: str
    since: float


@dataclass(frozen=True, slots=True)
class WaitingByRule:
    """How much waits by one rule."""

    rule: str
    count: int
    since: float
    """When the oldest was asked."""


@dataclass(frozen=True, slots=True)
class EverythingThatWaits:
    """What waits for anybody; a page of the approvals."""

    approvals: Sequence[WaitingApproval]
    """Those that wait longest first."""
    following: tuple[float, str] | None
    """After what the next page begins; `None`: this is the last one."""
    by_rule: Sequence[WaitingByRule]
    questions: Sequence[WaitingQuestion]
    """Those that wait longest first, `MOST_QUESTIONS` of each kind at most."""


class WaitingForAnybody:
    """Reads it, for operators."""

    def __init__(self, database: Database, access: OperatorAccess, clock: Clock) -> None:
        self._database = database
        self._access = access
        self._clock = clock

    async def everything(
        self,
        operator: Person,
        rule: str | None = None,
        after: tuple[float, str] = FROM_THE_BEGINNING,
        limit: int = MOST_WAITING,
    ) -> EverythingThatWaits | None:
        """What waits; `None`: this is no operator.

        Args:
            rule: only the approvals that this rule asks for.
            after: as `EverythingThatWaits.following` of the page before.
        """
        if not await self._access.looks(operator, "what waits for everybody"):
            return None
        now = self._clock()
        async with self._database.reading() as tx:
            found = await waiting.all_pending(tx, rule, after, limit + 1)
            rows = found[:limit]
            votes = await turns.votes_on_all(tx, [row.approval_id for row in rows])
            by_rule = await waiting.pending_by_rule(tx)
            asked = await waiting.all_open_questions(tx, MOST_QUESTIONS) if after == FROM_THE_BEGINNING else ()
            named = {person for row in rows for person in _people_of(row, now)} | {each.person_id for each in asked}
            known = await threads.known_names(tx, named)
        names = threads.shown_names(known, named)
        last = rows[-1] if len(found) > limit else None
        return EverythingThatWaits(
            approvals=[
                WaitingApproval(
                    approval_id=row.approval_id,
                    call_id=row.asked.call_id,
                    turn=turn_of_call(row.asked.call_id),
                    thread_id=conversation_of(row.thread_id),
                    server=row.asked.server,
                    tool=row.asked.tool,
                    title=row.asked.title,
                    risk=tuple(each.value for each in row.asked.risk),
                    requester_id=row.asked.requesters[0],
                    requester=names[row.asked.requesters[0]],
                    client=shown_client(row.asked.client, row.thread_id),
                    agent=row.asked.agent,
                    for_whom=named_deciders(row, now, known),
                    approvers=as_asked(row, now).approvers,
                    handed_to=tuple(names[each] for each in row.handed_to),
                    rule=row.asked.ask.rule,
                    why=why(row.asked.presentation.reasons) if row.asked.presentation.reasons is not None else "",
                    quorum=row.asked.ask.quorum,
                    votes=[vote for vote in votes if vote.approval_id == row.approval_id],
                    asked_at=row.asked_at,
                    expires_at=row.expires_at,
                    escalates_at=escalates_at(row, now),
                )
                for row in rows
            ],
            following=(last.asked_at, last.approval_id) if last is not None else None,
            by_rule=[WaitingByRule(name, count, since) for name, count, since in by_rule],
            questions=[
                WaitingQuestion(
                    kind=each.kind,
                    subject=each.subject,
                    call_id=each.call_id,
                    turn=turn_of_call(each.call_id),
                    thread_id=conversation_of(each.thread_id),
                    person_id=each.person_id,
                    person=names[each.person_id],
                    server=each.server,
                    text=each.text,
                    since=each.since,
                )
                for each in asked
            ],
        )


def _people_of(row: ApprovalRow, now: float) -> set[str]:
    """References to whoever is named with an approval; groups among them have no name."""
    return {*row.asked.requesters, *row.handed_to, *as_asked(row, now).approvers}
