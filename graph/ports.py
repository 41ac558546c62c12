"""What the agent needs from the rooms above it: tools to call, a ledger to write in, somebody to show progress to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage

from graph.interrupts import ApprovalAsked
from graph.models.streaming import Retry
from policies.model import Call, Facts, Mode, Tool, Verdict

# ------------------------------------------------------------------------------------------------ tools


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom and in which thread a tool is called."""

    person: str
    thread_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool did what it was asked."""

    text: str
    """For the model: bounded, safe to show."""
    whole: str = ""
    """The whole result for the record; empty when `text` is already whole."""
    owner: str | None = None
    """Person id, when the result was fetched through that person's own account."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool said that it failed, or it could not be called at all: nothing is left open."""

    text: str
    """A sentence safe to show to the model and to people."""


@dataclass(frozen=True, slots=True)
class BrokeOff:
    """The call was sent and no answer came (timeout, server died): whether it acted is unknown."""

    text: str


@dataclass(frozen=True, slots=True)
class SignInNeeded:
    """The server did nothing, because this person must open a link first (401, URL elicitation)."""

    url: str
    message: str
    elicitation_id: str | None = None


ToolOutcome = Succeeded | Failed | BrokeOff | SignInNeeded


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A configured server whose tools cannot be used at the moment."""

    server: str
    reason: str


class Progress(Protocol):
    """Told how far a running tool is; must return at once."""

    def __call__(self, message: str, fraction: float | None) -> None:
        """Progress of `fraction` (0 to 1, where the server says how far it is)."""
        ...


class Tools(Protocol):
    """The tools of all configured servers."""

    def available(self) -> Sequence[Tool]:
        """The tools that can be called now, in a stable order."""
        ...

    async def settled(self, timeout: float) -> bool:  # noqa: ASYNC109  # a question with a limit, not a deadline
        """Wait, `timeout` seconds at most, until every server is connected or has failed to; whether they have."""
        ...

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers that are configured and cannot be used now, with a reason safe to show."""
        ...

    def find(self, full_name: str) -> Tool | None:
        """The tool the model calls `full_name`; `None` when there is none (any more)."""
        ...

    async def call(self, tool: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress) -> ToolOutcome:
        """Call it once. Never raises, cancellation aside: every failure is an outcome."""
        ...


# ------------------------------------------------------------------------------------------------ ledger


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What the ledger keeps of a call."""

    thread_id: str
    call_id: str
    requester: str
    tool: Tool
    arguments: dict[str, Any]
    digest: str
    approval_round: int | None
    """The round whose approval permits this call; `None`: the policy allowed it without asking."""
    permitted: bool = True
    """Whether the policy, as it is now, lets the call run, by itself or under that approval."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The attempt is recorded as started: call the tool now."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """There already is an outcome; do not call the tool again."""

    outcome: Succeeded | Failed


@dataclass(frozen=True, slots=True)
class Undecided:
    """An earlier attempt broke off and a person has to say what came of it."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A person said what came of the broken attempt: it was done, or it shall not be tried again."""

    was_done: bool
    by: str


@dataclass(frozen=True, slots=True)
class NotPermitted:
    """No recorded approval has this call's digest, or the policy asks for more than it did."""


class Ledger(Protocol):
    """What was started, and what came of it. Each verb is one transaction."""

    async def begin(self, record: CallRecord) -> Begun | Recorded | Undecided | Skipped | NotPermitted:
        """Start an attempt, unless the call has one already or has no right to run."""
        ...

    async def finish(self, call_id: str, attempt: int, outcome: Succeeded | Failed) -> None:
        """Record what came of an attempt."""
        ...

    async def broke_off(self, call_id: str, attempt: int) -> None:
        """Record that nobody knows what came of an attempt."""
        ...

    async def did_nothing(self, call_id: str, attempt: int) -> None:
        """Record that the server itself said that it did nothing, so that the call may be tried again."""
        ...

    async def close(self, call_id: str) -> Recorded | Undecided | None:
        """What became of a call that shall not be started any more; `None`: it never was."""
        ...


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something the model said."""

    message_id: str
    text: str
    final: bool = True
    """Whether the turn ends with it; false: a word on the way to its tool calls."""


class Approvals(Protocol):
    """Where questions to people are recorded and shown at once, before the graph stops for them."""

    async def ask(self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken]) -> None:
        """Say what the model said before it, record the approval and post its card. Asking the same round again
        changes nothing."""
        ...


class SignIns(Protocol):
    """Where links that one person must open are kept; the graph sees only their id."""

    async def ask(self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded) -> str:
        """Keep the link, show its owner where it is, and return its id."""
        ...


# ------------------------------------------------------------------------------------------------ live view

TaskState = Literal["running", "done", "failed"]


class Live(Protocol):
    """Shows what happens while it happens. Nothing durable; each verb returns at once."""

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        ...

    def status(self, text: str) -> None:
        """One short line about what the bot is doing; empty: nothing."""
        ...

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands. The same `task_id` again replaces what was shown."""
        ...

    def end(self, *, waiting: bool) -> None:
        """The delivery has been handled: nothing more comes. What was said is posted by others, perhaps later.

        `waiting`: whether the thread now waits for people.
        """
        ...


# ------------------------------------------------------------------------------------------------ together

Router = Callable[[Sequence[AnyMessage], Sequence[str]], Awaitable[list[str]]]
"""Picks the tool types (categories) that a request may use; gets the conversation and the categories there are."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All that the workflow is given."""

    model: BaseChatModel
    router: Router
    tools: Tools
    ledger: Ledger
    approvals: Approvals
    sign_ins: SignIns
    judge: Callable[[Call, Facts], Verdict]
    mode: Mode
    retry: Retry
