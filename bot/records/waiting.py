"""Everything that waits for people, in a thread or for one person, and whose turn runs or waits there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from bot.gateway.thread_ids import GATEWAY_MARK
from bot.records import approvals, attempts, clarifications, deliveries, plans, sign_ins, tables, threads
from bot.records.approvals import ApprovalRow
from bot.records.attempts import AttemptRow
from bot.records.clarifications import ClarificationRow
from bot.records.database import Pauses, Transaction, reader
from bot.records.plans import PlanRow
from bot.records.sign_ins import SignInRow
from bot.records.statements import Prepared
from bot.task_threads import conversation_of

MOST_ROWS = 200
"""Rows of a kind that are read, the newest."""
MOST_LOOKED_AT = 3_000
"""Posts among which cards are looked for that somebody has decided: votes have no index by person, and to look through
so many takes 10 ms at most."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The open questions of a thread; false when there are none."""

    approvals: Sequence[ApprovalRow] = ()
    clarifications: Sequence[ClarificationRow] = ()
    sign_ins: Sequence[SignInRow] = ()
    outcomes: Sequence[AttemptRow] = ()
    plans: Sequence[PlanRow] = ()
    """What is open in the threads of their tasks is among the others."""

    def __bool__(self) -> bool:
        return bool(self.for_people or self.plans)

    @property
    def for_people(self) -> bool:
        """Whether anybody is asked anything."""
        return bool(self.approvals or self.clarifications or self.sign_ins or self.outcomes)

    @property
    def ids(self) -> frozenset[str]:
        """Of all of them."""
        return frozenset(
            [row.approval_id for row in self.approvals]
            + [row.clarification_id for row in self.clarifications]
            + [row.sign_in_id for row in self.sign_ins]
            + [row.attempt_id for row in self.outcomes]
            + [row.plan_id for row in self.plans]
        )

    @property
    def requesters(self) -> frozenset[str]:
        """Person ids of those whose requests these are."""
        return frozenset(
            [row.asked.requesters[0] for row in self.approvals]
            + [row.requester for row in self.clarifications]
            + [row.person_id for row in self.sign_ins]
            + [row.requester for row in self.outcomes]
            + [row.requester for row in self.plans]
        )


# Literals, not parameters: otherwise SQLite cannot use the partial indexes, and reads whole tables.
_OPEN = sa.text("status = 'open'")
_UNKNOWN = sa.text("status = 'unknown' AND choice IS NULL")
_OPEN_IN = (
    (tables.approvals, sa.text("status = 'pending'")),
    (tables.clarifications, _OPEN),
    (tables.sign_ins, _OPEN),
    (tables.attempts, _UNKNOWN),
    (tables.plans, _OPEN),
)
_IS_ANY_OPEN = sa.or_(
    *(sa.exists().where(table.c.thread_id == sa.bindparam("thread"), is_open) for table, is_open in _OPEN_IN)
).label("any")
_ANY_OPEN = Prepared(sa.select(_IS_ANY_OPEN))
_DONE = Prepared(deliveries.marking_done().returning(_IS_ANY_OPEN))


_REQUESTERS = (
    tables.approvals.c.requester,
    tables.clarifications.c.requester,
    tables.sign_ins.c.person_id,
    tables.attempts.c.requester,
    tables.plans.c.requester,
)
_WAITED_FOR = Prepared(
    sa.union_all(
        *(
            sa.select(requester.label("person")).where(table.c.thread_id == sa.bindparam("thread"), is_open)
            for requester, (table, is_open) in zip(_REQUESTERS, _OPEN_IN, strict=True)
        )
    )
)


_OF_PROGRAMS = sum(
    (
        sa.select(sa.func.count())
        .select_from(table)
        .where(is_open, table.c.thread_id.contains(GATEWAY_MARK))
        .scalar_subquery()
        for table, is_open in _OPEN_IN
    ),
    start=sa.literal(0),
)
_CARDS = Prepared(
    sa.select(
        _OF_PROGRAMS.label("of_programs"),
        sa.func.count().label("cards"),
        sa.func.coalesce(sa.func.sum(tables.posts.c.seq), 0).label("which"),
        sa.func.coalesce(sa.func.sum(tables.posts.c.revision), 0).label("revisions"),
    )
    .select_from(tables.approvals)
    .join(tables.posts, tables.posts.c.subject == tables.approvals.c.approval_id)
    .where(tables.approvals.c.status == tables.PENDING)
)


async def cards_that_wait(tx: Transaction) -> tuple[int, int, int, int]:
    """How many cards of approvals wait, and two numbers that change when others do, or one of them shows something
    else; and how much of whatever kind waits for the calls of other agents."""
    row = await tx.one(_CARDS, {})
    return (0, 0, 0, 0) if row is None else (int(row.cards), int(row.which), int(row.revisions), int(row.of_programs))


async def anything_in(tx: Transaction, thread_id: str) -> bool:
    """Whether anything is open in a thread."""
    row = await tx.one(_ANY_OPEN, {"thread": thread_id})
    return row is not None and bool(row.any)


async def conclude(tx: Transaction, thread_id: str, key: str) -> bool:
    """Marks a delivery of a thread that has taken effect, as `deliveries.done` does. Returns whether anything is open
    in the thread."""
    row = await tx.one(_DONE, {"of": key, "thread": thread_id})
    return row is not None and bool(row.any)


async def in_thread(tx: Transaction, thread_id: str) -> Waiting:
    """What is open in a thread."""
    if not await anything_in(tx, thread_id):  # as it mostly is, and one question costs less than four
        return Waiting()
    of_plans = await plans.open_in(tx, thread_id)
    of_tasks = [task.thread_id for plan in of_plans for task in await plans.tasks_of(tx, plan.plan_id)]
    within = [thread_id, *[each for each in of_tasks if await anything_in(tx, each)]]
    return Waiting(
        approvals=[row for each in within for row in await approvals.pending_in(tx, each)],
        clarifications=[row for each in within for row in await clarifications.open_in(tx, each)],
        sign_ins=[row for each in within for row in await sign_ins.open_in(tx, each)],
        outcomes=[row for each in within for row in await attempts.unknown_in(tx, each)],
        plans=of_plans,
    )


async def waited_for(tx: Transaction, thread_id: str) -> frozenset[str]:
    """Person ids of those whose requests are open in a thread; empty when nothing is. Says the same as
    `Waiting.requesters`, for every message that arrives: what is open may take 40 ms to read."""
    return frozenset([row.person for row in await tx.all(_WAITED_FOR, {"thread": thread_id})])


async def superseded_by(tx: Transaction, thread_id: str, key: str) -> bool:
    """Whether this delivery gave up anything that was open in a thread."""
    for table, _ in _OPEN_IN:
        ending = table.c.choice if table is tables.attempts else table.c.status
        query = sa.select(table.c.thread_id).where(
            table.c.thread_id == thread_id, table.c.settled_key == key, ending == "superseded"
        )
        if await tx.one(query.limit(1)) is not None:
            return True
    return False


async def requesters(tx: Transaction, thread_id: str) -> frozenset[str]:
    """Returns whose turn it is in a thread, from what waits for people or is being handled; empty: nobody's."""
    if waited := await waited_for(tx, thread_id):
        return waited
    if not await deliveries.is_busy(tx, thread_id):
        return frozenset()
    thread = await threads.get(tx, thread_id)
    author = await deliveries.first_author(tx, thread_id) or (thread.requester if thread else None)
    return frozenset([author] if author else [])


async def is_with_us(tx: Transaction, thread_id: str, person_id: str) -> bool:
    """Whether the bot is in a conversation with this person in a thread, so that they need not address it: the thread's
    requester, somebody it waits for, or somebody whose message waits to be handled."""
    thread = await threads.get(tx, thread_id)
    if thread is None:
        return False
    if thread.requester == person_id or person_id in await waited_for(tx, thread_id):
        return True
    return any(author == person_id for _, author in await deliveries.waiting_messages(tx, thread_id))


async def turns_of(tx: Transaction, person_id: str, within: str) -> tuple[str, ...]:
    """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
    busy = [*await deliveries.threads_waiting(tx, within), *await threads_of_questions(tx, within)]
    candidates = map(conversation_of, busy)
    found, pauses = [], Pauses()
    for thread_id in dict.fromkeys(candidates):
        if person_id in await requesters(tx, thread_id):
            found.append(thread_id)
        await pauses.when_due()
    return tuple(found)


# -------------------------- what there is for one person, in all threads of a platform or of one workspace of it


_ANY_ASKED = Prepared(
    sa.select(tables.approvals.c.approval_id).where(tables.approvals.c.status == tables.PENDING).limit(1)
)


async def is_anything_asked(tx: Transaction) -> bool:
    """Whether any approval waits, anywhere."""
    return await tx.one(_ANY_ASKED) is not None


async def pending_approvals(tx: Transaction, within: Sequence[str]) -> Sequence[ApprovalRow]:
    """Approvals that wait in threads whose ids begin with one of `within`, or were routed there, newest first, without
    their arguments."""
    routed = sa.exists().where(
        tables.posts.c.subject == tables.approvals.c.approval_id,
        tables.posts.c.place.is_not(sa.null()),
        _begins_with(tables.posts.c.lane, within),
    )
    here = _begins_with(tables.approvals.c.thread_id, within)
    newest = await tx.all(
        sa.select(tables.approvals.c.approval_id)
        .where(tables.approvals.c.status == tables.PENDING, here | routed)
        .order_by(tables.approvals.c.asked_at.desc())
        .limit(MOST_ROWS)
    )
    rows = await approvals.without_arguments(tx, [row.approval_id for row in newest])
    return [row for row in rows if row.status == "pending"]  # one may have been settled in between


def _begins_with(column: sa.Column[str], beginnings: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.or_(sa.false(), *(column.startswith(beginning, autoescape=True) for beginning in beginnings))


async def settled_lately(tx: Transaction, requester: str, within: str, limit: int) -> Sequence[str]:
    """Ids of approvals of this person's requests that were settled, the latest first; none of a conversation that was
    deleted."""
    is_deleted = sa.exists().where(
        tables.posts.c.subject == tables.approvals.c.approval_id,
        tables.threads.c.thread_id == tables.posts.c.thread_id,  # the conversation, also of what a task has asked
        tables.threads.c.deleted_at.is_not(None),
    )
    rows = await tx.all(
        sa.select(tables.approvals.c.approval_id)
        .where(tables.approvals.c.settled_at.is_not(None), tables.approvals.c.requester == requester)
        .where(tables.approvals.c.thread_id.startswith(within, autoescape=True), ~is_deleted)
        .order_by(tables.approvals.c.settled_at.desc())
        .limit(limit)
    )
    return [row.approval_id for row in rows]


async def decided_lately(tx: Transaction, people: Sequence[str], limit: int) -> Sequence[str]:
    """Ids of the settled approvals that one of these people has voted on, those with their latest votes first; of those
    with a card among the newest `MOST_LOOKED_AT` posts, and none of a conversation that was deleted."""
    last = sa.select(sa.func.max(tables.posts.c.seq)).scalar_subquery()
    cards = sa.select(tables.posts.c.subject, tables.posts.c.thread_id)  # the conversation, also of a task's
    newest = cards.where(tables.posts.c.seq > last - MOST_LOOKED_AT).subquery()
    rows = await tx.all(
        sa.select(tables.votes.c.approval_id, tables.votes.c.at)
        .distinct()
        .select_from(newest)
        .join(tables.votes, tables.votes.c.approval_id == newest.c.subject)
        .join(tables.approvals, tables.approvals.c.approval_id == tables.votes.c.approval_id)
        .join(tables.threads, tables.threads.c.thread_id == newest.c.thread_id)
        .where(tables.votes.c.person_id.in_(people), tables.approvals.c.settled_at.is_not(None))
        .where(tables.threads.c.deleted_at.is_(None))
        .order_by(tables.votes.c.at.desc())
        .limit(limit)
    )
    return list(dict.fromkeys(row.approval_id for row in rows))


async def open_questions(tx: Transaction, person_id: str, within: str) -> Sequence[str]:
    """Ids of the clarifications, sign-ins and broken attempts that wait for this person."""
    asked, sign_ins_, lost = tables.clarifications.c, tables.sign_ins.c, tables.attempts.c
    found: list[str] = []
    for key, owner, thread_id, is_open in (
        (asked.clarification_id, asked.requester, asked.thread_id, _OPEN),
        (sign_ins_.sign_in_id, sign_ins_.person_id, sign_ins_.thread_id, _OPEN),
        (lost.attempt_id, lost.requester, lost.thread_id, _UNKNOWN),
    ):
        query = sa.select(key).where(owner == person_id, is_open, thread_id.startswith(within, autoescape=True))
        found += [row[0] for row in await tx.all(query.limit(MOST_ROWS))]
    return found


async def threads_of_questions(tx: Transaction, within: str) -> Sequence[str]:
    """Threads, whose ids begin with `within`, in which anything waits for people."""
    found: list[str] = []
    for table, is_open in _OPEN_IN:
        query = sa.select(table.c.thread_id).where(is_open, table.c.thread_id.startswith(within, autoescape=True))
        found += [row[0] for row in await tx.all(query.group_by(table.c.thread_id))]
    return list(dict.fromkeys(found))


# ------------------------------------------------------------------------ for operators: what waits for anybody


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """What waits for one person: a question, a sign-in, or an outcome that nobody knows."""

    kind: str
    """`clarification`, `sign_in` or `outcome`."""
    subject: str
    """Its id."""
    call_id: str
    thread_id: str
    person_id: str
    server: str
    """Empty: the model asks."""
    text: str
    """The question, the service that wants the sign-in, or the tool that was called."""
    since: float


_open_question = reader(QuestionRow)
_RULE = tables.approvals.c.ask["rule"].as_string()


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What of some threads, and of the tasks of their plans, is not over. Ids of calls."""

    asked: frozenset[str]
    """Those about which anybody is asked anything."""
    planned: frozenset[str]
    """Those that made the plans that have not ended."""
    going_on: frozenset[str]
    """Those that go on by what was decided or answered, or by what came of a plan; and plans of which a task runs."""


async def calls_under_way(tx: Transaction, thread_ids: Collection[str]) -> UnderWay:
    """What is not over in these threads, or in those of the tasks of their plans."""
    of_plans, of_tasks = tables.plans.c, tables.plan_tasks.c
    tasks = (
        sa.select(of_tasks.thread_id)
        .join_from(tables.plans, tables.plan_tasks, of_tasks.plan_id == of_plans.plan_id)
        .where(of_plans.thread_id.in_(thread_ids), sa.text("plans.status = 'open'"))
    )
    asked = sa.union_all(
        *(
            sa.select(table.c.call_id).where(is_open, table.c.thread_id.in_(thread_ids) | table.c.thread_id.in_(tasks))
            for table, is_open in _OPEN_IN
            if table is not tables.plans
        )
    )
    made = sa.select(of_plans.plan_id).where(of_plans.thread_id.in_(thread_ids), _OPEN)
    works = tasks.with_only_columns(of_plans.plan_id).where(of_tasks.status == "running")
    resumed = [_goes_on(thread_ids, call, subject == SETTLED, _OF_RESUMES) for call, subject in SUBJECTS]
    at_once = [
        _goes_on(thread_ids, each.call_id, each.table.c.settled_key == tables.deliveries.c.key, each.is_so)
        for each in SETTLED_AT_ONCE
    ]
    going_on = works.union_all(*resumed, *at_once)
    return UnderWay(await _texts(tx, asked), await _texts(tx, made), await _texts(tx, going_on))


SUBJECTS = (
    (tables.approvals.c.call_id, tables.approvals.c.approval_id),
    (tables.clarifications.c.call_id, tables.clarifications.c.clarification_id),
    (tables.sign_ins.c.call_id, tables.sign_ins.c.sign_in_id),
    (tables.attempts.c.call_id, tables.attempts.c.attempt_id),
    (tables.plans.c.plan_id, tables.plans.c.plan_id),
)
"""Of which call it is, and the id by which a delivery names what was settled (`bot.turns.engine.resume_thread`)."""
SETTLED = sa.func.substr(tables.deliveries.c.key, sa.literal_column("8"))
"""That id, of the key of such a delivery: what follows "resume:"."""


@dataclass(frozen=True, slots=True)
class SettledAtOnce:
    """What a delivery settles that then goes on with it, so that none follows it (`bot.turns.decision`)."""

    call_id: sa.Column[str]
    is_so: sa.ColumnElement[bool]
    """Other deliveries settle it otherwise."""

    @property
    def table(self) -> sa.Table:
        """Where what was settled is kept; its `settled_key` is that of the delivery."""
        return self.call_id.table


SETTLED_AT_ONCE = (
    SettledAtOnce(tables.clarifications.c.call_id, tables.clarifications.c.status == "answered"),
    SettledAtOnce(tables.approvals.c.call_id, tables.approvals.c.status == "expired"),
)
"""A message answers a question, and a timer ends the time for an approval."""
_OF_RESUMES = tables.deliveries.c.kind == "resume"


def _goes_on(
    thread_ids: Collection[str], call_id: sa.Column[str], settled: sa.ColumnElement[bool], is_so: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    of = tables.deliveries.c
    return (
        sa.select(call_id)
        .join_from(tables.deliveries, call_id.table, settled)
        .where(sa.text("deliveries.status = 'waiting'"), is_so, of.thread_id.in_(thread_ids))
    )


async def _texts(tx: Transaction, query: sa.Executable) -> frozenset[str]:
    return frozenset([row[0] for row in await tx.all(query)])


async def all_pending(tx: Transaction, rule: str | None, after: tuple[float, str], limit: int) -> Sequence[ApprovalRow]:
    """Approvals that wait, whosever they are, the oldest first, without arguments.

    Args:
        rule: only those that this rule asks for.
        after: when, and under which id, the one was asked that they come after.
    """
    asked_at, approval_id = tables.approvals.c.asked_at, tables.approvals.c.approval_id
    later = sa.or_(asked_at > after[0], sa.and_(asked_at == after[0], approval_id > after[1]))
    query = (
        sa.select(*approvals.PENDING_COLUMNS)
        .where(tables.approvals.c.status == tables.PENDING, asked_at >= after[0], later)
        .order_by(asked_at, approval_id)
        .limit(limit)
    )
    return await approvals.select_pending(tx, query if rule is None else query.where(rule == _RULE))


async def pending_by_rule(tx: Transaction) -> Sequence[tuple[str, int, float]]:
    """How many approvals wait by rule, and since when the oldest of each does; those with the most first."""
    count = sa.func.count().label("n")
    query = (
        sa.select(_RULE.label("rule"), count, sa.func.min(tables.approvals.c.asked_at).label("since"))
        .where(tables.approvals.c.status == tables.PENDING)
        .group_by(_RULE)
        .order_by(count.desc(), _RULE)
    )
    return [(row.rule or "", int(row.n), float(row.since)) for row in await tx.all(query)]


async def all_open_questions(tx: Transaction, limit: int) -> Sequence[QuestionRow]:
    """The questions, sign-ins and unknown outcomes that wait for whomever, the oldest first; `limit` of each kind at
    most."""
    asked, links, lost = tables.clarifications.c, tables.sign_ins.c, tables.attempts.c
    found: list[QuestionRow] = []
    for kind, subject, owner, server, text, since, is_open in (
        ("clarification", asked.clarification_id, asked.requester, asked.server, asked.question, asked.asked_at, _OPEN),
        ("sign_in", links.sign_in_id, links.person_id, links.server, links.service, links.asked_at, _OPEN),
        ("outcome", lost.attempt_id, lost.requester, lost.server, lost.tool, lost.ended_at, _UNKNOWN),
    ):
        table = subject.table.c
        query = sa.select(
            sa.literal(kind).label("kind"),
            subject.label("subject"),
            table.call_id,
            table.thread_id,
            owner.label("person_id"),
            sa.func.coalesce(server, sa.literal("")).label("server"),
            text.label("text"),
            since.label("since"),
        ).where(is_open)
        found += [_open_question(row) for row in await tx.all(query.order_by(since).limit(limit))]
    return sorted(found, key=attrgetter("since"))
