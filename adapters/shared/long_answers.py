"""How many requests that take long are open for one person: streams, and those that wait for what comes of a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from adapters.shared.problems import Problem
from bot.identity.principal import Principal

MOST_OPEN = 32
"""Of one person, in one process: answers that are streamed or waited for."""
AGAIN_SECONDS = 5.0


class LongAnswers:
    """Those that are open here, by whose they are.

    Args:
        most: of one person.
        what: each of them is, as a plural.
    """

    def __init__(self, most: int = MOST_OPEN, what: str = "answers are streamed to or waited for by") -> None:
        self._most = most
        self._what = what
        self._open: Counter[str] = Counter()

    @contextmanager
    def one_more(self, principal: Principal) -> Iterator[None]:
        """Count another one while it is open. Raises `Problem` (429)."""
        person_id = principal.person.person_id
        if self._open[person_id] >= self._most:
            most = f"At most {self._most} {self._what} one person at a time."
            raise Problem(429, most, retry_after=AGAIN_SECONDS)
        self._open[person_id] += 1
        try:
            yield
        finally:
            self._open[person_id] -= 1
            if not self._open[person_id]:
                del self._open[person_id]
