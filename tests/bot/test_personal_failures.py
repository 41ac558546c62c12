"""What a service said to one person's own account stands on nobody else's card.

Rule 11: one person's data stays theirs, a failure no less than a result: "no access to ana's file Severance.docx" is
Ana's alone.
"""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bot.domain import ApprovalView
from bot.records import approvals, attempts, tables, threads
from bot.records.posts import NewPost
from graph.ports import CallRecord
from tests.audit.calls import tool
from tests.bot.conftest import place
from tests.bot.counter import ANA, THREAD, Counter
from tests.bot.rows import DIGEST, asked
from tests.support.overviews import everywhere

SAID = "no access to Severance.docx of ana@private.example"


async def failed(counter: Counter, owner: str | None) -> None:
    """An approved call of Ana's that failed."""
    record = CallRecord(
        thread_id=THREAD,
        call_id="call",
        requester=ANA.person_id,
        tool=tool(),
        arguments={"what": "lamp"},
        digest=DIGEST,
        approval_round=None,
    )
    async with counter.database.writing() as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", counter.clock())
        request = asked("call", requesters=(ANA.person_id,))
        await approvals.add(tx, "a1", THREAD, request, now=counter.clock(), expires_at=None)
        await tx.run(sa.update(tables.approvals).values(status="approved", settled_at=counter.clock()))
        await attempts.add(tx, "t1", 1, record, approval_id="a1", judged=None, now=counter.clock())
        await attempts.end(tx, "call", 1, "failed", now=counter.clock(), text=SAID, owner=owner)
        await counter.outbox.say(tx, NewPost("approval:a1", THREAD, "approval", subject="a1"))


@pytest.mark.parametrize("owner", [ANA.person_id, None])
async def test_a_failure_with_a_personal_account_is_shown_without_what_was_said(
    counter: Counter, owner: str | None
) -> None:
    await failed(counter, owner)
    card = await counter.services.queries.approval("a1", "chat:")
    assert isinstance(card, ApprovalView)
    assert (card.result, card.result_tone) == (f"Failed: {SAID}" if owner is None else "Failed.", "error")
    given_out = (
        card,
        await counter.services.queries.overview(ANA, "chat:", everywhere),
        await counter.services.queries.shown("a1"),
        await counter.services.queries.thread(THREAD, ANA),
    )
    assert any(SAID in str(each) for each in given_out) is (owner is None)
