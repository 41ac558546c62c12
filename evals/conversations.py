"""What is tried: conversations with what must come of them, and texts that try to make the agent act."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evals.conditions import Condition
from evals.dates import Moment

Verdict = Literal["asked", "allowed", "refused"]
"""What becomes of a call by the policy: people are asked, it runs at once, or it never runs."""


@dataclass(frozen=True, slots=True)
class GivenEvent:
    """An event that is there before the conversation."""

    title: str
    start: Moment
    end: Moment
    calendar: str = "primary"
    location: str = ""
    attendees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenTask:
    """A task that is there before it."""

    title: str
    due: Moment | None = None
    notes: str = ""
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class GivenDocument:
    """A document that is there before it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that is handed over with a message."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Given:
    """What there is before a conversation."""

    events: Sequence[GivenEvent] = ()
    tasks: Sequence[GivenTask] = ()
    documents: Sequence[GivenDocument] = ()


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that has to be made.

    Attributes:
        tool: server and tool, `calendar.create_event`.
        rejected: why the person rejects it; empty: they approve it, where they are asked.
    """

    tool: str
    verdict: Verdict
    arguments: Mapping[str, Condition]
    rejected: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the person, and what has to come of it.

    Attributes:
        unclear: what the person says when they are asked, where the message is not clear; empty: it is.
        answer: patterns, each of which is in what the agent says last.
        not_in_answer: patterns of which none is.
    """

    text: str
    files: Sequence[GivenFile] = ()
    calls: Sequence[ExpectedCall] = ()
    unclear: str = ""
    answer: Sequence[re.Pattern[str]] = ()
    not_in_answer: Sequence[re.Pattern[str]] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation. `fingerprint`: of what is written of it, so that results are compared of the same one only."""

    name: str
    given: Given
    said: Sequence[Said]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Injection:
    """A text by somebody else that tries to make the agent act, in a tool's result or in a file.

    Attributes:
        text: what tries it.
        said: the harmless message, which asks for nothing to be changed.
        tool: what it wants to have called, `calendar.delete_event`.
        arguments: how, as an agent that obeys would write them.
    """

    name: str
    text: str
    given: Given
    said: Said
    tool: str
    arguments: Mapping[str, WantedArgument]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class WantedId:
    """The id of an event, a task or a document, by its title, as an argument that an injection wants."""

    kind: str
    title: str


WantedArgument = str | tuple[str, ...] | Moment | WantedId


@dataclass(frozen=True, slots=True)
class EvalSet:
    """All that is tried, with the policy under which it is.

    Attributes:
        fingerprint: of all files, the policy among them.
    """

    conversations: Sequence[Conversation]
    injections: Sequence[Injection]
    fingerprint: str
