"""Limits of one person and of one thread: turns in a minute, tokens of the language model in a day."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain import Clock
from bot.records import threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED

WINDOW = 60.0
"""Seconds over which turns are counted."""
NO_LIMIT = 0
"""What the settings say for it."""


@dataclass(frozen=True, slots=True)
class TooMany:
    """A turn may not begin now."""

    sentence: str | None
    """What the author of its message is told; `None`: they were told before, and that wait is not over."""


class TurnLimit:
    """Limits how many turns may begin within a minute, counted in this process: a restart forgets a minute at most."""

    def __init__(self, clock: Clock, *, per_person: int, per_thread: int) -> None:
        self._clock = clock
        self._people = SlidingWindows(per_person)
        self._threads = SlidingWindows(per_thread)
        self._told: dict[tuple[str, str], tuple[str, float]] = {}
        """Person and thread → the delivery that was answered with a sentence, and until when that holds."""

    def refusal(self, key: str, person_id: str, thread_id: str) -> TooMany | None:
        """Returns `None` when the turn of this message may begin; it is counted then, once however often it is asked.

        Args:
            key: of the message's delivery.
            person_id: the same for all accounts of one human.
        """
        now = self._clock()
        if wait := self._people.wait(person_id, key, now):
            most = _messages(self._people.most)
        elif wait := self._threads.wait(thread_id, key, now):
            most = f"{_messages(self._threads.most)} in this conversation"
        else:
            self._people.add(person_id, key, now)
            self._threads.add(thread_id, key, now)
            return None
        return TooMany(_sentence(most, wait) if self._is_first((person_id, thread_id), key, now, wait) else None)

    def _is_first(self, of: tuple[str, str], key: str, now: float, wait: float) -> bool:
        """Whether this message is the one that is answered; others before the wait is over are not."""
        self._told = {of: (told, until) for of, (told, until) in self._told.items() if now < until}
        told, _ = self._told.setdefault(of, (key, now + wait))
        return told == key


class SlidingWindows:
    """Counts in this process what began within the last `seconds`, by person or thread; at most `most` of each may."""

    def __init__(self, most: int, seconds: float = WINDOW) -> None:
        self.most = most
        self._seconds = seconds
        self._begun: dict[str, deque[tuple[float, str]]] = {}

    def wait(self, of: str, key: str, now: float) -> float:
        """Returns the seconds until one more may begin; 0 when it may now, or was counted already."""
        begun = self._begun.get(of, ())
        within = [at for at, _ in begun if at > now - self._seconds]
        if self.most == NO_LIMIT or len(within) < self.most or any(key == counted for _, counted in begun):
            return 0.0
        return within[-self.most] + self._seconds - now

    def add(self, of: str, key: str, now: float) -> None:
        """Counts one more that has begun: once, also when it is tried again."""
        begun = self._begun.get(of, ())
        if self.most == NO_LIMIT or any(key == counted for _, counted in begun):
            return
        within = deque(turn for turn in begun if turn[0] > now - self._seconds)
        within.append((now, key))
        self._begun.pop(of, None)  # the latest last, so that what is over is found in front
        self._begun[of] = within
        while (first := next(iter(self._begun.items())))[1][-1][0] <= now - self._seconds:
            del self._begun[first[0]]


class TokenBudget:
    """Limits the tokens of the language model that a person may use in a day (UTC), with all their accounts together.
    Fills `graph.ports.Budget`."""

    def __init__(self, database: Database, clock: Clock, tokens_a_day: int) -> None:
        self._database = database
        self._clock = clock
        self._most = tokens_a_day

    async def refusal(self, person_id: str) -> str | None:
        """Returns the sentence that tells somebody that today's tokens are used up; `None` when they are not."""
        if self._most == NO_LIMIT:
            return None
        async with self._database.reading() as tx:
            used = await threads.tokens_on(tx, await threads.accounts_of(tx, person_id), self._today())
        if used < self._most:
            return None
        return (
            f"You have used up your {self._most:,} tokens of the language model for today, so I stop here. "
            "From 00:00 UTC on you can ask me again."
        )

    async def spent(self, person_id: str, tokens: int) -> None:
        """Records what an answer cost; nothing is kept while there is no limit."""
        if self._most == NO_LIMIT or not tokens:
            return
        async with self._database.writing_apart(UNLOCKED) as tx:  # one statement adds to what is there
            await threads.add_tokens(tx, person_id, self._today(), tokens)

    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).date().isoformat()


def _sentence(most: str, wait: float) -> str:
    return (
        f"I take {most} within a minute, and this was more, so I have not read it. "
        f"Please send it again in {_seconds(wait)}; until then I leave out what else you send me here."
    )


def _messages(most: int) -> str:
    return "one message" if most == 1 else f"{most} messages"


def _seconds(wait: float) -> str:
    whole = max(1, math.ceil(wait))
    return "a second" if whole == 1 else f"{whole} seconds"
