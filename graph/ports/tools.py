"""Tools to call, and what can come of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from policies.model import Tool


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
