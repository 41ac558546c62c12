"""Where questions to people are recorded and shown before the graph stops for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from graph.interrupts import ApprovalAsked
from graph.ports.tools import AccountNeeded, SignInNeeded


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something the model said."""

    message_id: str
    text: str
    final: bool = True
    """Whether the turn ends with it; false: a word on the way to its tool calls."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An answer that was broken off while it was written."""

    said: Spoken
    note: Literal["stopped here", "broken off here"]
    """What stands below it: whether somebody stopped it, or the model's service ended it."""


class ApprovalPort(Protocol):
    """Where approvals are recorded and shown at once, before the graph stops for them."""

    async def ask(self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken]) -> None:
        """Says what the model said before it, records the approval and posts its card. Asking for the same round again
        changes nothing."""
        ...


class SignInPort(Protocol):
    """Where links that one person must open are kept; the graph sees only their id."""

    async def ask(
        self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded | AccountNeeded
    ) -> str:
        """Keeps what is needed, shows its owner where the link is, and returns its id."""
        ...
