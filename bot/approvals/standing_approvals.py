"""Standing approvals: permission, given with an approval, that the same call of that person runs without asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.crypto import NewId
from bot.domain import Clock
from bot.records import approvals
from bot.records.approvals import ApprovalRow, GrantRow
from bot.records.database import Database, Transaction
from policies.approvers import DURATIONS, StandingApproval, grant_offered
from translations import gettext as _


class StandingApprovals:
    """Gives standing approvals, and finds them. Whether one still counts is judged by the policy, at the call.

    Fills `graph.ports.Grants`.
    """

    def __init__(self, database: Database, clock: Clock, new_id: NewId) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id

    async def give(
        self,
        tx: Transaction,
        row: ApprovalRow,
        person_id: str,
        seconds: float,
        *,
        arguments: Mapping[str, Any],
        digest: str,
    ) -> None:
        """Lets whoever approves this request the same call, through the same program, without being asked.

        Args:
            row: the approval with which it is given.
            seconds: for how long, from now.
            arguments: of the call as approved; `digest` is the call's.
        """
        now, asked = self._clock(), row.asked
        kept = GrantRow(
            grant_id=self._new_id(),
            person_id=person_id,
            approval_id=row.approval_id,
            server=asked.server,
            tool=asked.tool,
            arguments=arguments,
            digest=digest,
            given_at=now,
            until=now + seconds,
            client=asked.client or None,
            title=asked.title,
            presentation=asked.presentation.for_later().model_dump(mode="json"),
        )
        await approvals.add_grant(tx, kept)

    async def grants_of(self, person_id: str) -> Sequence[StandingApproval]:
        """Returns what somebody allows themselves now, for `policies.approvers.under_grants`."""
        async with self._database.reading() as tx:
            found = await approvals.grants_of(tx, person_id, self._clock())
        return [
            StandingApproval(row.person_id, row.server, row.tool, row.digest, row.until, risks, row.client or "")
            for row, risks in found
        ]


def is_offered(row: ApprovalRow) -> bool:
    """Returns whether whoever approves may tick “always allow”."""
    return grant_offered(row.asked.ask, row.asked.risk)


def duration_in_words(seconds: float) -> str:
    """Returns one of the durations for people; seconds where it is none of them."""
    return {
        "1 h": _("1 hour"),
        "8 h": _("8 hours"),
        "7 days": _("7 days"),
    }.get(name_of(seconds) or "", _("{count} seconds").format(count=round(seconds)))


def name_of(seconds: float) -> str | None:
    """Returns a duration in seconds as it is offered, such as “8 h”; `None` when it is not."""
    return next((name for name, length in DURATIONS.items() if length == seconds), None)
