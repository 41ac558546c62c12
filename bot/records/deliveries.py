"""Rows of `deliveries`: the inbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import sqlalchemy as sa

from bot.domain import MessageView
from bot.records.database import Transaction, insert_new, reader
from bot.records.prefixes import in_conversation
from bot.records.statements import Prepared, PreparedForLists
from bot.records.tables import OPEN, PARKED, TIMER, WAITING, deliveries, plan_tasks, plans

OUTAGES = "outages"
"""Under which a delivery's body counts how often it was put off."""

COUNTED = 10_000
"""Deliveries of a state: how many more there are is for nobody to know within a request."""

DeliveryKind = Literal["message", "resume", "stop", "timer", "call", "memory"]
"""`call`: another agent calls a tool (`bot.gateway`). `memory`: the words of a message are looked through for what to
remember."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event from outside, to be handled once."""

    key: str
    thread_id: str
    kind: DeliveryKind
    body: Mapping[str, Any]
    urgent: bool
    accepted_at: float
    due_at: float
    tries: int = 0
    begun: bool | None = None
    """Whether the handler was given it, or may have been; noted where several processes could."""


_delivery = reader(Delivery)


def next_two(thread_id: sa.ColumnElement[str]) -> sa.Select[Any]:
    """Selects the head of a thread and what waits behind it; parameter: `now`."""
    return (
        sa.select(deliveries)
        .where(deliveries.c.thread_id == thread_id, deliveries.c.status == WAITING)
        .where(sa.or_(deliveries.c.kind != TIMER, deliveries.c.due_at <= sa.bindparam("now")))
        .order_by(deliveries.c.urgent.desc(), deliveries.c.seq)
        .limit(2)
    )


_HEAD = Prepared(next_two(sa.bindparam("thread")))


def marking_done() -> sa.Update:
    """Marks the delivery `of` as done. Made anew for each who adds to it: SQLAlchemy remembers of a statement that it
    returns no columns, and passes that on to what is made of it."""
    return sa.update(deliveries).where(deliveries.c.key == sa.bindparam("of")).values(status="done")


_DONE = Prepared(marking_done())
_FINISHED = PreparedForLists(
    lambda keys: sa.update(deliveries).where(deliveries.c.key.in_(keys)).values(status="done", body={})
)
_EXISTS = Prepared(sa.select(deliveries.c.seq).where(deliveries.c.key == sa.bindparam("of")))
_BUSY = Prepared(
    sa.select(deliveries.c.seq)
    .where(deliveries.c.thread_id == sa.bindparam("thread"), deliveries.c.status == WAITING, deliveries.c.kind != TIMER)
    .limit(1)
)
_FIRST_WAITING = Prepared(
    sa.select(deliveries.c.seq)
    .where(deliveries.c.thread_id == sa.bindparam("thread"), deliveries.c.status == WAITING, deliveries.c.kind != TIMER)
    .order_by(deliveries.c.seq)
    .limit(1)
)
_IS_DUE = sa.and_(
    deliveries.c.status == WAITING, sa.or_(deliveries.c.kind != TIMER, deliveries.c.due_at <= sa.bindparam("now"))
)
_TASKS = (
    sa.select(plan_tasks.c.thread_id)
    .join(plans, plans.c.plan_id == plan_tasks.c.plan_id)
    .where(plans.c.thread_id == sa.bindparam("thread"), plans.c.status == OPEN)
)
IS_AT_WORK = sa.or_(
    sa.exists().where(deliveries.c.thread_id == sa.bindparam("thread"), _IS_DUE),
    sa.exists().where(deliveries.c.thread_id.in_(_TASKS), _IS_DUE),
)
"""Whether anything waits to be handled in the thread `thread`, or in that of a task of one of its plans, or is being
handled; timers that are due at `now`, too."""
_AT_WORK = Prepared(sa.select(IS_AT_WORK.label("is_at_work")))
_BODY = Prepared(
    sa.select(deliveries.c.seq, deliveries.c.key, deliveries.c.body, deliveries.c.accepted_at).where(
        deliveries.c.seq == sa.bindparam("number")
    )
)
_TEXTS = Prepared(
    sa.select(deliveries.c.seq, deliveries.c.body)
    .where(deliveries.c.thread_id == sa.bindparam("thread"), deliveries.c.seq < sa.bindparam("before"))
    .where(deliveries.c.kind == "message")
    .order_by(deliveries.c.seq.desc())
    .limit(sa.bindparam("most"))
)
_WAITING_MESSAGES = Prepared(
    sa.select(deliveries.c.seq)
    .where(deliveries.c.thread_id == sa.bindparam("thread"), deliveries.c.status == WAITING)
    .where(deliveries.c.kind == "message")
    .order_by(deliveries.c.seq)
)
_DUE = Prepared(
    sa.select(deliveries.c.thread_id).where(deliveries.c.status == WAITING, deliveries.c.due_at <= sa.bindparam("now"))
)
_NEXT_DUE = Prepared(
    sa.select(sa.func.min(deliveries.c.due_at)).where(
        deliveries.c.status == WAITING, deliveries.c.due_at > sa.bindparam("now")
    )
)


async def add(tx: Transaction, delivery: Delivery) -> bool:
    """Keep a delivery; false when its key is known already."""
    if delivery.kind != "timer":
        tx.wakes(delivery.thread_id)
    return await add_for_later(tx, delivery)


async def add_for_later(tx: Transaction, delivery: Delivery) -> bool:
    """The same of one for which nobody is to be woken before it is due."""
    row = {**asdict(delivery), "body": dict(delivery.body), "status": "waiting"}
    return await insert_new(tx, deliveries, row)


def without_calls(turn: str) -> str:
    """The key of what is kept, as done, once no further call may begin in a turn, by the key of its delivery."""
    return f"no-calls:{turn}"


async def exists(tx: Transaction, key: str) -> bool:
    """Whether this delivery was accepted before."""
    return await tx.one(_EXISTS, {"of": key}) is not None


async def body_of(tx: Transaction, key: str) -> Mapping[str, Any] | None:
    """What a delivery says, handled or not; `None`: it is not known (any more)."""
    row = await tx.one(sa.select(deliveries.c.body).where(deliveries.c.key == key))
    body: Mapping[str, Any] | None = row.body if row is not None else None
    return body


async def accepted_at(tx: Transaction, key: str) -> float:
    """When a delivery was accepted; 0.0: it is not known (any more)."""
    row = await tx.one(sa.select(deliveries.c.accepted_at).where(deliveries.c.key == key))
    return float(row.accepted_at) if row is not None else 0.0


async def is_handled(tx: Transaction, key: str) -> bool:
    """Whether a delivery has taken effect, or was given up."""
    row = await tx.one(sa.select(deliveries.c.status).where(deliveries.c.key == key))
    return row is not None and row.status != "waiting"


async def head(tx: Transaction, thread_id: str, now: float) -> Delivery | None:
    """What the thread has to handle next: the urgent first, then the oldest. Timers count from when they are due;
    anything else that waits to be tried again holds back what came after it."""
    found, _ = await head_and_more(tx, thread_id, now)
    return found


async def head_and_more(tx: Transaction, thread_id: str, now: float) -> tuple[Delivery | None, bool]:
    """The head of a thread, and whether anything waits behind it."""
    return head_of(await tx.all(_HEAD, {"thread": thread_id, "now": now}), now)


def head_of(rows: Sequence[Any], now: float) -> tuple[Delivery | None, bool]:
    """The same, of what `next_two` has found."""
    is_due = bool(rows) and rows[0].due_at <= now
    return _delivery(rows[0]) if is_due else None, len(rows) > 1


async def threads_with_work(tx: Transaction, now: float) -> Sequence[str]:
    """Threads in which something is due."""
    # Not grouped by the database: SQLite would read all there ever was, in the order of its threads.
    return list(dict.fromkeys(r.thread_id for r in await tx.all(_DUE, {"now": now})))


async def threads_not_due(tx: Transaction, kind: DeliveryKind, now: float) -> Sequence[str]:
    """Threads in which deliveries of a kind wait until they are due."""
    query = sa.select(deliveries.c.thread_id).where(
        deliveries.c.status == WAITING, deliveries.c.due_at > now, deliveries.c.kind == kind
    )
    return list(dict.fromkeys(r.thread_id for r in await tx.all(query)))


async def due_now(tx: Transaction, thread_id: str, now: float) -> bool:
    """Makes due what waits in a thread; false: nothing does."""
    return await tx.changes(
        sa.update(deliveries)
        .where(deliveries.c.thread_id == thread_id, deliveries.c.status == WAITING)
        .values(due_at=now)
    )


async def waiting_in(tx: Transaction, thread_id: str, most: int) -> Sequence[Delivery]:
    """What waits in a thread, due or not, oldest first."""
    query = sa.select(deliveries).where(deliveries.c.thread_id == thread_id, deliveries.c.status == WAITING)
    return [_delivery(row) for row in await tx.all(query.order_by(deliveries.c.seq).limit(most))]


async def next_due(tx: Transaction, now: float) -> float | None:
    """When the next delivery that is not due yet will be."""
    row = await tx.one(_NEXT_DUE, {"now": now})
    return row[0] if row else None


async def done(tx: Transaction, key: str) -> None:
    """Marks a delivery that has taken effect."""
    await tx.run(_DONE, {"of": key})


async def note_cause(tx: Transaction, key: str, cause: str) -> None:
    """Keeps why a delivery has failed that is not tried again."""
    await tx.run(sa.update(deliveries).where(deliveries.c.key == key).values(cause=cause))


async def finish(tx: Transaction, keys: Sequence[str]) -> None:
    """Marks deliveries that have taken effect as done; of what they said nothing is left."""
    await tx.run(*_FINISHED.of(keys))


async def retry(tx: Transaction, key: str, due_at: float, cause: str) -> None:
    """Puts off a delivery that failed, to be tried again."""
    values = {"tries": deliveries.c.tries + 1, "due_at": due_at, "cause": cause}
    await tx.run(sa.update(deliveries).where(deliveries.c.key == key).values(values))


async def put_off(tx: Transaction, delivery: Delivery, due_at: float, cause: str) -> None:
    """Nobody could begin with it; that is no try at handling it."""
    body = {**delivery.body, OUTAGES: outages(delivery) + 1}
    values = {"body": body, "due_at": due_at, "cause": cause, "begun": None}
    await tx.run(sa.update(deliveries).where(deliveries.c.key == delivery.key).values(values))


def outages(delivery: Delivery) -> int:
    """How often it was put off."""
    return int(delivery.body.get(OUTAGES, 0))


async def park(tx: Transaction, key: str, cause: str) -> None:
    """Parks a delivery that failed too often: it is kept with its cause, and not tried again by itself."""
    await tx.run(sa.update(deliveries).where(deliveries.c.key == key).values(status="parked", cause=cause))


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """A delivery that is parked."""

    seq: int
    key: str
    thread_id: str
    kind: str
    body: Mapping[str, Any]
    accepted_at: float
    tries: int
    cause: str | None


_parked_row = reader(ParkedRow)
_PARKED = sa.select(*(deliveries.c[each.name] for each in fields(ParkedRow))).where(deliveries.c.status == PARKED)


async def parked(tx: Transaction, before: int, limit: int) -> Sequence[ParkedRow]:
    """What is parked, with a number below `before`, the newest first."""
    number = deliveries.c.seq + 0  # by the index of what is parked, never through all there is by their numbers
    query = _PARKED.where(number < before).order_by(number.desc()).limit(limit)
    return [_parked_row(row) for row in await tx.all(query)]


async def parked_one(tx: Transaction, key: str) -> ParkedRow | None:
    """A delivery that is parked; `None`: there is none of this key (any more)."""
    return await tx.first(_parked_row, _PARKED.where(deliveries.c.key == key))


async def give_up(tx: Transaction, key: str) -> None:
    """What was parked is over; its cause stays."""
    gone = sa.update(deliveries).where(deliveries.c.key == key, deliveries.c.status == PARKED)
    await tx.run(gone.values(status="done"))


async def give_up_in(tx: Transaction, thread_id: str) -> None:
    """The same, of all that was parked in a conversation, in the tasks of its plans too."""
    within = in_conversation(deliveries.c.thread_id, thread_id)
    await tx.run(sa.update(deliveries).where(within, deliveries.c.status == PARKED).values(status="done"))


async def again(tx: Transaction, key: str, now: float) -> None:
    """What was parked is handled again."""
    values = {"status": "waiting", "tries": 0, "due_at": now, "cause": None, "begun": None}
    await tx.run(sa.update(deliveries).where(deliveries.c.key == key, deliveries.c.status == PARKED).values(values))


async def count_try(tx: Transaction, key: str) -> None:
    """The process died while this was handled: that counts as a try."""
    await tx.run(sa.update(deliveries).where(deliveries.c.key == key).values(tries=deliveries.c.tries + 1))


async def waiting_messages(tx: Transaction, thread_id: str) -> Sequence[tuple[str, str]]:
    """Key and author's person id of the messages that wait or are being handled in a thread, oldest first."""
    rows = await _bodies(tx, await tx.all(_WAITING_MESSAGES, {"thread": thread_id}))
    return [(r.key, r.body["person"]) for r in rows]


async def _bodies(tx: Transaction, numbers: Iterable[Any]) -> Sequence[Any]:
    """What the deliveries with these numbers say, one after the other: how many there are is up to people."""
    return await tx.each(_BODY, [{"number": row.seq} for row in numbers])


async def is_busy(tx: Transaction, thread_id: str) -> bool:
    """Whether anything but timers waits or is being handled in a thread."""
    return await tx.one(_BUSY, {"thread": thread_id}) is not None


async def is_at_work(tx: Transaction, thread_id: str, now: float) -> bool:
    """Whether anything waits to be handled in a thread, or in that of a task of one of its plans, or is being handled:
    timers that are due, too."""
    row = await tx.one(_AT_WORK, {"thread": thread_id, "now": now})
    return row is not None and bool(row.is_at_work)


async def drop(tx: Transaction, keys: Sequence[str]) -> None:
    """Drops messages that their author took back, so that they are not handled."""
    await tx.run(_dropped().where(deliveries.c.key.in_(keys)))
    for key in keys:
        await forget_sources(tx, key)


async def drop_resumes(tx: Transaction, thread_id: str) -> None:
    """Drops the resumes of a thread whose turn was ended."""
    resumes = _dropped().where(deliveries.c.thread_id == thread_id, deliveries.c.kind != TIMER)
    await tx.run(resumes.where(deliveries.c.kind == "resume"))


def _dropped() -> sa.Update:
    return sa.update(deliveries).where(deliveries.c.status == WAITING).values(status="done", cause="stopped")


async def first_author(tx: Transaction, thread_id: str) -> str | None:
    """Who wrote the message that is being handled, or is next; `None`: what comes next is no message."""
    query = sa.select(deliveries.c.kind, deliveries.c.body).where(
        deliveries.c.thread_id == thread_id, deliveries.c.status == WAITING, deliveries.c.kind != TIMER
    )
    row = await tx.one(query.order_by(deliveries.c.urgent.desc(), deliveries.c.seq).limit(1))
    return row.body["person"] if row and row.kind in {"message", "stop"} else None


async def waiting_message(tx: Transaction, key: str) -> Delivery | None:
    """A message that waits or is being handled."""
    row = await tx.one(sa.select(deliveries).where(deliveries.c.key == key, deliveries.c.status == WAITING))
    return None if row is None or row.kind != "message" else _delivery(row)


async def forget_sources(tx: Transaction, key: str) -> None:
    """Of the files of a message, forget how they are fetched: that may be a link that needs no sign-in."""
    row = await tx.one(sa.select(deliveries.c.body).where(deliveries.c.key == key))
    if row is not None and any(each["source"] for each in row.body.get("files", ())):
        files = [{**each, "source": {}} for each in row.body["files"]]
        await set_body(tx, key, {**row.body, "files": files})


async def set_body(tx: Transaction, key: str, body: Mapping[str, Any]) -> None:
    """Replace what a delivery says."""
    await tx.run(sa.update(deliveries).where(deliveries.c.key == key).values(body=dict(body)))


async def threads_waiting(tx: Transaction, within: str) -> Sequence[str]:
    """Conversations, whose ids begin with `within`, in which anything but timers waits or is being handled."""
    query = sa.select(deliveries.c.thread_id).where(
        deliveries.c.status == WAITING,
        deliveries.c.kind != TIMER,
        deliveries.c.kind != "memory",  # beside a conversation
        deliveries.c.thread_id.startswith(within, autoescape=True),
    )
    return [r.thread_id for r in await tx.all(query.group_by(deliveries.c.thread_id))]


async def threads_with_messages(tx: Transaction, after: str, limit: int) -> Sequence[str]:
    """Conversations in which messages wait or are being handled, in the order of their ids: at most `limit`, those that
    follow the id `after`."""
    query = sa.select(deliveries.c.thread_id).where(
        deliveries.c.status == WAITING,
        deliveries.c.kind != TIMER,
        deliveries.c.kind == "message",
        deliveries.c.thread_id > after,
    )
    in_order = query.group_by(deliveries.c.thread_id).order_by(deliveries.c.thread_id)
    return [r.thread_id for r in await tx.all(in_order.limit(limit))]


async def counts(tx: Transaction) -> Mapping[str, int]:
    """How many deliveries wait and how many are parked, `COUNTED` at most. Timers are set rather than waiting, and what
    is looked through for what to remember waits for a quiet moment."""
    return {status: (await tx.all(query))[0].n for status, query in _COUNTS.items()}


def _counted(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    # In the order of the index that has these rows and no others.
    some = sa.select(deliveries.c.seq).where(*conditions).order_by(deliveries.c.thread_id).limit(COUNTED).subquery()
    return sa.select(sa.func.count().label("n")).select_from(some)


_COUNTS = {
    "waiting": _counted(deliveries.c.status == WAITING, deliveries.c.kind != TIMER, deliveries.c.kind != "memory"),
    "parked": _counted(deliveries.c.status == PARKED),
}


async def messages_of(tx: Transaction, thread_id: str, limit: int) -> list[MessageView]:
    """What people wrote in a thread, oldest first, the newest `limit` of them; of what waits there, all but what came
    first is `queued`."""
    query = (
        sa.select(deliveries.c.seq, deliveries.c.kind, (deliveries.c.status == WAITING).label("waits"))
        .where(deliveries.c.thread_id == thread_id, deliveries.c.kind.in_(["message", "stop"]))
        .order_by(deliveries.c.seq.desc())
        .limit(limit)
    )
    rows = await tx.all(query)
    waiting = {row.seq for row in rows if row.kind == "message" and row.waits}
    first = await tx.one(_FIRST_WAITING, {"thread": thread_id}) if waiting else None
    queued = {seq for seq in waiting if first is not None and seq > first.seq}
    views = _views(await _bodies(tx, reversed(rows)))
    return [replace(view, queued=True) if view.number in queued else view for view in views]


async def texts_before(tx: Transaction, thread_id: str, before: int, limit: int) -> list[tuple[int, str]]:
    """The number and the text of the newest `limit` messages in a thread with numbers below `before`, the newest
    first."""
    rows = await tx.all(_TEXTS, {"thread": thread_id, "before": before, "most": limit})
    return [(row.seq, str(row.body.get("text", ""))) for row in rows]


async def newest_message(tx: Transaction, thread_id: str) -> str | None:
    """Key of what was written last in a thread; `None`: nothing was."""
    query = sa.select(deliveries.c.key).where(deliveries.c.thread_id == thread_id, deliveries.c.kind == "message")
    row = await tx.one(query.order_by(deliveries.c.seq.desc()).limit(1))
    return row.key if row else None


async def message_of(tx: Transaction, thread_id: str, key: str) -> MessageView | None:
    """What somebody wrote in a thread, by its key; `None`: nothing that is shown."""
    query = sa.select(deliveries.c.seq).where(
        deliveries.c.key == key, deliveries.c.thread_id == thread_id, deliveries.c.kind.in_(["message", "stop"])
    )
    return next(iter(_views(await _bodies(tx, await tx.all(query)))), None)


def _views(rows: Iterable[Any]) -> list[MessageView]:
    return [
        MessageView(
            r.key,
            r.body["name"],
            r.body["person"],
            r.body["text"],
            r.accepted_at,
            r.seq,
            files=tuple(each["name"] for each in r.body.get("files", ())),
        )
        for r in rows
        if r.body.get("text")
    ]
