"""What is read in the ask lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.vocabulary.showing import Post


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


@dataclass(frozen=True, slots=True)
class Shown:
    """A post and where it is shown."""

    post: Post
    reference: Mapping[str, Any] | None
    """The platform's reference; `None`: it is not shown (yet)."""


@dataclass(frozen=True, slots=True)
class GrantView:
    """A call that somebody always allows themselves, for a while."""

    grant_id: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    until: float
    masks: int = 0
    """As on an approval's card, like what follows."""
    fingerprint: str = ""
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Overview:
    """What concerns one person, newest first."""

    to_decide: tuple[Shown, ...]
    """Approvals that this person may decide now."""
    waiting: tuple[Shown, ...]
    """What this person asked for that waits, for others or for them: approvals, questions, sign-ins, outcomes."""
    recent: tuple[Shown, ...]
    """What came of this person's requests lately: approvals that are settled."""


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A person's account at a service, as they may see it: never its tokens."""

    connection_id: str
    service: str
    """Name for people: the provider's, or the tool server's."""
    account: str
    """How the service names the account (an e-mail address, a login); empty where it does not say."""
    scopes: tuple[str, ...]
    since: float
    used_at: float | None
    working: bool = True
    """Whether it can be used; false: the service refused it, and the next call asks to sign in again."""
