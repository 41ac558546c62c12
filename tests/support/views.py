"""What tests show to people: one plain example of each view. Each platform's tests say in whose name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.domain import (
    ApprovalView,
    ChangeView,
    ClarificationView,
    ConnectionView,
    OutcomeView,
    PlanTaskView,
    PlanView,
    Said,
    ServiceView,
    SignInView,
)
from graph.citations import Source
from graph.interrupts import FieldType, FormField

NOW = 1_795_255_200.0
"""2026-11-21, 10:00 UTC."""

CITING = Said(
    "Leave is 28 days [1], and **more** after ten years [3]; see [the plan](https://example.com/plan). `days[1]`",
    sources=(
        Source(1, "Handbook [2].pdf", 3, "Leave"),
        Source(3, "*<!channel> @everyone* <at>all</at> " + "x" * 180, None, "[1](https://evil.example) `"),
    ),
)
"""An answer that cites; the names are strangers'."""

EVENT_FIELDS = (
    FormField(name="name", label="Name"),
    FormField(name="start", label="Start", type=FieldType.DATE_TIME),
    FormField(name="duration", label="Duration", type=FieldType.INTEGER, help="In minutes."),
    FormField(name="calendar", label="Calendar", type=FieldType.CHOICE, options=("primary", "team")),
    FormField(name="description", label="Description", required=False, multiline=True),
    FormField(name="all_day", label="All day", type=FieldType.YES_NO, required=False),
    FormField(name="attendees", label="Attendees", type=FieldType.JSON, required=False),
)
"""The form for the arguments of `an_approval`."""


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
        "may_decide": "Ana",
        "approvers": ("requester",),
        "rule": "everything else asks the requester",
        "quorum": 1,
        "votes": (),
        "asked_at": NOW,
        "expires_at": NOW + 24 * 3600,
        "reason_required": False,
        "editable": True,
    }
    return ApprovalView(**(values | changes))


def a_question(clarification_id: str = "q1", *, requester_id: str, **changes: Any) -> ClarificationView:
    """A question that is open."""
    fields = (
        FormField(name="size", label="Size", type=FieldType.CHOICE, options=("small", "large")),
        FormField(name="when", label="When", type=FieldType.DATE_TIME, required=False),
    )
    values: dict[str, Any] = {
        "status": "open",
        "question": "Which room?",
        "context": "Two rooms are free.",
        "fields": fields,
        "requester": "Ana",
    }
    return ClarificationView(clarification_id, requester_id=requester_id, **(values | changes))


def a_sign_in(sign_in_id: str = "s1", *, owner_id: str, **changes: Any) -> SignInView:
    """A sign-in that is open."""
    values: dict[str, Any] = {
        "status": "open",
        "server": "mail",
        "host": "accounts.example.com",
        "message": "Let Countersign read your mail.",
        "owner": "Ana",
    }
    return SignInView(sign_in_id, owner_id=owner_id, **(values | changes))


def an_account(connection_id: str = "c1", **changes: Any) -> ConnectionView:
    """An account that works."""
    values: dict[str, Any] = {
        "service": "GitHub",
        "account": "ana-alvarez",
        "scopes": ("repo", "read:user"),
        "since": NOW - 86_400,
        "used_at": NOW - 60,
    }
    return ConnectionView(connection_id, **(values | changes))


def a_service(provider: str = "github", **changes: Any) -> ServiceView:
    """A service at which accounts can be connected."""
    return ServiceView(provider, **({"service": "GitHub", "scopes": ("repo", "read:user")} | changes))


def a_change(attempt_id: str = "attempt-1", *, requester_id: str, **changes: Any) -> ChangeView:
    """A change that was made without asking."""
    values: dict[str, Any] = {
        "server": "calendar",
        "tool": "create_event",
        "title": "Create event",
        "arguments": {"name": "Team Meeting"},
        "requester": "Ana",
        "result": "Done: id 7",
    }
    return ChangeView(attempt_id, requester_id=requester_id, **(values | changes))


def an_outcome(outcome_id: str = "o1", *, requester_id: str, **changes: Any) -> OutcomeView:
    """An attempt whose outcome is unknown."""
    values: dict[str, Any] = {
        "status": "open",
        "server": "calendar",
        "tool": "create_event",
        "title": "Create event",
        "arguments": {"name": "Team Meeting"},
        "requester": "Ana",
        "known": "calendar gave no answer (HTTP 422), so it’s unknown whether it was done. It said: half done",
    }
    return OutcomeView(outcome_id, requester_id=requester_id, **(values | changes))


def a_plan(plan_id: str = "m1.1.0", *, requester_id: str, **changes: Any) -> PlanView:
    """A plan of which two tasks are done, one waits for people, and one has not begun."""
    values: dict[str, Any] = {
        "plan_id": plan_id,
        "status": "open",
        "tasks": (
            PlanTaskView(
                "find",
                "bookkeeper",
                "List the open invoices.",
                "done",
                result="three: INV-7, INV-8, INV-9",
                began_at=NOW,
                ended_at=NOW + 4,
            ),
            PlanTaskView(
                "orders",
                "bookkeeper",
                "Look up the orders O-3, O-4 and O-5.",
                "done",
                began_at=NOW,
                ended_at=NOW + 9,
            ),
            PlanTaskView(
                "check",
                "bookkeeper",
                "Compare the invoices with the orders; flag what differs.",
                "waiting",
                ("find", "orders"),
                began_at=NOW + 9,
            ),
            PlanTaskView("mail", "writer", "Draft a mail about what differs.", "blocked", ("check",)),
        ),
        "requester": "Ana",
        "requester_id": requester_id,
    }
    return PlanView(**(values | changes))


def a_plan_that_failed(*, requester_id: str) -> PlanView:
    """A plan that has ended with a task that failed, and one that depends on it."""
    begun = a_plan(requester_id=requester_id)
    find, orders, check, mail = begun.tasks
    return replace(
        begun,
        status="ended",
        tasks=(
            find,
            orders,
            replace(check, status="failed", result="The model could not be reached.", ended_at=NOW + 20),
            replace(mail, status="not_run", result="It was not begun: check was not done."),
        ),
    )


def a_plan_that_was_stopped(*, requester_id: str) -> PlanView:
    """A plan that somebody has stopped in the middle."""
    begun = a_plan(requester_id=requester_id)
    find, orders, *rest = begun.tasks
    stopped = (replace(each, status="stopped", result="It was stopped before its end.") for each in rest)
    return replace(begun, status="superseded", tasks=(replace(find, status="stopped", result=""), orders, *stopped))
