"""Always allow: what people allow themselves for a while, given with an approval, listed, revoked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.clock import Clock
from bot.domain import AlreadySettled, ClickResult, GrantView, Settled, Unknown
from bot.ids import NewId
from bot.masking import PLAIN, redacted_aside
from bot.records import grants
from bot.records.approvals import ApprovalRow
from bot.records.database import Database, Transaction
from bot.records.grants import GrantRow
from policies.approvers import DURATIONS, Grant, grant_offered
from policies.redaction import Redactor

NO_GRANT = Unknown("This permission does not exist (any more).")


class GrantBook:
    """Gives, lists and ends grants. Whether one still counts is judged by the policy, at the call."""

    def __init__(self, database: Database, clock: Clock, new_id: NewId, *, redactor: Redactor = PLAIN) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._redactor = redactor

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
        """Whoever approves this may request the same call without being asked, for so many seconds."""
        now = self._clock()
        server, tool = row.asked.server, row.asked.tool
        until = now + seconds
        await grants.add(
            tx, GrantRow(self._new_id(), person_id, row.approval_id, server, tool, arguments, digest, now, until)
        )

    async def grants_of(self, person_id: str) -> Sequence[Grant]:
        """What somebody allows themselves now, for `policies.approvers.under_grants`."""
        return [
            Grant(row.person_id, row.server, row.tool, row.digest, row.until) for row in await self._rows(person_id)
        ]

    async def views(self, person_id: str) -> tuple[GrantView, ...]:
        """The same for people to see, the one that ends last first, its arguments masked as on the cards."""
        rows = await self._rows(person_id)
        views = (GrantView(row.grant_id, row.server, row.tool, row.arguments, row.until) for row in rows)
        return tuple([await redacted_aside(view, self._redactor) for view in views])

    async def revoke(self, grant_id: str, person_id: str) -> ClickResult:
        """End a grant. Somebody else's does not exist."""
        async with self._database.writing_urgently() as tx:
            if await grants.revoke(tx, grant_id, person_id, self._clock()):
                return Settled("Revoked: you will be asked again.")
            row = await grants.get(tx, grant_id)
        if row is None or row.person_id != person_id:
            return NO_GRANT
        return AlreadySettled("This permission has ended already.")

    async def _rows(self, person_id: str) -> Sequence[GrantRow]:
        async with self._database.reading() as tx:
            return await grants.of_person(tx, person_id, self._clock())


def is_offered(row: ApprovalRow) -> bool:
    """Whether whoever approves may tick “always allow”."""
    return grant_offered(row.asked.ask, row.asked.risk)


def name_of(seconds: float) -> str | None:
    """A duration as it is offered, such as “8 h”; `None`: it is not."""
    return next((name for name, length in DURATIONS.items() if length == seconds), None)
