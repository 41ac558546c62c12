"""Rows of `model_usage`: what turns have used of language models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from bot.records.database import Transaction, insert_for, reader
from bot.records.statements import Prepared
from bot.records.tables import model_usage
from graph.usage import ModelUse, Usage

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

AT_ONCE = 4
"""Models in one statement: a turn uses one, or two with `ROUTER_MODEL`."""
_COUNTS = ("calls", "input_tokens", "cached_tokens", "output_tokens", "seconds")
GroupedBy = Literal["person", "channel", "agent", "model", "day"]
"""What the usage of everybody is added up by."""


@dataclass(frozen=True, slots=True)
class UsageOf:
    """Whose the usage of a turn is."""

    turn: str
    """Key of its delivery; what gave no answer in it has a row of its own, `lost:` before the key."""
    message: str
    """The same, but for a task of a plan the key of the message that the plan was made for."""
    agent: str
    thread_id: str
    person_id: str
    channel: str
    """Empty: in a direct chat."""
    day: str
    """On which it was first counted, `2026-11-21`, UTC."""
    at: float
    """When that was, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Usage of one model, added up."""

    key: str
    """What it was added up by: a person, a channel, an agent, a model or a day."""
    model: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float


def together(one: UsageSum, other: UsageSum) -> UsageSum:
    """Both added up, under the key of the first."""
    return UsageSum(
        key=one.key,
        model=one.model,
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        seconds=one.seconds + other.seconds,
    )


_sum = reader(UsageSum, **dict.fromkeys(("calls", "input_tokens", "cached_tokens", "output_tokens"), int))


async def keep(tx: Transaction, of: UsageOf, usage: Usage) -> None:
    """Keep what a turn has used so far; what was kept of it before is replaced. The day stays the first one."""
    listed = list(usage.items())
    for start in range(0, len(listed), AT_ONCE):
        some = listed[start : start + AT_ONCE]
        await tx.run(_keep(len(some)), _values(of, some))


async def add_lost(tx: Transaction, of: UsageOf, model: str, use: ModelUse) -> None:
    """Add what went into tries of a turn that gave no answer, in a row beside its own, which is replaced."""
    await tx.run(_ADD, _values(replace(of, turn=f"lost:{of.turn}"), [(model, use)]))


def _values(of: UsageOf, some: Sequence[tuple[str, Mapping[str, object]]]) -> dict[str, Any]:
    values: dict[str, Any] = {f"given_{name}": value for name, value in asdict(of).items()}
    for number, (model, use) in enumerate(some):
        values |= {f"model_{number}": model, **{f"{name}_{number}": use[name] for name in _COUNTS}}
    return values


@cache
def _keep(models: int) -> Prepared:
    def statement(dialect: str) -> sa.Executable:
        insert = _insert(dialect, models)
        replaced = {name: insert.excluded[name] for name in _COUNTS}
        return insert.on_conflict_do_update(index_elements=list(model_usage.primary_key), set_=replaced)

    return Prepared(statement)


def _add(dialect: str) -> sa.Executable:
    insert = _insert(dialect, 1)
    together = {name: model_usage.c[name] + insert.excluded[name] for name in _COUNTS}
    return insert.on_conflict_do_update(index_elements=list(model_usage.primary_key), set_=together)


_ADD = Prepared(_add)


def _insert(dialect: str, models: int) -> sqlite.Insert | postgresql.Insert:
    rows = [
        {
            column.name: sa.bindparam(
                f"{column.name}_{number}" if column.name in {"model", *_COUNTS} else f"given_{column.name}",
                type_=column.type,
            )
            for column in model_usage.c
        }
        for number in range(models)
    ]
    return insert_for(dialect, model_usage).values(rows)


def _sums(key: sa.ColumnElement[str]) -> sa.Select[Any]:
    return (
        sa.select(
            key.label("key"),
            model_usage.c.model,
            *(sa.func.sum(model_usage.c[name]).label(name) for name in _COUNTS),
        )
        .group_by(key, model_usage.c.model)
        .order_by(key, model_usage.c.model)
    )


_OF_AGENTS = Prepared(
    _sums(model_usage.c.agent).where(
        (model_usage.c.message == sa.bindparam("message"))
        | model_usage.c.turn.in_([sa.bindparam("message"), sa.literal("lost:").concat(sa.bindparam("message"))])
    )
)
_OF_MESSAGE = Prepared(_sums(model_usage.c.person_id).where(model_usage.c.message == sa.bindparam("message")))


async def of_message(tx: Transaction, message: str) -> Sequence[UsageSum]:
    """What the turn that a message began has used, with the tasks of its plans, by person (there is one) and model."""
    return [_sum(row) for row in await tx.all(_OF_MESSAGE, {"message": message})]


async def of_agents(tx: Transaction, message: str) -> Sequence[UsageSum]:
    """The same, by agent and model; where the message began a task, what that has used."""
    return [_sum(row) for row in await tx.all(_OF_AGENTS, {"message": message})]


async def of_people(tx: Transaction, person_ids: Collection[str], since: str) -> Sequence[UsageSum]:
    """What these used, by day and model, from a day on."""
    query = _sums(model_usage.c.day).where(model_usage.c.person_id.in_(list(person_ids)), model_usage.c.day >= since)
    return [_sum(row) for row in await tx.all(query)]


_NEXT_DAY = Prepared(
    sa.select(sa.func.min(model_usage.c.day)).where(
        model_usage.c.day.between(sa.bindparam("since"), sa.bindparam("until"))
    )
)


async def next_day(tx: Transaction, since: str, until: str) -> str | None:
    """The first day on which anything was used, from one day to another, both included; `None`: there is none."""
    row = await tx.one(_NEXT_DAY, {"since": since, "until": until})
    return row[0] if row is not None else None


async def of_day(tx: Transaction, by: GroupedBy, day: str) -> Sequence[UsageSum]:
    """What was used on a day, by model. A day with 10,000 turns takes some 50 ms."""
    return [_sum(row) for row in await tx.all(_sums(_key(by)).where(model_usage.c.day == day))]


def _key(by: GroupedBy) -> sa.ColumnElement[str]:
    return model_usage.c["person_id" if by == "person" else by]
