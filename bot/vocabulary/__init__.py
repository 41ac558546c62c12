"""The nouns of the house as frozen dataclasses: what comes in, what is shown, what is answered to a click.

Times are seconds since the epoch, UTC, as floats; platforms show them in the reader's own time zone.
"""

from __future__ import annotations

from bot.vocabulary.answers import AlreadySettled, ClickResult, Invalid, Refused, Settled, Unknown
from bot.vocabulary.deliveries import (
    Arrival,
    CodeEntry,
    Decision,
    Dismissal,
    Feedback,
    FormAnswer,
    Handover,
    Introduction,
    Message,
    OutcomeChoice,
    Quote,
    SignInReply,
    Unwelcome,
)
from bot.vocabulary.places import AccountFacts, Person, Place
from bot.vocabulary.reading import ConnectionView, GrantView, MessageView, Overview, Shown, ThreadSummary, ThreadView
from bot.vocabulary.showing import (
    ApprovalView,
    ClarificationView,
    Content,
    Form,
    Hidden,
    Notice,
    OutcomeView,
    Post,
    Said,
    SignInView,
    Vote,
)

__all__ = [
    "AccountFacts",
    "AlreadySettled",
    "ApprovalView",
    "Arrival",
    "ClarificationView",
    "ClickResult",
    "CodeEntry",
    "ConnectionView",
    "Content",
    "Decision",
    "Dismissal",
    "Feedback",
    "Form",
    "FormAnswer",
    "GrantView",
    "Handover",
    "Hidden",
    "Introduction",
    "Invalid",
    "Message",
    "MessageView",
    "Notice",
    "OutcomeChoice",
    "OutcomeView",
    "Overview",
    "Person",
    "Place",
    "Post",
    "Quote",
    "Refused",
    "Said",
    "Settled",
    "Shown",
    "SignInReply",
    "SignInView",
    "ThreadSummary",
    "ThreadView",
    "Unknown",
    "Unwelcome",
    "Vote",
]
