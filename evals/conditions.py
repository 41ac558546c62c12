"""What an argument of a call has to be. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from evals.dates import Moment, moment_of

LONGEST_LOOKED_AT = 20_000
"""Characters of a text that a pattern looks at."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known while a conversation is held.

    Attributes:
        now: when it was begun, UTC.
        ids: the ids of events, tasks and documents, by kind and title; several where titles are the same.
    """

    now: datetime
    ids: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)


class Condition(Protocol):
    """Says of a value whether it is right."""

    def fits(self, value: Any, known: Known) -> bool:
        """`value`: `None` where the argument is left out."""
        ...


@dataclass(frozen=True, slots=True)
class Same:
    """The same value; of texts neither capital letters nor a stop at the end matter."""

    wanted: str | int | float | bool

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is the same."""
        if isinstance(self.wanted, str):
            return isinstance(value, str) and _plain(value) == _plain(self.wanted)
        return value is not None and value == self.wanted and isinstance(value, bool) == isinstance(self.wanted, bool)


@dataclass(frozen=True, slots=True)
class Like:
    """A text in which a pattern is found; capital letters do not matter."""

    pattern: re.Pattern[str]

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is found."""
        return isinstance(value, str) and self.pattern.search(value[:LONGEST_LOOKED_AT]) is not None


@dataclass(frozen=True, slots=True)
class At:
    """This very moment, in whatever time zone it is written."""

    wanted: Moment

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is."""
        return moment_of(value) == self.wanted.moment(known.now)


@dataclass(frozen=True, slots=True)
class AtMost:
    """This moment, or one before it."""

    wanted: Moment

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is."""
        at = moment_of(value)
        return at is not None and at <= self.wanted.moment(known.now)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """This moment, or one after it."""

    wanted: Moment

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is."""
        at = moment_of(value)
        return at is not None and at >= self.wanted.moment(known.now)


@dataclass(frozen=True, slots=True)
class OnDay:
    """This day, `2026-12-03`."""

    wanted: Moment

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is."""
        return isinstance(value, str) and value.strip() == self.wanted.day(known.now).isoformat()


@dataclass(frozen=True, slots=True)
class IdOf:
    """The id of an event, a task or a document, by its title."""

    kind: str
    title: str

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is."""
        return isinstance(value, str) and value.strip().lower() in known.ids.get((self.kind, self.title), frozenset())


@dataclass(frozen=True, slots=True)
class Includes:
    """A list that has an entry for each of these patterns, and no further ones."""

    patterns: Sequence[re.Pattern[str]]

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it has."""
        if not isinstance(value, list) or len(value) != len(self.patterns):
            return False
        return all(any(Like(pattern).fits(each, known) for each in value) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Absent:
    """Left out, or empty."""

    def fits(self, value: Any, known: Known) -> bool:
        """Whether it is."""
        return value is None or value in ("", [])


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of several."""

    conditions: Sequence[Condition]

    def fits(self, value: Any, known: Known) -> bool:
        """Whether one of them fits."""
        return any(condition.fits(value, known) for condition in self.conditions)


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()
