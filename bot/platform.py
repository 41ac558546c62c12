"""The port that each chat platform fills in, and what the house offers to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bot.domain import (
    AccountFacts,
    ApprovalView,
    Arrival,
    ClickResult,
    CodeEntry,
    ConnectionView,
    Decision,
    Dismissal,
    Feedback,
    Form,
    FormAnswer,
    GrantView,
    Handover,
    Hidden,
    Introduction,
    Message,
    OutcomeChoice,
    Overview,
    Person,
    Place,
    Post,
    Refused,
    Shown,
    SignInReply,
    ThreadSummary,
    ThreadView,
    Unknown,
    Unwelcome,
)
from graph.ports import Live

Reference = Mapping[str, Any]
"""What a platform needs to update a post in place; JSON, opaque to everything else, except that the texts in its lists
are the ids of the post's messages."""


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

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        """Who wrote a message, what it says in words, and what was said before it: read-only, looked up when its turn
        has come, since accepting it may not wait. Raises `PostFailed` when that cannot be found out now."""
        ...

    def live(self, thread_id: str, place: Place, reader: str) -> Live:
        """Where to show what happens in a thread while it happens; `reader` is the person id of whom it is for."""
        ...

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in a group (`slack-group:T1:S1`, `entra-group:{tenant}:{id}`). `None`: it is none of this
        platform's, or it could not be found out. Raises nothing."""
        ...

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel (`Place.channel`). `None`: it could not be found out. Raises nothing."""
        ...

    async def account_of(self, person_id: str) -> AccountFacts:
        """Whose an account is, as far as the platform knows. Raises nothing."""
        ...

    async def name_of(self, person_id: str) -> str | None:
        """What the platform calls somebody; `None`: nobody of it, or it could not be found out. Never raises."""
        ...

    def named_place(self, reference: str) -> Place | None:
        """The place that a policy names, such as `slack:T1:C2`, or the direct chat of a person; `None`: none of this
        platform's. Looks nothing up."""
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
        """Keep a message durably; it is handled in its thread's order. False: it had been accepted before, or it is
        none of the bot's business (not addressed to it, and not by somebody it is talking with there)."""
        ...

    async def amend(self, key: str, text: str) -> bool:
        """A message was edited. False: it is being handled or was, so the edit changes nothing."""
        ...

    async def withdraw(self, key: str) -> bool:
        """A message was deleted. False: it is being handled or was, so that changes nothing."""
        ...

    async def arrived(self, key: str, place: Place, greeting: str) -> bool:
        """The bot was brought to a place: greet there, once until it has left. `key` names the event."""
        ...

    async def left(self, place: Place) -> None:
        """The bot was removed from a place: what waits there is given up, and nothing more is posted."""
        ...

    # decide lane
    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        """Judge and record a click, per approval id."""
        ...

    async def answer(self, answer: FormAnswer) -> ClickResult:
        """Record the answer to a clarification."""
        ...

    async def hand_over(self, handover: Handover) -> ClickResult:
        """Somebody who may decide asks another, who may too, to do it: that person gets the card."""
        ...

    async def take_back(self, key: str, approval_id: str, person: Person) -> ClickResult:
        """The requester does not want the call any more: it is withdrawn."""
        ...

    async def revoke(self, grant_id: str, person: Person) -> ClickResult:
        """End a grant; its giver only."""
        ...

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        """Record what came of an attempt that broke off."""
        ...

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        """Record that a person does not answer a tool's question."""
        ...

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        """Check the one-time code of a sign-in; the account is connected when it is right."""
        ...

    async def disconnect(self, key: str, connection_id: str, person: Person) -> ClickResult:
        """End a connection, its owner only: its tokens are revoked at the service and forgotten."""
        ...

    async def connections(self, person: Person) -> tuple[ConnectionView, ...]:
        """The accounts that this person has connected, by service."""
        ...

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        """Record that a person has signed in, or will not."""
        ...

    async def stop(self, key: str, thread_id: str, person: Person) -> ClickResult:
        """End the running turn of a thread; its requester only."""
        ...

    async def feedback(self, feedback: Feedback) -> ClickResult:
        """Record what a person thinks of an answer."""
        ...

    # ask lane
    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        """An approval as it is now, if its thread's id, or a place that it was routed to, begins with `within` (a
        platform, or one workspace of it)."""
        ...

    async def permitted(self, approval_id: str, person: Person) -> bool:
        """Whether this person may decide it now; no, where that could not be found out."""
        ...

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        """Where the card of an approval, a question, a sign-in or a broken attempt is shown, in every place."""
        ...

    async def answer_at(self, place: Place, is_it: Callable[[Reference], bool]) -> str | None:
        """Id of the answer, among the newest at a place, whose reference fits: for reactions, which name a message."""
        ...

    async def is_ours(self, message: str, within: str) -> bool:
        """Whether a message, by the platform's id for it in a reference, is recorded as a post in a place whose key
        begins with `within`."""
        ...

    async def together(self, approval_id: str, person: Person) -> tuple[ApprovalView, ...]:
        """The approvals that wait in the same thread and that this person may decide, oldest first."""
        ...

    async def question_form(self, clarification_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to answer an open question with, for whom it was put to."""
        ...

    async def overview(self, person: Person, within: str) -> Overview:
        """What concerns this person in threads whose id begins with `within` (a platform, or one workspace of it)."""
        ...

    async def asked(self, person: Person) -> tuple[Post, ...]:
        """The cards of approvals that others have asked this person, where they are reached directly, to decide, and
        that they may decide now; of many the newest. Cheap enough to be read whenever anything has changed."""
        ...

    async def grants(self, person: Person) -> tuple[GrantView, ...]:
        """What this person always allows themselves at the moment, the one that ends last first."""
        ...

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
        ...

    async def current_thread(self, place: Place, person: Person) -> str | None:
        """The thread that this person is in at a place; `None`: there is none yet."""
        ...

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to edit a waiting call with."""
        ...

    async def look(self, approval_id: str, person: Person) -> Hidden | Refused | Unknown:
        """What the masks of a waiting approval hide, for somebody who may decide it, and for them alone; the audit log
        says that they looked."""
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
