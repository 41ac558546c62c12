"""When the next call may go out: what Slack asked for after a 429, and its rule of one message a second."""

from __future__ import annotations

from dataclasses import dataclass

PACED = "chat.postMessage"
"""Slack: about one message a second in a channel, "short bursts" allowed."""
INTERVAL = 1.0
"""Seconds between two posts in a channel, in the long run."""
BURST = 10
"""Posts that may follow each other at once after a quiet time: the parts of a long answer and its cards."""

_MANY = 1_000
"""Lines remembered before those that lie idle are forgotten."""


@dataclass(frozen=True, slots=True)
class Line:
    """Calls that Slack counts together."""

    team: str
    method: str
    channel: str = ""


def line_of(team: str, method: str, channel: str) -> Line:
    """The line in which a call stands.

    Slack counts messages by channel (`chat.*`) and everything else by method and workspace, so a pause of
    `conversations.replies` in one channel holds for all of them.
    """
    return Line(team, method, channel if method.startswith("chat.") else "")


@dataclass(frozen=True, slots=True)
class Slot:
    """A caller's time."""

    at: float
    pauses: int


@dataclass(slots=True)
class _State:
    pauses: int = 0
    paused_until: float = 0.0
    full_until: float = 0.0
    """When the posts let through so far are paid for, at one interval each."""


class RateLimits:
    """Gives every call its time, first come, first served. Times are seconds on the caller's clock; nothing waits."""

    def __init__(self) -> None:
        self._states: dict[Line, _State] = {}

    def reserve(self, line: Line, now: float, until: float) -> Slot:
        """The time at which the call may go out; one that is later than `until` is not kept for it."""
        state = self._state(line, now)
        at = max(now, state.paused_until)
        if line.method == PACED:
            paid = max(state.full_until, at)
            at = max(at, paid - INTERVAL * (BURST - 1))
            if at <= until:
                state.full_until = paid + INTERVAL
        return Slot(at, state.pauses)

    def pause(self, line: Line, now: float, seconds: float) -> None:
        """Slack answered 429: nobody in this line may call before that many seconds, and then without a burst.

        Slots given before are void: who has one asks for another when its time has come.
        """
        state = self._state(line, now)
        state.pauses += 1
        state.paused_until = max(state.paused_until, now + seconds)
        state.full_until = state.paused_until + INTERVAL * (BURST - 1)

    def is_void(self, line: Line, slot: Slot) -> bool:
        """Whether Slack has asked to wait since the slot was given."""
        state = self._states.get(line)
        return state is None or state.pauses != slot.pauses

    def _state(self, line: Line, now: float) -> _State:
        state = self._states.get(line)
        if state is None:
            if len(self._states) >= _MANY:
                self._forget_idle(now)
            state = self._states[line] = _State()
        return state

    def _forget_idle(self, now: float) -> None:
        busy = {line: s for line, s in self._states.items() if max(s.paused_until, s.full_until) > now}
        self._states = busy
