"""Limits of one person and one thread: turns in a minute."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain import Clock
from bot.records.database import Transaction
from translations import gettext as _
from translations import ngettext

WINDOW = 60.0
"""Seconds over which turns are counted."""
NO_LIMIT = 0
"""What the settings say for it."""
MOST_NAMES = 100_000
"""Persons, threads and the like whose beginnings are remembered: nobody outside can fill the memory."""


@dataclass(frozen=True, slots=True)
class TooMany:
    """A turn may not begin now."""

    sentence: str | None
    """What the author of its message is told; `None`: they were told before, and that wait is not over."""


@dataclass(frozen=True, slots=True)
class TurnedOff:
    """No turn may begin (`AGENT_ENABLE`)."""

    @property
    def sentence(self) -> str:
        """What the author of a message is told."""
        return _("I am switched off and have not read this. Open requests and questions can still be answered.")


class TurnLimit:
    """Limits how many turns may begin within a minute."""

    def __init__(self, beginnings: Beginnings, *, per_person: int, per_thread: int) -> None:
        self._beginnings = beginnings
        self._per_person = per_person
        self._per_thread = per_thread

    async def refusal(self, key: str, person_id: str, thread_id: str) -> TooMany | None:
        """Returns `None` when the turn of this message may begin; it is counted then, once however often it is asked.

        Args:
            key: of the message's delivery.
            person_id: the same for all accounts of one human.
        """
        person = Window(f"person:{person_id}", self._per_person)
        thread = Window(f"thread:{thread_id}", self._per_thread)
        full = await self._beginnings.count(key, [person, thread], told=f"told:{person_id} {thread_id}")
        if full is None:
            return None
        told = _sentence(full.window.most, full.wait, in_one=full.window is thread)
        return TooMany(told if full.is_first else None)


# ------------------------------------------------------------------------------- what is counted, and where


@dataclass(frozen=True, slots=True)
class Window:
    """So much may begin in any stretch of time of this length."""

    name: str
    """What is counted together, with a prefix that says what kind of thing it is."""
    most: int
    """`NO_LIMIT`: nothing is counted."""
    seconds: float = WINDOW


@dataclass(frozen=True, slots=True)
class Full:
    """Nothing more may begin in a window now."""

    window: Window
    wait: float
    """Seconds until one more may."""
    is_first: bool
    """Whether whoever asks is to be told: others before the wait is over are not."""


class Beginnings(Protocol):
    """Counts what begins: in this process (`BeginningsHere`) or for several (`bot.records.beginnings`)."""

    async def count(
        self, key: str, windows: Sequence[Window], *, told: str = "", tx: Transaction | None = None
    ) -> Full | None:
        """Counts one more in all of these windows, or in none and returns the first that is full.

        Args:
            key: what is counted already is not counted again, and may begin.
            windows: in the order in which they are looked at.
            told: who is told when one is full; `Full.is_first` is true for one key at a time. Empty: whoever asks.
            tx: where several processes count, the transaction in which it is done, which holds up others who count in
                these windows until it ends. `None`: one of its own.
        """
        ...

    async def forget(self, window: Window, key: str = "") -> None:
        """Nothing has begun there; `key`: what is counted under it has not."""
        ...


class BeginningsHere:
    """Counts in the memory of this process: a restart forgets. Fills `Beginnings`.

    `most_names`: windows of one length that are remembered; the one that was counted in longest ago is forgotten first.
    """

    def __init__(self, clock: Clock, *, most_names: int = MOST_NAMES) -> None:
        self._clock = clock
        self._most_names = most_names
        self._windows: dict[float, SlidingWindows] = {}
        """By their length."""
        self._told: dict[str, tuple[str, float]] = {}
        """Who is told → for which key, and until when that holds."""

    async def count(
        self, key: str, windows: Sequence[Window], *, told: str = "", tx: Transaction | None = None
    ) -> Full | None:
        """Counts one more in all of these windows, or in none and returns the first that is full."""
        now = self._clock()
        limited = [window for window in windows if window.most != NO_LIMIT]
        for window in limited:
            if wait := self._of(window).wait(window, key, now):
                return Full(window, wait, is_first=not told or self._is_first(told, key, now, wait))
        for window in limited:
            self._of(window).add(window.name, key, now)
        return None

    async def forget(self, window: Window, key: str = "") -> None:
        """Nothing has begun there; `key`: what is counted under it has not."""
        self._of(window).forget(window.name, key)

    def _of(self, window: Window) -> SlidingWindows:
        windows = self._windows.get(window.seconds)
        if windows is None:
            windows = self._windows[window.seconds] = SlidingWindows(window.seconds, self._most_names)
        return windows

    def _is_first(self, of: str, key: str, now: float, wait: float) -> bool:
        self._told = {of: (told, until) for of, (told, until) in self._told.items() if now < until}
        told, _ = self._told.setdefault(of, (key, now + wait))
        return told == key


class SlidingWindows:
    """Remembers what began within the last `seconds`, by name; of `most_names` at most."""

    def __init__(self, seconds: float, most_names: int) -> None:
        self._seconds = seconds
        self._most_names = most_names
        self._begun: dict[str, deque[tuple[float, str]]] = {}

    def wait(self, window: Window, key: str, now: float) -> float:
        """Returns the seconds until one more may begin; 0 when it may now, or was counted already."""
        begun = self._begun.get(window.name, ())
        within = [at for at, _ in begun if at > now - self._seconds]
        if len(within) < window.most or any(key == counted for _, counted in begun):
            return 0.0
        return within[-window.most] + self._seconds - now

    def add(self, of: str, key: str, now: float) -> None:
        """Counts one more that has begun: once, also when it is tried again."""
        begun = self._begun.get(of, ())
        if any(key == counted for _, counted in begun):
            return
        within = deque(turn for turn in begun if turn[0] > now - self._seconds)
        within.append((now, key))
        self._begun.pop(of, None)  # the latest last, so that what is over is found in front
        self._begun[of] = within
        while len(self._begun) > self._most_names or self._oldest[1][-1][0] <= now - self._seconds:
            del self._begun[self._oldest[0]]

    def forget(self, of: str, key: str = "") -> None:
        """Nothing of this name has begun; `key`: what is counted under it has not."""
        left = deque((at, counted) for at, counted in self._begun.get(of, ()) if key not in {"", counted})
        if left:
            self._begun[of] = left
        else:
            self._begun.pop(of, None)

    @property
    def _oldest(self) -> tuple[str, deque[tuple[float, str]]]:
        return next(iter(self._begun.items()))


def _sentence(most: int, wait: float, *, in_one: bool) -> str:
    seconds = max(1, math.ceil(wait))
    if in_one:
        limit = ngettext(
            "Limit: {count} message a minute in this conversation.",
            "Limit: {count} messages a minute in this conversation.",
            most,
        )
    else:
        limit = ngettext("Limit: {count} message a minute.", "Limit: {count} messages a minute.", most)
    again = ngettext(
        "I have not read this; send it again in {count} second.",
        "I have not read this; send it again in {count} seconds.",
        seconds,
    )
    return f"{limit.format(count=most)} {again.format(count=seconds)}"
