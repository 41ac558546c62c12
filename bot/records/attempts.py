"""Rows of `attempts`: the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import sqlalchemy as sa

from bot.records.approvals import presentation_in
from bot.records.database import Row, Transaction, reader, unless_longer
from bot.records.prefixes import from_to, of_turn
from bot.records.statements import Prepared
from bot.records.tables import UNKNOWN, attempts
from graph.ports import CallRecord
from graph.presentation import NOTHING_KNOWN, CallPresentation


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One try at executing a call."""

    attempt_id: str
    call_id: str
    number: int
    thread_id: str
    requester: str
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    digest: str
    status: str
    """`started`, `asking` (it waits for its requester, and may have acted before), `done`, `failed`, `unknown`, or
    `nothing` (the server said by its protocol that it did nothing, or the request never left)."""
    text: str
    """The result, or what went wrong; of `unknown`: what is known of it."""
    owner: str | None
    choice: str | None
    choice_by: str | None
    settled_key: str | None
    approval_id: str | None = None
    started_at: float = 0.0
    judged: Mapping[str, Any] | None = None
    """How it was judged when it began (`bot.audit.entries`); `None`: nobody said."""
    grant_id: str | None = None
    """The standing approval under which it ran; `None`: none was needed."""
    ended_at: float | None = None
    presentation: CallPresentation = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class ActivityRow:
    """The latest attempt at a call, as far as a list of calls needs it."""

    attempt_id: str
    call_id: str
    server: str
    tool: str
    title: str
    status: str
    text: str
    """Its beginning."""
    owner: str | None
    choice: str | None
    choice_by: str | None
    started_at: float
    ended_at: float | None
    presentation: CallPresentation


_BEGUN = ("started", "asking")
_activity_row = reader(ActivityRow, text=lambda text: text or "", presentation=presentation_in)
_row = reader(AttemptRow, text=lambda text: text or "", presentation=presentation_in)
_READ = [attempts.c[each.name] for each in fields(AttemptRow)]
"""Without what was returned, which may be megabytes, and which only `returned_by` reads."""
_LATEST = Prepared(
    sa.select(*_READ).where(attempts.c.call_id == sa.bindparam("call")).order_by(attempts.c.number.desc()).limit(1)
)
_NTH = (attempts.c.call_id == sa.bindparam("call"), attempts.c.number == sa.bindparam("nth"))
_OF_CALL = Prepared(sa.select(*_READ).where(*_NTH))
_SHORT = Prepared(
    unless_longer(attempts, attempts.c.arguments, without=attempts.c.returned).where(
        attempts.c.attempt_id == sa.bindparam("attempt")
    )
)
_LATEST_SHORT = Prepared(
    unless_longer(attempts, attempts.c.arguments, without=attempts.c.returned)
    .where(attempts.c.call_id == sa.bindparam("call"))
    .order_by(attempts.c.number.desc())
    .limit(1)
)
_ADD = Prepared(sa.insert(attempts))
_END = Prepared(
    sa.update(attempts).where(*_NTH, sa.or_(*(attempts.c.status == status for status in _BEGUN))).returning(*_READ)
)
_RETURNED = Prepared(sa.select(attempts.c.returned).where(attempts.c.attempt_id == sa.bindparam("attempt")))
_GET = Prepared(sa.select(*_READ).where(attempts.c.attempt_id == sa.bindparam("attempt")))
_TRIED_AGAIN = (
    sa.select(attempts.c.attempt_id)
    .where(attempts.c.call_id == sa.bindparam("call"), attempts.c.number < sa.bindparam("before"))
    .where(attempts.c.choice == "try_again")
    .limit(1)
)
_WAS_TRIED_AGAIN = Prepared(_TRIED_AGAIN)
_WAS_REPEATED_UNASKED = Prepared(_TRIED_AGAIN.where(attempts.c.choice_by.is_(None)))
_MOVE = Prepared(
    sa.update(attempts)
    .where(attempts.c.attempt_id == sa.bindparam("attempt"), attempts.c.status == sa.bindparam("before"))
    .values(status=sa.bindparam("after"))
    .returning(attempts.c.attempt_id)
)
_UNKNOWN_IN = Prepared(
    sa.select(*_READ).where(
        attempts.c.thread_id == sa.bindparam("thread"), attempts.c.status == UNKNOWN, attempts.c.choice.is_(None)
    )
)


_OF_TURN = (
    from_to(attempts.c.call_id, sa.bindparam("from"), sa.bindparam("below")),
    attempts.c.status != "nothing",
    sa.or_(attempts.c.choice.is_(None), attempts.c.choice != "try_again"),  # else there is a later one
)
_ACTIVITY = Prepared(
    sa.select(
        *(attempts.c[each.name] for each in fields(ActivityRow) if each.name != "text"),
        sa.func.substr(attempts.c.text, 1, sa.bindparam("longest")).label("text"),
        sa.select(sa.func.count()).select_from(attempts).where(*_OF_TURN).scalar_subquery().label("of"),
    ).where(
        attempts.c.attempt_id.in_(
            sa.select(attempts.c.attempt_id)
            .where(*_OF_TURN)
            .order_by(attempts.c.started_at.desc(), attempts.c.call_id.desc())
            .limit(sa.bindparam("most"))
        )
    )
)


async def add(
    tx: Transaction,
    attempt_id: str,
    number: int,
    record: CallRecord,
    *,
    approval_id: str | None,
    grant_id: str | None = None,
    judged: Mapping[str, Any] | None,
    now: float,
) -> None:
    """Record that an attempt starts. Raises `IntegrityError` when this number of it exists."""
    row = {
        "attempt_id": attempt_id,
        "call_id": record.call_id,
        "number": number,
        "thread_id": record.thread_id,
        "requester": record.requester,
        "server": record.tool.server,
        "tool": record.tool.name,
        "title": record.tool.title,
        "arguments": record.arguments,
        "digest": record.digest,
        "approval_id": approval_id,
        "grant_id": grant_id,
        "judged": judged,
        "presentation": record.presentation.model_dump(mode="json", exclude_defaults=True),
        "status": "started",
        "started_at": now,
    }
    await tx.run(_ADD, row)


async def latest(tx: Transaction, call_id: str) -> AttemptRow | None:
    """The newest attempt at a call, or none."""
    return await tx.first(_row, _LATEST, {"call": call_id})


async def of_call(tx: Transaction, call_id: str, number: int) -> AttemptRow | None:
    """One attempt at a call, or none."""
    return await tx.first(_row, _OF_CALL, {"call": call_id, "nth": number})


async def has_begun(tx: Transaction, call_id: str) -> bool:
    """Whether an attempt at a call has begun and not ended: its arguments are with the server."""
    row = await latest(tx, call_id)
    return row is not None and row.status in _BEGUN


async def begun_in_turn(tx: Transaction, turn: str) -> Sequence[AttemptRow]:
    """The attempts at calls of a turn, by the key of its delivery, that have begun and not ended."""
    in_it = of_turn(attempts.c.call_id, turn)
    return [_row(r) for r in await tx.all(sa.select(*_READ).where(in_it, attempts.c.status.in_(_BEGUN)))]


async def in_turn(tx: Transaction, turn: str) -> Sequence[AttemptRow]:
    """The newest attempt at each call of a turn, by the key of its delivery, in the order in which they began first."""
    in_it = of_turn(attempts.c.call_id, turn)
    newest: dict[str, AttemptRow] = {}
    for row in await tx.all(sa.select(*_READ).where(in_it).order_by(attempts.c.started_at, attempts.c.number)):
        newest[row.call_id] = _row(row)
    return list(newest.values())


async def activity_of_turn(tx: Transaction, turn: str, limit: int, longest: int) -> tuple[Sequence[ActivityRow], int]:
    """The newest calls that were made in a turn, by the key of its delivery, and how many there are in all.

    Args:
        longest: characters of each result that are read.
    """
    rows = await tx.all(_ACTIVITY, {"from": f"{turn}.", "below": f"{turn}/", "most": limit, "longest": longest})
    return [_activity_row(row) for row in rows], rows[0].of if rows else 0


async def was_tried_again(tx: Transaction, call_id: str, number: int) -> bool:
    """Whether a call was tried again by this attempt, or one before it, while the outcome was unknown."""
    return await tx.one(_WAS_TRIED_AGAIN, {"call": call_id, "before": number}) is not None


async def was_repeated_unasked(tx: Transaction, call_id: str, number: int) -> bool:
    """The same, where nobody was asked, since the tool may be repeated."""
    return await tx.one(_WAS_REPEATED_UNASKED, {"call": call_id, "before": number}) is not None


async def get(tx: Transaction, attempt_id: str) -> AttemptRow | None:
    """The attempt, or none."""
    return await tx.first(_row, _GET, {"attempt": attempt_id})


async def get_short(tx: Transaction, attempt_id: str, longest: int) -> tuple[AttemptRow, int] | None:
    """The attempt, or none, and 0. Arguments with more than `longest` characters as JSON are not read but counted: they
    are empty then."""
    return _read_short(await tx.one(_SHORT, {"attempt": attempt_id, "longest": longest}), longest)


async def latest_short(tx: Transaction, call_id: str, longest: int) -> tuple[AttemptRow, int] | None:
    """The latest attempt at a call; `longest` and what is returned as for `get_short`."""
    return _read_short(await tx.one(_LATEST_SHORT, {"call": call_id, "longest": longest}), longest)


def _read_short(row: Row | None, longest: int) -> tuple[AttemptRow, int] | None:
    if row is None:
        return None
    return (_row(row), 0) if row.characters <= longest else (replace(_row(row), arguments={}), row.characters)


async def end(
    tx: Transaction,
    call_id: str,
    number: int,
    status: str,
    *,
    now: float,
    text: str | None = None,
    whole: str | None = None,
    owner: str | None = None,
    returned: Mapping[str, Any] | None = None,
) -> AttemptRow | None:
    """Say what came of an attempt. Returns it; none when it had ended before."""
    outcome = {
        "status": status,
        "text": text,
        "whole": whole,
        "owner": owner,
        "returned": returned,
        "ended_at": now,
    }
    return await tx.first(_row, _END, {"call": call_id, "nth": number, **outcome})


async def returned_by(tx: Transaction, attempt_id: str) -> Mapping[str, Any] | None:
    """What the server returned to an attempt, where that is kept (`graph.ports.Caller.keeps_returned`)."""
    row = await tx.one(_RETURNED, {"attempt": attempt_id})
    return row.returned if row else None


async def drop_returned(tx: Transaction, call_ids: Collection[str]) -> None:
    """Forget what servers returned to calls: whoever made them has it, or does not want it."""
    kept = attempts.c.call_id.in_(call_ids), attempts.c.returned.is_not(None)
    await tx.run(sa.update(attempts).where(*kept).values(returned=sa.null()))


async def move(tx: Transaction, attempt_id: str, before: str, after: str) -> bool:
    """Give an attempt that has not ended another status; false when it was not `before`."""
    return await tx.one(_MOVE, {"attempt": attempt_id, "before": before, "after": after}) is not None


async def choose(tx: Transaction, attempt_id: str, choice: str, by: str | None, *, key: str) -> bool:
    """Settle an attempt whose outcome is unknown; false when it was settled before."""
    statement = (
        sa.update(attempts)
        .where(attempts.c.attempt_id == attempt_id, attempts.c.status == "unknown", attempts.c.choice.is_(None))
        .values(choice=choice, choice_by=by, settled_key=key)
    )
    return await tx.changes(statement)


async def unknown_in(tx: Transaction, thread_id: str) -> Sequence[AttemptRow]:
    """Attempts of a thread whose outcome nobody has settled yet."""
    return [_row(r) for r in await tx.all(_UNKNOWN_IN, {"thread": thread_id})]
