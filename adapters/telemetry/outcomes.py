"""What came of a tool call, in the words of metrics and traces."""

from __future__ import annotations

from graph.ports import (
    AccountNeeded,
    Failed,
    NotSent,
    OutcomeUnknown,
    QuestionPut,
    SignInNeeded,
    Succeeded,
    ToolOutcome,
)


def outcome_of(outcome: ToolOutcome | NotSent | None) -> str:
    """What came of a call, in a word or two; `None`: it was broken off."""
    match outcome:
        case Succeeded():
            return "done"
        case Failed():
            return "failed"
        case OutcomeUnknown():
            return "unknown"
        case QuestionPut():
            return "asks"
        case SignInNeeded() | AccountNeeded():
            return "sign-in needed"
        case NotSent():
            return "not sent"
        case None:
            return "broken off"
