"""What comes in: messages, clicks, forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.vocabulary.places import Person, Place


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
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What the platform's adapter needs to introduce the message later; JSON, opaque to everything else."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message about to be handled, as it was accepted."""

    message: Message
    heard: str | None
    """Key of the message before it that the bot heard in this thread; `None`: it is the first."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Something that was said in a thread, not to the bot."""

    author: str
    """Name of the person."""
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Introduction:
    """What the platform knows of a message: accepted at once, looked up when its turn has come."""

    author: Person
    text: str
    """The message with names in the place of ids."""
    background: tuple[Quote, ...] = ()
    """What people said in the thread since the bot last heard something in it, oldest first."""


@dataclass(frozen=True, slots=True)
class Unwelcome:
    """Its author may not use the bot: a guest, somebody of another company."""

    text: str
    """One sentence, for them alone."""


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
    always_for: float | None = None
    """Seconds for which the same call is to need no approval any more when this person requests it; `None`: it does."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Somebody who may decide asks another to do it."""

    key: str
    person: Person
    approval_id: str
    to: str
    """Person id, or an e-mail address: then whoever has it, as far as a platform has vouched for it."""
    name: str = ""
    """Of that person, as their platform knows them; empty: as we do."""


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


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """The one-time code that a person's browser showed at the end of a sign-in, typed by them in chat."""

    key: str
    person: Person
    code: str
    sign_in_id: str | None = None
    """Whose form it came from; `None`: written as a message."""


@dataclass(frozen=True, slots=True)
class Dismissal:
    """A click on "Decline" or "Cancel" of a question that a tool put."""

    key: str
    person: Person
    clarification_id: str
    action: Literal["decline", "cancel"]


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person thinks of something the bot said. A later opinion replaces an earlier one."""

    person: Person
    post_id: str
    verdict: Literal["good", "bad"]
    comment: str = ""
    """In the person's own words, where the platform asks for them."""
