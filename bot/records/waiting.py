"""Everything that waits for people in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.records import approvals, attempts, clarifications, sign_ins
from bot.records.approvals import ApprovalRow
from bot.records.attempts import AttemptRow
from bot.records.clarifications import ClarificationRow
from bot.records.database import Transaction
from bot.records.sign_ins import SignInRow


@dataclass(frozen=True, slots=True)
class Waiting:
    """The open questions of a thread; false when there are none."""

    approvals: Sequence[ApprovalRow] = ()
    clarifications: Sequence[ClarificationRow] = ()
    sign_ins: Sequence[SignInRow] = ()
    outcomes: Sequence[AttemptRow] = ()

    def __bool__(self) -> bool:
        return bool(self.approvals or self.clarifications or self.sign_ins or self.outcomes)


async def in_thread(tx: Transaction, thread_id: str) -> Waiting:
    """What is open in a thread."""
    return Waiting(
        approvals=await approvals.pending_in(tx, thread_id),
        clarifications=await clarifications.open_in(tx, thread_id),
        sign_ins=await sign_ins.open_in(tx, thread_id),
        outcomes=await attempts.undecided_in(tx, thread_id),
    )
