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

    async def ask(self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken]) -> ApprovalAsked:
        """Says what the model said before it, records the approval and posts its card.

        Returns:
            What people are asked: `asked`, or what was recorded for the same round by a run that ended right after
            that. It may have been asked under another policy, and decided since.
        """
        ...

    async def not_asked(self, call_id: str, round_: int) -> None:
        """Nobody is asked about this round of a call: what a run that broke off has asked is superseded."""
        ...


class SignInPort(Protocol):
    """Where links that one person must open are kept; the graph sees only their id."""

    async def ask(
        self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded | AccountNeeded
    ) -> str:
        """Keeps what is needed, shows its owner where the link is, and returns its id."""
        ...
