"""Open questions as rows, made short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.records.approvals import ApprovalRow
from bot.records.attempts import AttemptRow
from bot.records.clarifications import ClarificationRow
from bot.records.sign_ins import SignInRow
from graph.interrupts import ApprovalAsked
from policies.model import Ask, Risk

DIGEST = "d" * 64


def asked(
    call_id: str = "m1.0.0",
    *,
    requesters: tuple[str, ...] = ("chat:ana",),
    digest: str = DIGEST,
    what: str = "lamp",
    client: str = "",
    agent: str = "",
    **ask: Any,
) -> ApprovalAsked:
    """A call that waits for people; `ask` as in `Ask`."""
    return ApprovalAsked(
        call_id=call_id,
        round=1,
        server="workshop",
        tool="make",
        title="Totally harmless",
        arguments={"what": what},
        digest=digest,
        risk=(Risk.WRITES,),
        ask=Ask(rule="a rule", **ask),
        requesters=requesters,
        client=client,
        agent=agent,
    )


def approval(*, requesters: tuple[str, ...] = ("chat:ana",), **ask: Any) -> ApprovalRow:
    """A pending approval."""
    return ApprovalRow(
        approval_id="a1",
        thread_id="chat:T1",
        asked=asked(requesters=requesters, **ask),
        status="pending",
        approved_arguments=None,
        approved_digest=None,
        edited_by=None,
        reason="",
        settled_key=None,
        asked_at=0.0,
        expires_at=None,
        settled_at=None,
    )


def clarification(requester: str = "chat:ana") -> ClarificationRow:
    """An open question of the model."""
    return ClarificationRow("c1", "m1.0.0", "chat:T1", "Which lamp?", "", (), requester, "open", None, None)


def question_of_tool(clarification_id: str, asked_at: float) -> ClarificationRow:
    """An open question that a tool has put to Ana."""
    row = replace(clarification(), clarification_id=clarification_id, asked_at=asked_at)
    return replace(row, number=1, server="workshop", schema={"type": "object", "properties": {}})


def sign_in(person: str = "chat:ana") -> SignInRow:
    """An open sign-in."""
    return SignInRow("s1", "m1.0.0", "chat:T1", person, "workshop", "example.com", "", "sealed", "open", 0.0, None)


def attempt(requester: str = "chat:ana") -> AttemptRow:
    """A call that broke off."""
    row: dict[str, Any] = {"text": "", "owner": None, "choice": None, "choice_by": None, "settled_key": None}
    row |= {"attempt_id": "t1", "call_id": "m1.0.0", "number": 1, "thread_id": "chat:T1", "requester": requester}
    row |= {"server": "workshop", "tool": "make", "title": "Totally harmless", "arguments": {}, "digest": DIGEST}
    return AttemptRow(**row, status="unknown")
