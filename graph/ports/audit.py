"""The record of the calls that were not made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from policies.model import Facts, Mode, Tool, Verdict

NotMade = Literal["denied", "limited", "rejected", "expired", "withdrawn", "superseded", "failed"]
"""Why a call ended without having been made; `failed`: it names no tool, or its arguments could not be read."""


@dataclass(frozen=True, slots=True)
class Unmade:
    """A call that ended without having been made."""

    call_id: str
    thread_id: str
    requester: str
    name: str
    """The tool, as the model called it."""
    tool: Tool | None
    """`None`: there is none of that name (any more)."""
    arguments: Mapping[str, Any]
    status: NotMade
    text: str
    """What the model is told."""
    mode: Mode
    verdict: Verdict | None
    """What the policy said of it; `None`: it was not asked."""
    approval_round: int | None
    """The round of the approval that it waited for; `None`: it waited for none."""
    facts: Facts | None = None
    """What it was judged on; `None`: it was not judged."""
    quote: str = ""
    """The requester's words that ask for it, where they are needed and were found in what they wrote."""


class Audit(Protocol):
    """The record of every call. Those that were started are the ledger's to write down: it knows what came of them."""

    async def not_made(self, call: Unmade) -> None:
        """Write down a call that ended without having been made. The same call with the same status again (after a
        restart) changes nothing."""
        ...
