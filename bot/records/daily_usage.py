"""Rows of `usage`: what budgets of a day are judged by."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

import sqlalchemy as sa

from bot.records.database import Transaction, insert_for
from bot.records.statements import Prepared
from bot.records.tables import usage

_BILLION = 1_000_000_000


@dataclass(frozen=True, slots=True)
class UsedInDay:
    """What was used of the language model."""

    tokens: int
    cost: Decimal
    """By the prices at that time."""


def _total(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(column), 0)


_OF_DAY = sa.select(_total(usage.c.tokens), _total(usage.c.cost_billionths)).where(
    usage.c.person_id.in_(sa.bindparam("names", expanding=True)), usage.c.day == sa.bindparam("date")
)


def _add(dialect: str) -> sa.Executable:
    insert = insert_for(dialect, usage)
    together = {name: usage.c[name] + insert.excluded[name] for name in ("tokens", "cost_billionths")}
    return insert.on_conflict_do_update(index_elements=list(usage.primary_key), set_=together)


_ADD = Prepared(_add)


async def of_day(tx: Transaction, names: Collection[str], day: str) -> UsedInDay:
    """What these used together on a day.

    Args:
        names: ids of people, or what stands for a channel.
        day: `2026-11-21`, UTC.
    """
    row = await tx.one(_OF_DAY, {"names": list(names), "date": day})
    return UsedInDay(int(row[0]), Decimal(int(row[1])) / _BILLION) if row else UsedInDay(0, Decimal(0))


async def add(tx: Transaction, name: str, day: str, tokens: int, cost: Decimal) -> None:
    """Count what was used on a day. `name`, `day`: as in `of_day`; a cost is kept to a billionth, rounded up."""
    billionths = int((cost * _BILLION).to_integral_value(ROUND_UP))
    await tx.run(_ADD, {"person_id": name, "day": day, "tokens": tokens, "cost_billionths": billionths})
