"""What a service said to one person's own account stands on nobody else's card.

Rule 11: one person's data stays theirs, a failure no less than a result: "no access to ana's file Severance.docx" is
Ana's alone.
"""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bot.domain import ApprovalView
from bot.records import approvals, attempts, tables, threads
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost
from graph.ports import CallRecord
from tests.audit.calls import tool
from tests.bot.conftest import place
from tests.bot.rows import DIGEST, asked
from tests.bot.services_stage import ANA, THREAD, Stage
from tests.support.overviews import everywhere

SAID = "no access to Severance.docx of ana@private.example"


async def failed(stage: Stage, owner: str | None) -> None:
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
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock())
        request = asked("call", requesters=(ANA.person_id,))
        await approvals.add(tx, "a1", THREAD, request, now=stage.clock(), expires_at=None)
        await tx.run(sa.update(tables.approvals).values(status="approved", settled_at=stage.clock()))
        await attempts.add(tx, "t1", 1, record, approval_id="a1", judged=None, now=stage.clock())
        await attempts.end(tx, "call", 1, "failed", now=stage.clock(), text=SAID, owner=owner)
        await stage.outbox.say(tx, NewPost("approval:a1", THREAD, "approval", subject="a1"))


@pytest.mark.parametrize("owner", [ANA.person_id, None])
async def test_a_failure_with_a_personal_account_is_shown_without_what_was_said(
    stage: Stage, owner: str | None
) -> None:
    await failed(stage, owner)
    card = await stage.services.queries.approval("a1", "chat:")
    assert isinstance(card, ApprovalView)
    assert (card.result, card.result_tone) == (f"Failed: {SAID}" if owner is None else "Failed.", "error")
    given_out = (
        card,
        await stage.services.queries.overview(ANA, "chat:", everywhere),
        await stage.services.queries.shown("a1"),
        await stage.services.queries.thread(THREAD, ANA),
    )
    assert any(SAID in str(each) for each in given_out) is (owner is None)
