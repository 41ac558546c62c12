"""The nouns of the house as frozen dataclasses: what comes in, what is shown, what is answered to a click.

Times are seconds since the epoch, UTC, as floats; platforms show them in the reader's own time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graph.fields import FormField

# ------------------------------------------------------------------------------------------------ people and places


@dataclass(frozen=True, slots=True)
class Person:
    """A user on a platform."""

    person_id: str
    """`slack:{team}:{user}`, `teams:{tenant}:{aad object id}`, `web:{name}`."""
    name: str
    time_zone: str = "UTC"
    """IANA name."""
    locale: str = "en"


@dataclass(frozen=True, slots=True)
class Place:
    """Where on a platform a conversation is held."""

    platform: str
    key: str
    """Names the place: `slack:{team}:{channel}:{thread_ts}`, `teams:{tenant}:{conversation}`, `web:{id}`."""
    address: Mapping[str, Any] = field(default_factory=dict)
    """What the platform's adapter needs to post there; opaque to everything else."""
    channel: str = ""
    """The channel the place belongs to, for policies; empty in a direct chat."""
    direct: bool = False
    """A 1:1 chat with the bot: everything said there is said to the bot."""
    has_threads: bool = True
    """False where conversations are not divided into threads, so that they are divided into sessions."""


# ------------------------------------------------------------------------------------------------ deliveries


@dataclass(frozen=True, slots=True)
class Message:
    """Something a person wrote."""

    key: str
    """The message's own identity on its platform; the same message delivered twice has the same key."""
    place: Place
    author: Person
    text: str
    at: float
    addressed: bool = True
    """Whether it speaks to the bot (mention, direct chat, web page) rather than to others in the thread."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A click that decides one or several approvals."""

    key: str
    """`{message}:{action}:{user}`: the same click delivered twice has the same key."""
    person: Person
    approval_ids: tuple[str, ...]
    verb: Literal["approve", "reject"]
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    """Form values, by field name, when the person edited before approving."""


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """A submitted clarification form."""

    key: str
    person: Person
    clarification_id: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OutcomeChoice:
    """A click that says what came of an attempt that broke off."""

    key: str
    person: Person
    outcome_id: str
    choice: Literal["it_was_done", "try_again", "skip"]


@dataclass(frozen=True, slots=True)
class SignInReply:
    """A click on "I have signed in" or "Not now"."""

    key: str
    person: Person
    sign_in_id: str
    done: bool


# ------------------------------------------------------------------------------------------------ what a click gets


@dataclass(frozen=True, slots=True)
class Settled:
    """The click settled it, or was counted."""

    text: str
    """One sentence for the person who clicked."""
    final: bool = True
    """False: the vote counts, and more are needed."""


@dataclass(frozen=True, slots=True)
class AlreadySettled:
    """Somebody (perhaps the same person) was earlier; nothing changed."""

    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """This person may not, or not now; nothing changed. Only the person who clicked sees it."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no such thing; nothing changed."""

    text: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The form has mistakes; nothing changed and the input is kept."""

    errors: Mapping[str, str]
    """Field name → what is wrong and how to mend it; the key `""` is about the form as a whole."""


ClickResult = Settled | AlreadySettled | Refused | Unknown | Invalid


# ------------------------------------------------------------------------------------------------ what is shown


@dataclass(frozen=True, slots=True)
class Said:
    """What the bot says, in Markdown from a model: to be escaped by every renderer."""

    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence of the house itself, plain text."""

    text: str
    tone: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's vote on an approval."""

    name: str
    verb: Literal["approve", "reject"]
    at: float


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """Everything a card needs so that a person can decide."""

    approval_id: str
    status: Literal["pending", "approved", "rejected", "expired", "superseded", "withdrawn", "void"]
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    asked_arguments: Mapping[str, Any] | None
    """As they were before an approver edited them; `None`: nobody did."""
    risk: tuple[str, ...]
    requester: str
    """Name of the person who asks."""
    may_decide: str
    """Who may decide, in words."""
    rule: str
    quorum: int
    votes: tuple[Vote, ...]
    asked_at: float
    expires_at: float | None
    reason_required: bool
    editable: bool
    decided_by: tuple[str, ...] = ()
    decided_at: float | None = None
    reason: str = ""
    result: str = ""
    """What came of the call, in one line; empty while it has not run."""
    result_tone: Literal["info", "success", "error", "warning"] = "info"


@dataclass(frozen=True, slots=True)
class ClarificationView:
    """A question of the model to the requester."""

    clarification_id: str
    status: Literal["open", "answered", "superseded"]
    question: str
    context: str
    fields: tuple[FormField, ...]
    requester: str
    requester_id: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class SignInView:
    """A sign-in that one person has to do. The link is not here: it is fetched for its owner alone."""

    sign_in_id: str
    status: Literal["open", "done", "declined", "expired", "superseded"]
    server: str
    host: str
    """Host of the link, so that a person can judge it."""
    message: str
    owner: str
    owner_id: str


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """An attempt that broke off: what came of it?"""

    outcome_id: str
    status: Literal["open", "it_was_done", "try_again", "skip", "superseded"]
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    requester: str
    requester_id: str
    settled_by: str = ""


Content = Said | Notice | ApprovalView | ClarificationView | SignInView | OutcomeView


@dataclass(frozen=True, slots=True)
class Post:
    """Something the bot said, as it is to be shown now."""

    post_id: str
    thread_id: str
    place: Place
    revision: int
    """Grows with every change; a platform never replaces a newer revision by an older one."""
    at: float
    content: Content
    only_for: str | None = None
    """Person id, when nobody else may see it."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form to fill in: the edit form of an approval."""

    title: str
    fields: tuple[FormField, ...]
    values: Mapping[str, Any]


# ------------------------------------------------------------------------------------------------ reading (ask lane)


@dataclass(frozen=True, slots=True)
class MessageView:
    """A person's message in a thread, for platforms that show the thread themselves."""

    key: str
    author: str
    author_id: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One line of a list of threads."""

    thread_id: str
    title: str
    updated_at: float
    waiting: int
    """How many questions to people are open in it."""


@dataclass(frozen=True, slots=True)
class ThreadView:
    """A thread as one person may see it, oldest first."""

    thread_id: str
    title: str
    entries: tuple[MessageView | Post, ...]
