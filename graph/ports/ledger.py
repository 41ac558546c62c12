"""What was started, and what came of it: an attempt at a call starts at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from graph.ports.tools import Failed, Succeeded
from policies.model import Facts, Mode, Tool, Verdict


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
    verdict: Verdict | None = None
    """What the policy says of the call now, with the rule that does; for the audit log."""
    mode: Mode = Mode.DEFAULT
    """The mode it was judged in."""
    facts: Facts | None = None
    """What it was judged on."""
    quote: str = ""
    """The requester's words that ask for it, where they are needed and were found in what they wrote."""


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

    async def finish(self, record: CallRecord, attempt: int, outcome: Succeeded | Failed) -> None:
        """Record what came of an attempt."""
        ...

    async def broke_off(self, record: CallRecord, attempt: int) -> None:
        """Record that nobody knows what came of an attempt."""
        ...

    async def did_nothing(self, call_id: str, attempt: int) -> None:
        """Record that the server itself said that it did nothing, so that the call may be tried again."""
        ...

    async def close(self, call_id: str) -> Recorded | Undecided | Skipped | None:
        """What became of a call that shall not be started any more; `None`: it never was."""
        ...
