"""Turns as operators see them: the messages and calls that began them, and all that came of one.

What belongs to a turn is found by the ids of its calls, which begin with the key of its message. Long arguments are
not read: each may be a megabyte, which holds the event loop (rule 13).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from operator import attrgetter, itemgetter
from typing import Any

import sqlalchemy as sa

from bot.gateway.thread_ids import delivery_key
from bot.records import approvals as approval_rows
from bot.records.approvals import PENDING_COLUMNS, ApprovalRow
from bot.records.database import Transaction, reader, unless_longer
from bot.records.prefixes import from_to, of_turn, range_of_turn
from bot.records.statements import Prepared, PreparedForLists
from bot.records.tables import (
    PARKED,
    TIMER,
    WAITING,
    approvals,
    attempts,
    audit,
    audit_terms,
    clarifications,
    deliveries,
    gateway_calls,
    model_usage,
    plans,
    posts,
    sign_ins,
    threads,
    votes,
)
from bot.records.waiting import SETTLED, SETTLED_AT_ONCE, SUBJECTS
from bot.task_threads import TASK_MARK, turn_of_call

MOST_CALLS = 200
"""Attempts, and approvals, of one turn that are read, the newest."""
MOST_FAILURES = 20_000
"""Failures that a reference is looked for in, the newest; to hash so many keys takes 20 ms."""
MOST_LOOKED_THROUGH = 500
"""Deliveries after the one that began a turn, among which it is looked for a stop of it."""
MOST_TOLD = 3_000
"""Failures, and refusals, among which one person's are looked for, the newest: to look at each takes 10 µs."""
MOST_LATEST = 10_000
"""Deliveries, the newest, among which one person's are looked for that no model has answered: each takes 2 µs."""
_IS_PARKED = sa.text("deliveries.status = 'parked'")  # a literal, for the partial index
_NUMBER = posts.c.seq + sa.literal_column("0")
"""Of a post. In the order of the column itself PostgreSQL would go through all posts from the newest one back, until
there are as many failures among them as are wanted: those of a year, where few have failed lately."""
_BEGINS = ("message", "call")
"""Kinds of deliveries that begin a turn."""
_COLUMNS = (
    deliveries.c.seq,
    deliveries.c.key,
    deliveries.c.thread_id,
    deliveries.c.kind,
    deliveries.c.body,
    deliveries.c.accepted_at,
    deliveries.c.status,
    deliveries.c.cause,
    threads.c.place,
    threads.c.requester,
)
_OF_THREAD = deliveries.join(threads, threads.c.thread_id == deliveries.c.thread_id)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """What began a turn, and what has become of that."""

    seq: int
    key: str
    """Of the message, or of another agent's call: the turn's."""
    thread_id: str
    kind: str
    """`message` or `call`."""
    body: Mapping[str, Any]
    accepted_at: float
    status: str
    """`waiting`, `done` or `parked`."""
    cause: str | None
    """Of the last failure."""
    place: Mapping[str, Any]
    requester: str | None
    """Whose turn it is in its thread now."""


@dataclass(frozen=True, slots=True)
class ShortAttempt:
    """An attempt without arguments that are long."""

    attempt_id: str
    call_id: str
    requester: str
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any] | None
    """`None`: they are too long."""
    status: str
    text: str
    """What came of it: its beginning."""
    length: int
    """Characters of all of that."""
    owner: str | None
    choice: str | None
    judged: Mapping[str, Any] | None
    started_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class VoteOn:
    """A vote, and on what."""

    approval_id: str
    person_id: str
    name: str
    authority: str
    verb: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class AskedOf:
    """A question or a sign-in, and what has become of it."""

    kind: str
    """`clarification` or `sign_in`."""
    subject: str
    """Its id."""
    call_id: str
    person_id: str
    """Who is asked."""
    server: str
    """Empty: the model asks."""
    text: str
    """The question, or the service that wants the sign-in."""
    status: str
    asked_at: float
    settled_at: float | None


@dataclass(frozen=True, slots=True)
class StopRow:
    """A person has stopped what runs in a thread, or a program has taken its call back."""

    key: str
    person_id: str
    name: str
    """Of the person, or of the program."""
    at: float


@dataclass(frozen=True, slots=True)
class ResumeRow:
    """A delivery by which a turn went on, since people decided or answered something, time was up, or a plan ended."""

    key: str
    call_id: str
    """Of the call that was decided about, that asked, or that made the plan."""
    cause: str | None
    """Of its last failure."""


_CUT = ("arguments", "text")
_turn = reader(TurnRow)
_attempt = reader(ShortAttempt, text=lambda text: text or "")
_vote = reader(VoteOn)
_asked = reader(AskedOf)
_resume = reader(ResumeRow)
_stop = reader(StopRow)


def _turns(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(*_COLUMNS)
        .select_from(_OF_THREAD)
        .where(deliveries.c.kind.in_(_BEGINS), threads.c.deleted_at.is_(None), *conditions)
    )


async def newest(tx: Transaction, before: int, limit: int) -> Sequence[TurnRow]:
    """The turns that began last, the newest first, of those with numbers below `before`."""
    query = _turns(deliveries.c.seq < before).order_by(deliveries.c.seq.desc()).limit(limit)
    return [_turn(row) for row in await tx.all(query)]


async def newest_in(tx: Transaction, thread_id: str, before: int, limit: int) -> Sequence[TurnRow]:
    """The same, of one thread."""
    query = _turns(deliveries.c.thread_id == thread_id, deliveries.c.seq < before)
    return [_turn(row) for row in await tx.all(query.order_by(deliveries.c.seq.desc()).limit(limit))]


async def of_person(tx: Transaction, person_id: str, before: float, limit: int) -> Sequence[tuple[str, float]]:
    """The turns of somebody, the newest first: their keys, and since when a model has been used in them, or where none
    has answered, when they began; below `before`."""
    use, earlier = model_usage.c, model_usage.alias().c
    is_first = ~sa.exists().where(  # a turn has a row for each model, each task, and what gave no answer
        earlier.message == use.message,
        sa.tuple_(earlier.at, earlier.turn, earlier.agent, earlier.model)
        < sa.tuple_(use.at, use.turn, use.agent, use.model),
    )
    used = (
        sa.select(use.message.label("key"), use.at)
        .join_from(model_usage, deliveries, deliveries.c.key == use.message)
        .where(use.person_id == person_id, use.at < before, is_first, deliveries.c.kind.in_(_BEGINS))
        .order_by(use.day.desc(), use.at.desc())
        .limit(limit)
    )
    found = [(str(row.key), float(row.at)) for row in await tx.all(used)]
    found += await _calls_of_agents(tx, person_id, before, limit)
    found += await _before_use_was_kept(tx, person_id, before, limit)
    # In a statement of its own: PostgreSQL then knows how few deliveries are newer.
    newest = await tx.one(sa.select(sa.func.max(deliveries.c.seq).label("seq")))
    last = newest.seq if newest is not None and newest.seq is not None else 0
    for query in _without_a_model(person_id, before, last):
        latest = query.order_by(deliveries.c.accepted_at.desc()).limit(limit)
        found += [(str(row.key), float(row.at)) for row in await tx.all(latest)]
    return sorted(dict.fromkeys(found), key=itemgetter(1), reverse=True)[:limit]


async def _calls_of_agents(tx: Transaction, person_id: str, before: float, limit: int) -> Sequence[tuple[str, float]]:
    """The calls of other agents for somebody, as `of_person` returns them: those of which something is known still, and
    of older ones those among the newest `MOST_TOLD` entries of the audit log that are about this person."""
    kept = (
        sa.select(gateway_calls.c.gateway_call_id)
        .where(gateway_calls.c.person_id == person_id, gateway_calls.c.begun_at < before)
        .order_by(gateway_calls.c.begun_at.desc())
        .limit(limit + 1)  # of the last one of the page before, only the beginning is before it
    )
    logged = await _keys_logged_about(tx, person_id)
    known = [delivery_key(row.gateway_call_id) for row in await tx.all(kept)]
    earlier = {key.partition(".")[0] for key in logged if key.startswith(delivery_key(""))}
    of = deliveries.c
    # The log has somebody also where they have decided about the call of another.
    own = sa.or_(of.key.in_(known), sa.and_(of.key.in_(earlier), threads.c.requester == person_id))
    query = sa.select(of.key, of.accepted_at).select_from(_OF_THREAD).where(own, of.accepted_at < before)
    rows = await tx.all(query.order_by(of.accepted_at.desc()).limit(limit))
    return [(row.key, row.accepted_at) for row in rows]


async def _before_use_was_kept(
    tx: Transaction, person_id: str, before: float, limit: int
) -> Sequence[tuple[str, float]]:
    """The messages of somebody that an earlier version answered, which did not keep what turns use of models, as
    `of_person` returns them: those with calls that the newest `MOST_TOLD` entries of then about this person tell of."""
    row = await tx.one(sa.select(sa.func.min(model_usage.c.day).label("first")))
    end = None
    if row is not None and row.first is not None:  # that version may have run on this day, too
        end = datetime.combine(date.fromisoformat(row.first) + timedelta(days=1), time(), UTC).timestamp()
    logged = await _keys_logged_about(tx, person_id, end)
    keys = {turn_of_call(found["call"]) for key in logged if (found := _OF_CALL.match(key))}
    if not keys:
        return ()
    of = deliveries.c
    query = sa.select(of.key, of.accepted_at).where(
        of.key.in_(keys),
        of.kind == "message",
        of.accepted_at < before,
        of.body["person"].as_string() == person_id,  # the log has somebody also where they have only decided
        ~sa.exists().where(model_usage.c.message == of.key),
    )
    rows = await tx.all(query.order_by(of.accepted_at.desc()).limit(limit))
    return [(row.key, row.accepted_at) for row in rows]


_OF_CALL = re.compile(r"(?P<call>.*\.\d+\.\d+):", re.DOTALL)
"""Key of an entry about a call (`bot.audit.entries.key_of`)."""


async def _keys_logged_about(tx: Transaction, person_id: str, end: float | None = None) -> Sequence[str]:
    """The keys of the newest `MOST_TOLD` entries of the audit log about somebody. `end`: of those before then."""
    of = audit_terms.c
    about = sa.select(of.seq).where(of.kind == "person", of.term == person_id)
    if end is not None:
        about = about.where(of.at < end)
    newest = about.order_by(of.at.desc(), of.seq.desc()).limit(MOST_TOLD).subquery()
    rows = await tx.all(sa.select(audit.c.key).join_from(newest, audit, audit.c.seq == newest.c.seq))
    return [row.key for row in rows]


def _without_a_model(person_id: str, before: float, last: int) -> Iterator[sa.Select[Any]]:
    """Messages of somebody in whose turns no model has answered: those that wait or are being handled, were given up,
    or of which people were told lately (`MOST_TOLD`) that something went wrong or was too much; and of the newest
    `MOST_LATEST` deliveries, up to the number `last`, those that got an answer all the same, such as that a budget is
    used up."""
    of = deliveries.c
    query = sa.select(of.key, of.accepted_at.label("at")).where(
        of.kind == "message",
        of.accepted_at < before,
        of.body["person"].as_string() == person_id,
        ~of.thread_id.contains(TASK_MARK),  # what a task uses is that of the turn that made its plan
        ~sa.exists().where(model_usage.c.message == of.key),
    )
    yield query.where(of.status == WAITING, of.kind != TIMER)
    yield query.where(of.status == PARKED)
    for told in ("error", "limit"):
        sentences = sa.select(posts.c.key).where(from_to(posts.c.key, f"{told}:", f"{told};"))
        newest = sentences.order_by(_NUMBER.desc()).limit(MOST_TOLD).subquery()
        about = of.key == sa.func.substr(newest.c.key, sa.literal_column(str(len(f"{told}:") + 1)))
        yield query.select_from(newest.join(deliveries, about)).where(of.status == "done")
    said = sa.exists().where(posts.c.key == sa.literal("said:").concat(of.key).concat(".0"))
    yield query.where(of.seq > last - MOST_LATEST, of.status == "done", said)


async def calls_of_card(tx: Transaction, subject: str) -> frozenset[str]:
    """Ids of the calls that a card is about, by the id of what it shows: an approval, a question, a sign-in, an attempt
    or a plan."""
    kinds = (
        (approvals.c.call_id, approvals.c.approval_id),
        (clarifications.c.call_id, clarifications.c.clarification_id),
        (sign_ins.c.call_id, sign_ins.c.sign_in_id),
        (attempts.c.call_id, attempts.c.attempt_id),
        (plans.c.plan_id, plans.c.plan_id),  # that of the call that made it
    )
    found = await tx.all(sa.union_all(*(sa.select(call.label("call")).where(key == subject) for call, key in kinds)))
    return frozenset(str(row.call) for row in found)


async def with_keys(tx: Transaction, keys: Collection[str]) -> Mapping[str, TurnRow]:
    """Those of these turns that are known, and whose conversation was not deleted, by their keys."""
    rows = await tx.all(_turns(deliveries.c.key.in_(list(keys)))) if keys else ()
    return {row.key: _turn(row) for row in rows}


async def failed_among(tx: Transaction, keys: Collection[str]) -> frozenset[str]:
    """Those of these turns of which people were told that something went wrong."""
    told = {f"error:{key}": key for key in keys}
    rows = await tx.all(sa.select(posts.c.key).where(posts.c.key.in_(list(told)))) if told else ()
    return frozenset(told[row.key] for row in rows)


async def failed_resumes(tx: Transaction, of: Collection[TurnRow]) -> Sequence[ResumeRow]:
    """Those in the threads of these turns of which people were told that something went wrong, or that were given up,
    oldest first."""
    of_resumes = from_to(posts.c.key, "error:resume:", "error:resume;")
    threads_of = {row.thread_id for row in of}
    within = posts.c.thread_id.concat("").in_(threads_of)  # by the index of keys: a thread may have 100,000 posts
    parked = sa.select(deliveries.c.key).where(_IS_PARKED, deliveries.c.thread_id.in_(threads_of))
    told = list(await tx.all(sa.union_all(sa.select(posts.c.key).where(of_resumes, within), parked)))
    turns = [row.key for row in of]
    for first in range(0, len(turns), _TURNS_AT_ONCE):
        ranges = [key for turn in turns[first : first + _TURNS_AT_ONCE] for key in range_of_turn(turn)]
        told += await tx.all(*_FAILED_AT_ONCE.of(ranges))
    return await resumes(tx, {row.key.removeprefix("error:") for row in told})


def _failed_at_once(ranges: Sequence[Any]) -> sa.CompoundSelect[Any]:
    """Posts that tell of failures of what settled something in these turns, and was to go on with it at once.

    Turn by turn: joined with the deliveries, PostgreSQL reads whole tables to find them, and SQLite all that was ever
    settled where one condition has many ranges.
    """
    return sa.union_all(
        *(
            sa.select(posts.c.key)
            .select_from(each.table)
            .join(posts, posts.c.key == sa.literal("error:").concat(each.table.c.settled_key))
            .where(from_to(each.call_id, first, last), each.is_so)
            for each in SETTLED_AT_ONCE
            for first, last in zip(ranges[::2], ranges[1::2], strict=True)
        )
    )


_TURNS_AT_ONCE = 8
_FAILED_AT_ONCE = PreparedForLists(_failed_at_once)


async def resumes(tx: Transaction, keys: Collection[str]) -> Sequence[ResumeRow]:
    """Those of these deliveries by which a turn went on, oldest first."""
    if not keys:
        return ()
    of = deliveries.c
    queries = [
        sa.select(of.seq, of.key, call_id.label("call_id"), of.cause)
        .join_from(deliveries, subject.table, subject == SETTLED)
        .where(of.key.in_(list(keys)), of.kind == "resume")
        for call_id, subject in SUBJECTS
    ]
    queries += [
        sa.select(of.seq, of.key, each.call_id.label("call_id"), of.cause)
        .join_from(deliveries, each.table, each.table.c.settled_key == of.key)
        .where(of.key.in_(list(keys)), each.is_so)
        for each in SETTLED_AT_ONCE
    ]
    return [_resume(row) for row in await tx.all(sa.union_all(*queries).order_by("seq"))]


async def stop_of(tx: Transaction, row: TurnRow, thread_id: str) -> StopRow | None:
    """The first stop after a turn began: where the turn had not ended, it was ended so.

    Args:
        thread_id: of its conversation, where the tasks of plans are stopped, too.
    """
    of = deliveries.c
    later = sa.select(of.key, of.kind).where(of.thread_id == thread_id, of.seq > row.seq)
    nearest = await tx.all(later.order_by(of.seq).limit(MOST_LOOKED_THROUGH))
    stops = [each.key for each in nearest if each.kind == "stop"]
    if row.kind == "message" and stops:  # else somebody has only dropped what they had written themselves
        told = await tx.all(sa.select(posts.c.key).where(posts.c.key.in_([f"stopped:{key}" for key in stops])))
        known = {each.key for each in told}
        stops = [key for key in stops if f"stopped:{key}" in known]
    if not stops:
        return None
    name, person_id = of.body["name"].as_string(), of.body["person"].as_string()
    columns = (of.key, person_id.label("person_id"), name.label("name"), of.accepted_at.label("at"))
    return await tx.first(_stop, sa.select(*columns).where(of.key == stops[0]))


async def failures(tx: Transaction) -> Sequence[str]:
    """Keys of the deliveries of which people were told that something went wrong, the newest `MOST_FAILURES`, and of
    those that were given up: programs are told of theirs in what they get."""
    of_errors = from_to(posts.c.key, "error:", "error;")
    told = await tx.all(sa.select(posts.c.key).where(of_errors).order_by(_NUMBER.desc()).limit(MOST_FAILURES))
    parked = await tx.all(sa.select(deliveries.c.key).where(_IS_PARKED).limit(MOST_FAILURES))
    return [row.key.removeprefix("error:") for row in (*told, *parked)]


_LONGEST: sa.BindParameter[Any] = sa.bindparam("longest", type_=sa.Integer)
_CHARACTERS = sa.func.length(sa.cast(attempts.c.arguments, sa.Text))
_ATTEMPTS = Prepared(
    sa.select(
        *(attempts.c[each.name] for each in fields(ShortAttempt) if each.name in attempts.c and each.name not in _CUT),
        sa.case((_CHARACTERS <= _LONGEST, attempts.c.arguments), else_=sa.null()).label("arguments"),
        sa.func.substr(attempts.c.text, 1, _LONGEST).label("text"),
        sa.func.coalesce(sa.func.length(attempts.c.text), 0).label("length"),
    )
    .where(from_to(attempts.c.call_id, sa.bindparam("from"), sa.bindparam("below")))
    .order_by(attempts.c.started_at.desc())
    .limit(MOST_CALLS)
)


async def attempts_of(tx: Transaction, turn: str, longest: int) -> Sequence[ShortAttempt]:
    """All attempts at the calls of a turn, oldest first, `MOST_CALLS` at most. Arguments of more than `longest`
    characters are left out."""
    rows = await tx.all(_ATTEMPTS, {"from": f"{turn}.", "below": f"{turn}/", "longest": longest})
    return [_attempt(row) for row in reversed(rows)]


async def approvals_of(tx: Transaction, turn: str) -> Sequence[ApprovalRow]:
    """All rounds of the approvals of the calls of a turn, oldest first, without arguments; `MOST_CALLS` at most."""
    query = sa.select(*PENDING_COLUMNS).where(of_turn(approvals.c.call_id, turn))
    found = await approval_rows.select_pending(tx, query.order_by(approvals.c.asked_at.desc()).limit(MOST_CALLS))
    return list(reversed(found))


async def arguments_asked_for(
    tx: Transaction, approval_ids: Collection[str], longest: int
) -> Mapping[str, Mapping[str, Any]]:
    """With which arguments calls were approved, or were asked about, by approval; those of more than `longest`
    characters are left out."""
    if not approval_ids:
        return {}
    query = unless_longer(approvals, approvals.c.arguments, approvals.c.approved_arguments)
    short = query.with_only_columns(
        approvals.c.approval_id, *(c for c in query.selected_columns if c.name in {"arguments", "approved_arguments"})
    )
    rows = await tx.all(short.where(approvals.c.approval_id.in_(list(approval_ids))), {"longest": longest})
    return {
        row.approval_id: row.arguments if row.approved_arguments is None else row.approved_arguments
        for row in rows
        if row.arguments is not None
    }


async def votes_on_all(tx: Transaction, approval_ids: Collection[str]) -> Sequence[VoteOn]:
    """The votes on these approvals, oldest first."""
    if not approval_ids:
        return ()
    query = sa.select(votes).where(votes.c.approval_id.in_(list(approval_ids))).order_by(votes.c.at, votes.c.person_id)
    return [_vote(row) for row in await tx.all(query)]


async def questions_of(tx: Transaction, turn: str) -> Sequence[AskedOf]:
    """The questions of the model and of tools in a turn, and its sign-ins, oldest first; `MOST_CALLS` of each at
    most."""
    question, link = clarifications.c, sign_ins.c
    asked = sa.select(
        sa.literal("clarification").label("kind"),
        question.clarification_id.label("subject"),
        question.call_id,
        question.requester.label("person_id"),
        sa.func.coalesce(question.server, sa.literal("")).label("server"),
        question.question.label("text"),
        question.status,
        question.asked_at,
        question.settled_at,
    ).where(of_turn(question.call_id, turn))
    links = sa.select(
        sa.literal("sign_in").label("kind"),
        link.sign_in_id.label("subject"),
        link.call_id,
        link.person_id,
        link.server,
        link.service.label("text"),
        link.status,
        link.asked_at,
        link.settled_at,
    ).where(of_turn(link.call_id, turn))
    found = [_asked(row) for query in (asked, links) for row in await tx.all(query.limit(MOST_CALLS))]
    return sorted(found, key=attrgetter("asked_at"))
