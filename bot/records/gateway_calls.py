"""Rows of `gateway_calls`: what other agents call, where each call stands, and its result until it was fetched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import sqlalchemy as sa

from bot.records.database import Transaction, insert_new, reader
from bot.records.statements import Prepared, PreparedForLists
from bot.records.tables import gateway_calls

CallStatus = Literal["running", "waiting", "ended", "cancelled"]
UNDER_WAY: tuple[CallStatus, ...] = ("running", "waiting")
RESULT_SECONDS = 24 * 3600.0
"""How long a result that nobody has fetched counts: the same call is a new one later."""
COUNTED_SECONDS = 24 * 3600.0
"""How long a call that waits counts for what one person may have under way, since it changed last."""
DELIVERED_SECONDS = 3600.0
"""How long anything is known of a call after its result was delivered; a task's as long as was asked for, if that is
longer."""
_NEWER = 1e-6
"""Seconds by which a change is newer than the one before it at least, also when the clock stands still or goes back."""
MOST_DROPPED = 500
"""Rows that one transaction drops at most."""
MOST_LISTED = 200
"""Calls in a list, the newest."""


@dataclass(frozen=True, slots=True)
class GatewayCallRow:
    """One call of another agent."""

    gateway_call_id: str
    thread_id: str
    person_id: str
    client: str
    server: str
    tool: str
    digest: str
    status: CallStatus
    step: str
    """Of its branch (`graph.single_calls`), where it goes on."""
    state: Mapping[str, Any] | None
    """What its branch carries, all arguments included; `None`: it has ended, or was read for how it stands alone."""
    result: Mapping[str, Any] | None
    task_seconds: float | None
    begun_at: float
    changed_at: float
    ended_at: float | None = None
    delivered_at: float | None = None
    failed: bool | None = None
    """Whether its result is an error, once it has ended."""
    handed_at: float | None = None
    """Since when its result is on its way to a client; `None`: it is on its way to none."""
    forgotten_at: float | None = None
    """When nothing needs to be known of it any more, once it has ended."""

    @property
    def is_under_way(self) -> bool:
        """Whether something is still to come of it."""
        return self.status in UNDER_WAY


_row = reader(GatewayCallRow)


def _without(*names: str) -> list[sa.ColumnElement[Any]]:
    """All columns, with nothing in some of them."""
    return [sa.null().label(column.name) if column.name in names else column for column in gateway_calls.c]


_IS_UNDER_WAY = sa.or_(*(gateway_calls.c.status == sa.literal_column(f"'{status}'") for status in UNDER_WAY))
_UNDELIVERED = gateway_calls.c.delivered_at.is_(None)
_STANDING = Prepared(sa.select(*_without("state")).where(gateway_calls.c.gateway_call_id == sa.bindparam("call")))
_OF_THREAD = Prepared(sa.select(gateway_calls).where(gateway_calls.c.thread_id == sa.bindparam("thread")))
_SAME = Prepared(
    sa.select(*_without("state")).where(
        gateway_calls.c.person_id == sa.bindparam("person"),
        gateway_calls.c.client == sa.bindparam("program"),
        gateway_calls.c.digest == sa.bindparam("about"),
        _UNDELIVERED,
    )
)


def _kept_for(seconds: float) -> sa.ColumnElement[float]:
    """How long something is known of a call: so long, or as a task for as long as was asked for."""
    asked = sa.func.coalesce(gateway_calls.c.task_seconds, 0.0)
    return sa.case((asked > seconds, asked), else_=sa.literal(seconds))


_CHANGED = sa.case(
    (gateway_calls.c.changed_at >= sa.bindparam("now"), gateway_calls.c.changed_at + _NEWER), else_=sa.bindparam("now")
)
_MOVE = Prepared(
    sa.update(gateway_calls)
    .where(gateway_calls.c.gateway_call_id == sa.bindparam("call"), _IS_UNDER_WAY)
    .values(
        status=sa.bindparam("to_status"),
        step=sa.bindparam("to_step"),
        state=sa.bindparam("to_state", type_=sa.JSON(none_as_null=True)),
        result=sa.bindparam("to_result", type_=sa.JSON(none_as_null=True)),
        ended_at=sa.bindparam("end"),
        failed=sa.bindparam("is_error"),
        handed_at=sa.bindparam("handed"),
        forgotten_at=sa.bindparam("end") + _kept_for(RESULT_SECONDS),
        changed_at=_CHANGED,
    )
    .returning(gateway_calls.c.gateway_call_id)
)
_CANCEL = Prepared(
    sa.update(gateway_calls)
    .where(gateway_calls.c.gateway_call_id == sa.bindparam("call"), _IS_UNDER_WAY)
    .values(
        status="cancelled",
        result=sa.bindparam("to_result", type_=sa.JSON(none_as_null=True)),
        ended_at=sa.bindparam("now"),
        delivered_at=sa.bindparam("now"),
        failed=True,
        forgotten_at=sa.bindparam("now") + _kept_for(DELIVERED_SECONDS),
        changed_at=_CHANGED,
    )
    .returning(gateway_calls.c.gateway_call_id)
)
_UNDER_WAY_OF = PreparedForLists(
    lambda person_ids: (
        sa.select(sa.func.count().label("n"))
        .select_from(gateway_calls)
        .where(
            gateway_calls.c.person_id.in_(person_ids),
            _UNDELIVERED,
            _IS_UNDER_WAY,
            gateway_calls.c.changed_at > sa.bindparam("since"),
        )
    )
)
_DELIVERED = Prepared(
    sa.update(gateway_calls)
    .where(gateway_calls.c.gateway_call_id == sa.bindparam("call"), ~_IS_UNDER_WAY, _UNDELIVERED)
    .values(delivered_at=sa.bindparam("now"), forgotten_at=sa.bindparam("now") + _kept_for(DELIVERED_SECONDS))
)

_HAND_OUT = Prepared(
    sa.update(gateway_calls)
    .where(gateway_calls.c.gateway_call_id == sa.bindparam("call"), _UNDELIVERED)
    .values(handed_at=sa.bindparam("at"))
)


async def add(tx: Transaction, row: GatewayCallRow) -> bool:
    """Keeps a call that begins; false: the same call of the same person through the same program has no delivered
    result yet."""
    # Not `asdict`: it copies the arguments.
    return await insert_new(tx, gateway_calls, {each.name: getattr(row, each.name) for each in fields(row)})


async def get(tx: Transaction, gateway_call_id: str) -> GatewayCallRow | None:
    """The call as it stands, without its state, or none: whoever waits for it reads it again and again."""
    return await tx.first(_row, _STANDING, {"call": gateway_call_id})


async def of_thread(tx: Transaction, thread_id: str) -> GatewayCallRow | None:
    """The call that a thread belongs to, with its state, or none."""
    return await tx.first(_row, _OF_THREAD, {"thread": thread_id})


async def undelivered(tx: Transaction, person_id: str, client: str, digest: str) -> GatewayCallRow | None:
    """The same call, of which no result was delivered yet, without its state; or none."""
    return await tx.first(_row, _SAME, {"person": person_id, "program": client, "about": digest})


async def waits(tx: Transaction, gateway_call_id: str, step: str, state: Mapping[str, Any], *, now: float) -> bool:
    """Keeps where a call stands that waits for people; false when it has ended."""
    return await _move(tx, gateway_call_id, "waiting", step=step, state=state, result=None, end=None, now=now)


async def end(
    tx: Transaction, gateway_call_id: str, result: Mapping[str, Any], *, now: float, handed_at: float | None
) -> bool:
    """Keeps what came of a call; false when it had ended before.

    Args:
        handed_at: now, where somebody waits for it who hands it out at once.
    """
    ended: dict[str, Any] = {"step": "", "state": None, "result": result, "end": now, "handed": handed_at}
    return await _move(tx, gateway_call_id, "ended", **ended, now=now)


async def cancel(tx: Transaction, gateway_call_id: str, result: Mapping[str, Any], *, now: float) -> bool:
    """Keeps that the caller has taken a call back, which is all that they are told of it; where it stood stays, for
    whoever ends it. False when it had ended before."""
    return await tx.one(_CANCEL, {"call": gateway_call_id, "to_result": result, "now": now}) is not None


async def _move(
    tx: Transaction,
    gateway_call_id: str,
    status: CallStatus,
    *,
    step: str,
    state: Mapping[str, Any] | None,
    result: Mapping[str, Any] | None,
    end: float | None,
    now: float,
    handed: float | None = None,
) -> bool:
    values = {"call": gateway_call_id, "to_status": status, "to_step": step, "to_state": state, "to_result": result}
    is_error = None if result is None else bool(result.get("is_error", True))
    return await tx.one(_MOVE, {**values, "end": end, "is_error": is_error, "handed": handed, "now": now}) is not None


async def hand_out(tx: Transaction, gateway_call_id: str, at: float | None) -> None:
    """Notes that the result is on its way to a client, or (`None`) to none any more; of one that was delivered this
    changes nothing."""
    await tx.run(_HAND_OUT, {"call": gateway_call_id, "at": at})


async def delivered(tx: Transaction, gateway_call_id: str, now: float) -> None:
    """The result has reached the caller. Of a call that has not ended this changes nothing."""
    await tx.run(_DELIVERED, {"call": gateway_call_id, "now": now})


async def count_under_way(tx: Transaction, person_ids: Collection[str], now: float) -> int:
    """How many calls these person ids have under way. One of which nothing has changed for `COUNTED_SECONDS` counts no
    more: nobody may ever answer what it waits for."""
    query, listed = _UNDER_WAY_OF.of(person_ids)
    row = await tx.one(query, {**(listed or {}), "since": now - COUNTED_SECONDS})
    return int(row.n) if row is not None else 0


async def tasks_of(tx: Transaction, person_ids: Collection[str], client: str) -> Sequence[GatewayCallRow]:
    """The calls of these person ids through a program that were asked for as tasks, the newest first; without their
    states and results, each of which may be megabytes."""
    query = sa.select(*_without("state", "result")).where(
        gateway_calls.c.person_id.in_(person_ids),
        gateway_calls.c.client == client,
        gateway_calls.c.task_seconds.is_not(None),
    )
    return [_row(row) for row in await tx.all(query.order_by(gateway_calls.c.begun_at.desc()).limit(MOST_LISTED))]


async def changed_at(tx: Transaction, gateway_call_ids: Collection[str]) -> Mapping[str, float]:
    """When each of these calls changed last; without those of which nothing is known."""
    query = sa.select(gateway_calls.c.gateway_call_id, gateway_calls.c.changed_at)
    rows = await tx.all(query.where(gateway_calls.c.gateway_call_id.in_(gateway_call_ids)))
    return {row.gateway_call_id: row.changed_at for row in rows}


async def drop_old(tx: Transaction, now: float) -> Sequence[str]:
    """Drops calls whose result was delivered long ago, or was never fetched; their ids, `MOST_DROPPED` at most."""
    old = sa.select(gateway_calls.c.gateway_call_id).where(gateway_calls.c.forgotten_at < now).limit(MOST_DROPPED)
    ids = [row.gateway_call_id for row in await tx.all(old)]
    if ids:
        await tx.run(sa.delete(gateway_calls).where(gateway_calls.c.gateway_call_id.in_(ids)))
    return ids
