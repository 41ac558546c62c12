"""The port that each chat platform fills in: its sending half, which shows posts and looks people up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bot.domain import (
    AccountFacts,
    Arrival,
    ConversationReference,
    FileReference,
    Introduction,
    Post,
    Unwelcome,
)
from graph.ports import Live

Reference = Mapping[str, Any]
"""What a platform needs to update a post in place; JSON, opaque to everything else, except that the texts in its lists
are the ids of the post's messages."""


class Platform(Protocol):
    """The sending half of a chat platform: it shows posts, looks people up, and never decides anything."""

    name: str

    async def send(self, post: Post) -> Reference:
        """Show a post for the first time. Raises `PostFailed`."""
        ...

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Replace what a post showed. Raises `PostFailed`."""
        ...

    async def find(self, post: Post) -> Reference | None:
        """The reference of a post that was sent just before a crash, where the platform lets us find it."""
        ...

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        """Who wrote a message, what it says in words, and what was said before it: read-only, looked up when its turn
        has come, since accepting it may not wait. Raises `PostFailed` when that cannot be found out now."""
        ...

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> FetchedFile:
        """A file of a message. `limit`: bytes that are read at most. Raises `FileNotFetched` where it
        cannot be had, and `PostFailed` when it cannot be had now."""
        ...

    def live(self, thread_id: str, place: ConversationReference, reader: str) -> Live:
        """Where to show what happens in a thread while it happens; `reader` is the person id of whom it is for."""
        ...

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in a group (`slack-group:T1:S1`, `entra-group:{tenant}:{id}`). `None`: it is none of this
        platform's, or it could not be found out. Raises nothing."""
        ...

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel (`ConversationReference.channel`). `None`: that could not be found out.
        Raises nothing."""
        ...

    async def account_of(self, person_id: str) -> AccountFacts:
        """Returns whose an account is, as far as the platform knows. Raises nothing."""
        ...

    async def name_of(self, person_id: str) -> str | None:
        """What the platform calls somebody; `None`: nobody of it, or it could not be found out. Never raises."""
        ...

    def named_place(self, reference: str) -> ConversationReference | None:
        """The place that a policy names, such as `slack:T1:C2`, or the direct chat of a person; `None`: none of this
        platform's. Looks nothing up."""
        ...


class PostFailed(Exception):  # noqa: N818  # like ModelProblem
    """A platform did not take a post.

    `permanent`: trying again cannot help (the place is gone, the bot was removed).
    `retry_after`: seconds the platform asked to wait.
    """

    def __init__(self, reason: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file of a message, and what its platform said of it only when it was asked."""

    content: bytes
    name: str = ""
    """Counts where the message did not say it, as the other."""
    media_type: str = ""


class FileNotFetched(Exception):  # noqa: N818  # like PostFailed
    """A file cannot be had, and trying again does not help.

    Attributes:
        reason: why, for people; ends a sentence that begins with the file's name.
        name: as the platform says it; counts where the message did not.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


class NotConnected(Exception):  # noqa: N818  # like PostFailed
    """A chat service does not let us in. `sentence`: what is wrong and what to do, for the operator."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
