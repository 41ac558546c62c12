"""The timers of an approval: rows of the inbox that are due later, so that they outlive every restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bot.records.deliveries import Delivery
from policies.model import Ask

Bell = Literal["remind", "escalate", "expire"]


def timers_of(approval_id: str, thread_id: str, ask: Ask, now: float) -> Sequence[Delivery]:
    """What is to happen when nobody decides. What would come after the end is left out."""
    after: dict[Bell, float | None] = {
        "remind": ask.remind_after,
        "escalate": ask.escalate_after if ask.escalate_to else None,
        "expire": ask.expires_in,
    }
    end = float("inf") if ask.expires_in is None else ask.expires_in
    return [
        Delivery(f"{bell}:{approval_id}", thread_id, "timer", {"approval": approval_id}, False, now, now + seconds)
        for bell, seconds in after.items()
        if seconds is not None and (seconds < end or bell == "expire")
    ]


def bell_of(timer: Delivery) -> Bell:
    """Which of them it is. Raises `ValueError` when it is none."""
    match timer.key.partition(":")[0]:
        case ("remind" | "escalate" | "expire") as bell:
            return bell
        case other:
            raise ValueError(f"unknown kind of timer: {other}")
