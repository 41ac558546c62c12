"""What the agent needs from the rooms above it: tools to call, a ledger to write in, somebody to show progress to."""

from __future__ import annotations

from graph.ports.agent import Picked, Ports, Router
from graph.ports.asking import ApprovalPort, SignInPort, Spoken, Unfinished
from graph.ports.audit import Audit, NotMade, Unmade
from graph.ports.ledger import Beginning, Begun, CallRecord, Ledger, NotPermitted, Recorded, Skipped, Undecided
from graph.ports.live import Live, TaskState
from graph.ports.people import Budget, Directory, Grants
from graph.ports.tools import (
    AccountNeeded,
    BrokeOff,
    Caller,
    Failed,
    Given,
    NotSent,
    Prepared,
    Progress,
    QuestionPut,
    Ready,
    SignInNeeded,
    Succeeded,
    ToolOutcome,
    Tools,
    Unavailable,
)

__all__ = [
    "AccountNeeded",
    "ApprovalPort",
    "Audit",
    "Beginning",
    "Begun",
    "BrokeOff",
    "Budget",
    "CallRecord",
    "Caller",
    "Directory",
    "Failed",
    "Given",
    "Grants",
    "Ledger",
    "Live",
    "NotMade",
    "NotPermitted",
    "NotSent",
    "Picked",
    "Ports",
    "Prepared",
    "Progress",
    "QuestionPut",
    "Ready",
    "Recorded",
    "Router",
    "SignInNeeded",
    "SignInPort",
    "Skipped",
    "Spoken",
    "Succeeded",
    "TaskState",
    "ToolOutcome",
    "Tools",
    "Unavailable",
    "Undecided",
    "Unfinished",
    "Unmade",
]
