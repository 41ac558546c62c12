"""Rule 3: a call begins only under an approval of this very call: its server with its configuration, its tool with its
schema, and its arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.audit.log import AuditLog
from bot.ledger import AttemptLedger
from graph.ports import Begun, CallRecord, NotApproved
from policies.approvers import digest_of
from policies.masking import Masker
from policies.model import Tool
from tests.bot.routing import ANA, BEN, LAMP, MAKE, THREAD, Routing

MADE = {"what": "lamp"}


def ledger_of(routing: Routing) -> AttemptLedger:
    clock = routing.clock
    return AttemptLedger(
        routing.database, routing.outbox, clock, lambda: "a new id", AuditLog(routing.database, clock, Masker())
    )


def record_of(tool: Tool, arguments: dict[str, Any]) -> CallRecord:
    return CallRecord(THREAD, "m1.0.0", ANA.person_id, tool, arguments, digest_of(tool, arguments), approval_round=1)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (MAKE, {"what": "lamp "}),
        (MAKE, {**MADE, "size": 1}),
        (replace(MAKE, name="unmake"), MADE),
        (replace(MAKE, server="elsewhere"), MADE),
        (replace(MAKE, fingerprint="another configuration"), MADE),
        (replace(MAKE, input_schema={"type": "object"}), MADE),
    ],
    ids=[
        "another value",
        "one more argument",
        "another tool",
        "another server",
        "another configuration",
        "another schema",
    ],
)
async def test_an_approval_permits_the_call_that_was_approved_and_no_other(
    routing: Routing, tool: Tool, arguments: dict[str, Any]
) -> None:
    approval_id = await routing.ask()
    await routing.click(BEN, approval_id)
    ledger = ledger_of(routing)
    assert (await routing.row(approval_id)).approved_digest == LAMP
    assert await ledger.begin(record_of(tool, arguments)) == NotApproved()
    assert await ledger.begin(record_of(MAKE, MADE)) == Begun(1)
