"""Ranges of keys, in the order of their bytes.

Ids of calls begin with the key of the message that began their turn, so what belongs to a turn is a range of an index.
SQLite compares texts by their bytes, PostgreSQL by the language of the database: in `en_US.UTF-8`, which most servers
are made with, "a.0" does not stand between "a." and "a/", and such a range is empty.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from bot.task_threads import TASK_MARK

INDEXES = {
    "ix_attempts_call_id_bytes": 'attempts (call_id COLLATE "C")',
    "ix_approvals_call_id_bytes": 'approvals (call_id COLLATE "C")',
    "ix_clarifications_call_id_bytes": 'clarifications (call_id COLLATE "C")',
    "ix_sign_ins_call_id_bytes": 'sign_ins (call_id COLLATE "C")',
    "ix_audit_key_bytes": 'audit (key COLLATE "C")',
    "ix_posts_key_bytes": 'posts (key COLLATE "C")',
    "ix_people_person_id_bytes": 'people (person_id COLLATE "C")',
}
"""By which PostgreSQL finds such a range. SQLite has no use for them: its other indexes are in this order."""

Bound = str | sa.BindParameter[Any]


class _InBytes(sa.sql.functions.FunctionElement[str]):
    """A column that is compared by the bytes of its values."""

    inherit_cache = True
    type = sa.Text()


@compiles(_InBytes)
def _as_it_is(element: _InBytes, compiler: SQLCompiler, **how: Any) -> str:
    (column,) = element.clauses
    return compiler.process(column, **how)


@compiles(_InBytes, "postgresql")
def _collated(element: _InBytes, compiler: SQLCompiler, **how: Any) -> str:
    return f'({_as_it_is(element, compiler, **how)} COLLATE "C")'


def from_to(column: sa.ColumnElement[str], first: Bound, last: Bound) -> sa.ColumnElement[bool]:
    """Returns the condition that a key is none of those before `first` and none of those after `last`."""
    return _InBytes(column).between(first, last)


def of_turn(column: sa.ColumnElement[str], turn: str) -> sa.ColumnElement[bool]:
    """Returns the condition that an id begins with the key of the delivery of a turn, as ids of its calls do
    (`graph.calls.own_ids`)."""
    return from_to(column, *range_of_turn(turn))


def range_of_turn(turn: str) -> tuple[str, str]:
    """Returns between which two keys such ids are."""
    return f"{turn}.", f"{turn}/"  # "/" follows "."


def in_conversation(thread: sa.ColumnElement[str], thread_id: str) -> sa.ColumnElement[bool]:
    """Returns the condition that a thread is this one, or that of a task of its plans."""
    return sa.or_(thread == thread_id, thread.startswith(f"{thread_id}{TASK_MARK}", autoescape=True))
