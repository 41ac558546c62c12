"""What was started, and what came of it: an attempt at a call starts at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from graph.ports.tools import BrokeOff, Failed, Succeeded
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
    goes_on: bool = False
    """Whether it was sent before and waits in the middle (`Ready.goes_on`): then its attempt goes on, too."""
    recalled_at: float = 0.0
    """`Beginning.at`: when everything that was prepared for it was still to be looked up."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Nothing is known of the call that keeps it from being made, or from going on."""

    at: float
    """When that was so, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The attempt is recorded as started: send the call now."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """There already is an outcome; do not call the tool again."""

    outcome: Succeeded | Failed


@dataclass(frozen=True, slots=True)
class Undecided:
    """An earlier attempt broke off and a person has to say what came of it."""

    attempt: int
    text: str = ""
    """What is known of it, and what the server said, safe to show."""
    owner: str | None = None
    """Person id, when `text` is for that person alone."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A person said what came of the broken attempt: it was done, or it shall not be tried again."""

    was_done: bool
    by: str
    text: str = ""
    """As in `Undecided`."""
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class NotPermitted:
    """No recorded approval has this call's digest, or the policy asks for more than it did."""


Existing = Recorded | Undecided | Skipped
"""What is known of a call that is not to be sent (again)."""


class Ledger(Protocol):
    """What was started, and what came of it. Each verb is one transaction."""

    async def recall(self, call_id: str, *, repeatable: bool) -> Beginning | Existing:
        """What is known of a call, before anything is prepared for it."""
        ...

    async def begin(self, record: CallRecord) -> Begun | Existing | NotPermitted:
        """Start an attempt, unless the call has one already or has no right to run. To be called when its request is
        about to leave, and nothing more has to be waited for: if the process dies after this, nobody knows what came of
        it."""
        ...

    async def unsent(self, record: CallRecord, outcome: Failed | None) -> Begun | Existing | NotPermitted:
        """Record an attempt that ended before its request left, under the same conditions as `begin`. `outcome`: what
        it failed with; `None`: its requester has to sign in first. It counts as begun when it was recalled."""
        ...

    async def finish(self, record: CallRecord, attempt: int, outcome: Succeeded | Failed) -> None:
        """Record what came of an attempt."""
        ...

    async def broke_off(self, record: CallRecord, attempt: int, outcome: BrokeOff) -> Undecided:
        """Record that nobody knows what came of an attempt."""
        ...

    async def lost(self, record: CallRecord, outcome: BrokeOff) -> Existing:
        """Record that a call which had been sent, and put a question, waits for the answer no more."""
        ...

    async def waits(self, call_id: str, attempt: int) -> None:
        """Record that an attempt waits for its requester. The tool may have acted before it asked."""
        ...

    async def did_nothing(self, call_id: str, attempt: int) -> None:
        """Record that nothing was done: the server said so by its protocol, or the request never left."""
        ...

    async def close(self, call_id: str, *, repeatable: bool) -> Existing | None:
        """What became of a call that shall not be started, or go on, any more; `None`: it was never sent, or did
        nothing."""
        ...
