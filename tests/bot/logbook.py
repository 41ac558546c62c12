"""Calls that ended in real records: their entries in the audit log, and what people said of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.audit.entries import LOOKED, CallEnd, VoteCast, entry_of, judgement, key_of, link
from bot.records import approvals, audit
from bot.records.database import Database
from bot.records.locks import AUDIT, UNLOCKED
from graph.interrupts import ApprovalAsked
from policies.approvers import digest_of
from policies.judging import Policy, judge_with_reasons
from policies.masking import Masker
from policies.model import Annotations, Ask, Call, Tool
from tests.bot.conftest import SetClock
from tests.policies.builders import WRITES, facts


@dataclass
class Logbook:
    """Writes them down, one a second."""

    database: Database
    clock: SetClock
    policy: Policy
    count: int = 0
    masker: Masker = field(default_factory=Masker)

    async def end(
        self,
        tool: str = "make",
        *,
        says: Annotations = WRITES,
        person: str = "web:ana",
        said: str = "",
        waited: float = 0.0,
        rejected_by: str = "",
        edited_by: str | None = None,
        attempt: int | None = 1,
        status: str = "done",
        call_id: str = "",
        **arguments: Any,
    ) -> str:
        """A call; its id. `said`: what became of its approval, where people were asked; `waited`: for how many
        seconds; `rejected_by`: who voted against it."""
        self.clock.move(1)
        self.count += 1
        name = call_id or f"m{self.count}.0.0"
        call = Call(Tool("workshop", tool, annotations=says, annotations_trusted=True), arguments)
        around = facts(requester=person, agent="default")
        verdict, reasons = judge_with_reasons(self.policy, call, around)
        approval_id = None
        if said:
            assert isinstance(verdict, Ask), verdict
            approval_id = f"a{self.count}"
            await self._approve(approval_id, name, call, verdict, said, waited, edited_by, person=person)
        votes = [VoteCast(1, rejected_by, rejected_by, "reject", "", "No.", self.clock())] if rejected_by else []
        made = said in ("", "approved") and verdict.verdict != "deny"
        end = CallEnd(
            at=self.clock(),
            thread_id="web:t1",
            call_id=name,
            requester=person,
            server="workshop",
            tool=tool,
            arguments=arguments,
            status=status if made else said or "denied",
            attempt=attempt if made else None,
            judged=judgement(call, around, verdict, reasons),
            approval_id=approval_id,
            votes=votes,
        )
        await self._write(end)
        return name

    async def look(self, call_id: str) -> None:
        """Somebody looked at what is hidden in a call: an entry that is of no end."""
        settled = {"choice": "looked", "by": "Ana"}
        await self._write(
            CallEnd(self.clock(), "web:t1", call_id, "web:ana", "workshop", "make", {}, LOOKED, settled=settled)
        )

    async def _write(self, end: CallEnd) -> None:
        at = f"{end.at}"
        key = key_of(end.call_id, end.attempt, end.status, end.settled, at)
        async with self.database.writing(UNLOCKED) as tx:
            await tx.lock(AUDIT)
            before, _ = await audit.newest(tx, key)
            await audit.add(tx, link(before, key, entry_of(end, self.masker)), at=end.at)

    async def _approve(
        self,
        approval_id: str,
        call_id: str,
        call: Call,
        ask: Ask,
        said: str,
        waited: float,
        edited_by: str | None,
        *,
        person: str,
    ) -> None:
        asked = ApprovalAsked(
            call_id=call_id,
            round=1,
            server=call.tool.server,
            tool=call.tool.name,
            title="",
            arguments=dict(call.arguments),
            digest=digest_of(call.tool, call.arguments),
            risk=(),
            ask=ask,
            requesters=(person,),
            quote="",
        )
        now = self.clock()
        async with self.database.writing("web:t1") as tx:
            await approvals.add(tx, approval_id, "web:t1", asked, now=now - waited, expires_at=None)
            edited = {"edited_by": edited_by, "approved_arguments": {"n": 2}} if edited_by else {}
            await approvals.settle(tx, approval_id, said, key=f"k{approval_id}", now=now, **edited)
