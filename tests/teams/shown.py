"""What the tests of rendering in Teams show: posts, and one plain view of each kind."""

from __future__ import annotations

from typing import Any

from adapters.teams.ids import TeamsLocation, place_of
from bot.domain import ApprovalView, ClarificationView, ConnectionView, Content, OutcomeView, Post, SignInView
from graph.interrupts import FieldType, FormField

NOW = 1_795_255_200.0
"""2026-11-21, 10:00 UTC."""
TENANT = "aaaaaaaa-0000-4000-8000-000000000001"
ANA_ID = f"teams:{TENANT}:aaaaaaaa-0000-4000-8000-00000000000a"
THREAD = TeamsLocation(
    TENANT, "19:channel@thread.tacv2;messageid=1700000000000", "channel", "https://smba.example/teams/"
)
PLACE = place_of(THREAD)


def a_post(content: Content, post_id: str = "said:m1") -> Post:
    """A post in the thread."""
    return Post(post_id, PLACE.key, PLACE, 1, NOW, content)


def an_approval(approval_id: str = "call-1.1", **changes: Any) -> ApprovalView:
    """An approval that waits."""
    values: dict[str, Any] = {
        "approval_id": approval_id,
        "status": "pending",
        "server": "calendar",
        "tool": "create_event",
        "title": "Create event",
        "arguments": {
            "name": "Team Meeting",
            "start": "2026-11-21T10:00:00+01:00",
            "duration": 60,
            "calendar": "primary",
        },
        "asked_arguments": None,
        "risk": ("writes",),
        "requester": "Ana",
        "requester_ids": (ANA_ID,),
        "may_decide": "Ana",
        "approvers": ("requester",),
        "rule": "writes need the requester",
        "quorum": 1,
        "votes": (),
        "asked_at": NOW,
        "expires_at": NOW + 86_400,
        "reason_required": False,
        "editable": True,
    }
    return ApprovalView(**(values | changes))


def a_question(**changes: Any) -> ClarificationView:
    """A question that is open."""
    fields = (
        FormField(name="size", label="Size", type=FieldType.CHOICE, options=("small", "large")),
        FormField(name="when", label="When", type=FieldType.DATE_TIME, required=False),
    )
    values: dict[str, Any] = {
        "clarification_id": "q1",
        "status": "open",
        "question": "Which room?",
        "context": "Two rooms are free.",
        "fields": fields,
        "requester": "Ana",
        "requester_id": ANA_ID,
    }
    return ClarificationView(**(values | changes))


def a_sign_in(**changes: Any) -> SignInView:
    """A sign-in that is open."""
    values: dict[str, Any] = {
        "sign_in_id": "s1",
        "status": "open",
        "server": "mail",
        "host": "accounts.example.com",
        "message": "Let Countersign read your mail.",
        "owner": "Ana",
        "owner_id": ANA_ID,
    }
    return SignInView(**(values | changes))


def an_account(**changes: Any) -> ConnectionView:
    """An account that is connected."""
    values: dict[str, Any] = {
        "connection_id": "c1",
        "service": "GitHub",
        "account": "ana-alvarez",
        "scopes": ("repo", "read:user"),
        "since": NOW - 86_400,
        "used_at": NOW - 60,
    }
    return ConnectionView(**(values | changes))


def an_outcome(**changes: Any) -> OutcomeView:
    """An attempt whose outcome is unknown."""
    values: dict[str, Any] = {
        "outcome_id": "o1",
        "status": "open",
        "server": "calendar",
        "tool": "create_event",
        "title": "Create event",
        "arguments": {"name": "Team Meeting"},
        "requester": "Ana",
        "requester_id": ANA_ID,
        "known": "calendar gave no answer (HTTP 422): whether it did it is not known. It said: half done",
    }
    return OutcomeView(**(values | changes))
