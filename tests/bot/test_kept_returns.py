"""What a server returned to another agent's call is kept with its outcome, in one transaction, and read back."""

from __future__ import annotations

from typing import Any

import pytest

from bot.audit.log import AuditLog
from bot.crypto import NewId
from bot.ledger import AttemptLedger
from bot.records import attempts
from graph.ports import Begun, CallRecord, Failed, Recorded, Succeeded
from policies.masking import Masker
from policies.model import Tool
from tests.bot.services_stage import THREAD, Stage

CALL = CallRecord(
    thread_id=THREAD,
    call_id="mcp:c1.0.0",
    requester="chat:ana",
    tool=Tool(server="s", name="make", input_schema={"type": "object"}),
    arguments={},
    digest="d" * 64,
    approval_round=None,
)
RETURNED: dict[str, Any] = {
    "content": [{"type": "text", "text": "fine € “x”"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
    "structuredContent": {"a": [1, None, 2.5]},
}


def ledger_of(stage: Stage, new_id: NewId) -> AttemptLedger:
    audit = AuditLog(stage.database, stage.clock, Masker())
    return AttemptLedger(stage.database, stage.outbox, stage.clock, new_id, audit)


@pytest.mark.parametrize("returned", [RETURNED, None])
@pytest.mark.parametrize("kind", [Succeeded, Failed])
async def test_whoever_comes_after_a_crash_finds_what_was_returned(
    stage: Stage, new_id: NewId, kind: Any, returned: Any
) -> None:
    ledger = ledger_of(stage, new_id)
    assert await ledger.begin(CALL) == Begun(1)
    outcome = kind("it says so", owner="chat:ana", returned=returned)
    await ledger.finish(CALL, 1, outcome)
    again = ledger_of(stage, new_id)
    assert await again.recall(CALL.call_id, repeatable=False) == Recorded(outcome)
    assert await again.begin(CALL) == Recorded(outcome)
    assert await again.close(CALL.call_id, repeatable=False) == Recorded(outcome)


async def test_it_is_dropped_when_it_has_been_delivered(stage: Stage, new_id: NewId) -> None:
    ledger = ledger_of(stage, new_id)
    await ledger.begin(CALL)
    await ledger.finish(CALL, 1, Succeeded("made", returned=RETURNED))
    async with stage.database.writing(THREAD) as tx:
        await attempts.drop_returned(tx, [CALL.call_id, "another"])
    assert await ledger.recall(CALL.call_id, repeatable=False) == Recorded(Succeeded("made"))
