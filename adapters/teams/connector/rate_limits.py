"""When the next call may go out: Teams' limits per bot and thread, and what it asked for after a 429.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit#per-bot-per-thread-limit
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["sending", "reading", "opening"]

_WRITING = ((7, 1.0), (8, 2.0), (60, 30.0), (1_800, 3_600.0))
WINDOWS: dict[Kind, tuple[tuple[int, float], ...]] = {
    "sending": _WRITING,
    "opening": _WRITING,
    "reading": ((14, 1.0), (16, 2.0), (120, 30.0), (3_600, 3_600.0)),
}
"""Operations in seconds: sending to a conversation, creating one, getting its members."""

_LONGEST_WINDOW = 3_600.0
_MANY = 1_000
"""Lines remembered before those that lie idle are forgotten."""


@dataclass(frozen=True, slots=True)
class Line:
    """Calls that Teams counts together."""

    kind: Kind
    thread: str
    """Conversation id; each thread of a channel has its own."""


@dataclass(slots=True)
class _State:
    times: deque[float]
    """When the newest calls went out, or will; as many as the largest window holds."""
    paused_until: float = field(default=0.0)


class RateLimits:
    """Gives every call its time, first come, first served. Times are seconds on the caller's clock; nothing waits."""

    def __init__(self) -> None:
        self._states: dict[Line, _State] = {}

    def reserve(self, line: Line, now: float, until: float) -> float:
        """The time at which the call may go out; one that is later than `until` is not kept for it."""
        state = self._state(line, now)
        at = max(now, state.paused_until)
        for most, seconds in WINDOWS[line.kind]:
            if len(state.times) >= most:
                at = max(at, state.times[-most] + seconds)
        if at <= until:
            state.times.append(at)
        return at

    def pause(self, line: Line, until: float) -> None:
        """Teams asked to wait: nobody in this line may call before then."""
        state = self._state(line, until)
        state.paused_until = max(state.paused_until, until)

    def paused_until(self, line: Line) -> float:
        """The time before which nobody in this line may call, whatever was reserved before."""
        state = self._states.get(line)
        return state.paused_until if state else 0.0

    def _state(self, line: Line, now: float) -> _State:
        state = self._states.get(line)
        if state is None:
            if len(self._states) >= _MANY:
                self._forget_idle(now)
            most = max(most for most, _ in WINDOWS[line.kind])
            state = self._states[line] = _State(deque(maxlen=most))
        return state

    def _forget_idle(self, now: float) -> None:
        def counts(state: _State) -> bool:
            return state.paused_until > now or bool(state.times and state.times[-1] + _LONGEST_WINDOW > now)

        self._states = {line: state for line, state in self._states.items() if counts(state)}
