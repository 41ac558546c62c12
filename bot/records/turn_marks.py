"""Whether a turn runs, and whether anything came of it: one statement each, for whoever looks again and again."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.deliveries import IS_AT_WORK
from bot.records.prefixes import from_to
from bot.records.statements import Prepared
from bot.records.tables import WAITING, approvals, attempts, audit, deliveries, posts

_BEGUN = ("started", "asking")
_message = deliveries.alias("message")
_thread: sa.BindParameter[Any] = sa.bindparam("thread")
_first: sa.BindParameter[Any] = sa.bindparam("first")
_last: sa.BindParameter[Any] = sa.bindparam("last")
_IS_HANDLED = sa.exists().where(_message.c.key == sa.bindparam("message"), _message.c.status != WAITING)
_RESTS = sa.and_(_IS_HANDLED, ~IS_AT_WORK)


def _count(table: sa.Table, key: sa.ColumnElement[str], *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    in_turn = from_to(key, _first, _last)
    return sa.select(sa.func.count()).select_from(table).where(in_turn, *where).scalar_subquery()


_AT_REST = Prepared(sa.select(_RESTS.label("rests")))
_MARKS = Prepared(
    sa.select(
        _RESTS.label("rests"),
        sa.select(sa.func.max(posts.c.seq)).where(posts.c.thread_id == _thread).scalar_subquery().label("post"),
        _count(attempts, attempts.c.call_id).label("begun"),
        _count(attempts, attempts.c.call_id, *(attempts.c.status != status for status in _BEGUN)).label("made"),
        _count(audit, audit.c.key).label("written"),
        _count(approvals, approvals.c.call_id).label("asked"),
        _count(approvals, approvals.c.call_id, approvals.c.settled_at.is_not(None)).label("settled"),
    )
)


async def rests(tx: Transaction, thread_id: str, message: str, now: float) -> bool:
    """Whether a message was handled, and nothing goes on in its thread or is about to."""
    row = await tx.one(_AT_REST, {"thread": thread_id, "message": message, "now": now})
    return row is not None and bool(row.rests)


async def marks(tx: Transaction, thread_id: str, message: str, turn: str, now: float) -> tuple[Any, ...]:
    """The same, and numbers of which one is another when something was said, asked, begun or settled in a turn, which
    is named by the key of its delivery."""
    # Ids of calls begin with it, and "/" follows "." in the order of their bytes.
    values = {"thread": thread_id, "message": message, "first": f"{turn}.", "last": f"{turn}/", "now": now}
    return tuple(await tx.one(_MARKS, values) or ())
