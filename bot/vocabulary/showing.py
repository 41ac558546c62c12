"""What is shown: sayings, cards, forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.vocabulary.places import Place
from graph.fields import FormField


@dataclass(frozen=True, slots=True)
class Said:
    """What the bot says, in Markdown from a model: to be escaped by every renderer."""

    text: str
    final: bool = True
    """Whether it is the answer; false: a word on the way to it."""


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
    approvers: tuple[str, ...]
    """The same as the policy names them: person ids, group references, `requester`, `channel`, `any`."""
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
    together: int = 1
    """How many approvals wait in its thread, itself included."""
    requester_ids: tuple[str, ...] = ()
    """Person ids of the requester of the turn, then of whoever edited the arguments."""
    four_eyes: bool = False
    """Whether none of `requester_ids` may decide."""
    quote: str = ""
    """The requester's own words that ask for this call; empty where none are needed (outside of `safeWrite`)."""
    always_offered: bool = False
    """Whether whoever approves may always allow the same call, to themselves, for a while."""
    rejections: int = 1
    """How many different people must reject; 1: anybody's rejection is a veto."""
    escalates_at: float | None = None
    """When others may decide too; `None`: never, or they may already."""
    handing_offered: bool = True
    """Whether whoever may decide can ask another who may: not where only one person may."""
    handed_to: tuple[str, ...] = ()
    """Names of the people who were asked to decide by somebody else who may."""
    masks: int = 0
    """How many secrets are masked in it: whoever may decide can look at them."""
    fingerprint: str = ""
    """Of the whole call, short and keyed: said wherever the card does not show the call letter by letter."""
    exact: bool = True
    """Whether all of it, masks aside, can be told from how it looks (`bot.masking`)."""


@dataclass(frozen=True, slots=True)
class ClarificationView:
    """A question to the requester: of the model, or of a tool in the middle of a call."""

    clarification_id: str
    status: Literal["open", "answered", "declined", "cancelled", "superseded"]
    question: str
    context: str
    fields: tuple[FormField, ...]
    requester: str
    requester_id: str
    answer: str = ""
    server: str = ""
    """Name of the tool server that asks, and may be declined; empty: the model asks."""


@dataclass(frozen=True, slots=True)
class SignInView:
    """A sign-in that one person has to do. The link is not here: it is fetched for its owner alone."""

    sign_in_id: str
    status: Literal["open", "done", "declined", "expired", "superseded"]
    server: str
    host: str
    """Host of the link, so that a person can judge it."""
    message: str
    """What the server says about it: for the owner alone, in no card that others see."""
    owner: str
    owner_id: str
    service: str = ""
    """Name of the service whose account is to be connected; empty for a link that the server itself gave: only its
    owner can say when that is finished."""
    code_wanted: bool = False
    """Whether the browser part is over and its one-time code is to be typed in by the owner."""


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
    masks: int = 0
    """How many secrets are masked in it."""
    fingerprint: str = ""
    """Of the whole call, short and keyed: said wherever the card does not show the call letter by letter."""
    exact: bool = True
    """Whether all of it, masks aside, can be told from how it looks (`bot.masking`)."""
    known: str = ""
    """What is known of it, and what the server said; empty where that is for one person alone."""


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
class Hidden:
    """What the masks of a waiting approval hide, for one person who may decide it. Never to be shown to others."""

    approval_id: str
    server: str
    tool: str
    secrets: Mapping[str, str]
    """By mask, what is behind it."""
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Form:
    """A form to fill in: the edit form of an approval, or a question's."""

    title: str
    fields: tuple[FormField, ...]
    values: Mapping[str, Any]
