"""The port that each chat platform fills in, and what the house offers to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bot.vocabulary import (
    ClickResult,
    Decision,
    Form,
    FormAnswer,
    Message,
    OutcomeChoice,
    Person,
    Place,
    Post,
    Refused,
    SignInReply,
    ThreadSummary,
    ThreadView,
    Unknown,
)
from graph.ports import Live

Reference = Mapping[str, Any]
"""What a platform needs to update a post in place; JSON, opaque to everything else."""


class Platform(Protocol):
    """A chat platform, as the house sees it: it shows posts and never decides anything."""

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

    def live(self, thread_id: str, place: Place) -> Live:
        """Where to show what happens in a thread while it happens."""
        ...


class PostFailed(Exception):  # noqa: N818  # a word of the house, like ModelProblem
    """A platform did not take a post.

    `permanent`: trying again cannot help (the place is gone, the bot was removed).
    `retry_after`: seconds the platform asked to wait.
    """

    def __init__(self, reason: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after


class Desk(Protocol):
    """What the house offers to the inbound side of an adapter: three lanes, none of which waits for a running turn."""

    # turn lane
    async def accept(self, message: Message) -> bool:
        """Keep a message durably; it is handled in its thread's order. False: it had been accepted before."""
        ...

    # decide lane
    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        """Judge and record a click, per approval id."""
        ...

    async def answer(self, answer: FormAnswer) -> ClickResult:
        """Record the answer to a clarification."""
        ...

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        """Record what came of an attempt that broke off."""
        ...

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        """Record that a person has signed in, or will not."""
        ...

    async def stop(self, key: str, thread_id: str, person: Person) -> ClickResult:
        """End the running turn of a thread; its requester only."""
        ...

    # ask lane
    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to edit a waiting call with."""
        ...

    async def sign_in_link(self, sign_in_id: str, person: Person) -> str | Refused | Unknown:
        """The link, for its owner only."""
        ...

    async def threads(self, platform: str, limit: int = 100) -> tuple[ThreadSummary, ...]:
        """The newest threads of a platform."""
        ...

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        """A thread as this person may see it; `None`: there is none."""
        ...
