"""Rows of `agent_choices`: which agent somebody has picked where."""

from __future__ import annotations

import sqlalchemy as sa

from bot.records.database import Transaction, upsert
from bot.records.statements import Prepared
from bot.records.tables import agent_choices

_HERE = (agent_choices.c.person_id == sa.bindparam("person"), agent_choices.c.channel == sa.bindparam("where"))
_PICKED = Prepared(sa.select(agent_choices.c.agent).where(*_HERE))
_FORGET = Prepared(sa.delete(agent_choices).where(*_HERE))


async def picked(tx: Transaction, person_id: str, channel: str) -> str | None:
    """Name of the agent that somebody has picked in a channel (empty: in their direct chat); none: they have not."""
    row = await tx.one(_PICKED, {"person": person_id, "where": channel})
    return None if row is None else str(row.agent)


async def pick(tx: Transaction, person_id: str, channel: str, agent: str, now: float) -> None:
    """Keep what somebody picks; what they picked there before is forgotten."""
    row = {"person_id": person_id, "channel": channel, "agent": agent, "chosen_at": now}
    await upsert(tx, agent_choices, row)


async def forget(tx: Transaction, person_id: str, channel: str) -> None:
    """They have picked none there."""
    await tx.run(_FORGET, {"person": person_id, "where": channel})
