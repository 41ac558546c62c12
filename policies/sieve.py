"""Which of many rules can be about a call at all: what is asked of one argument by many rules is asked at once.

A thousand regular expressions cost a thousand questions; put together in one, they cost little more than one. What
gets through is held against its rule as usual, so a sieve decides nothing. It only must never keep back what would fit
or may fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from policies.commands import within
from policies.conditions import (
    AllOf,
    AnyOf,
    Between,
    Condition,
    Equals,
    Glob,
    OneOf,
    Regex,
    Together,
    is_literal,
    says_more_than_its_letters,
)
from policies.match import Match
from policies.matching import Values, values_at
from policies.patterns import NOTHING, Likeness, literally, of_glob, perhaps
from policies.references import is_group
from policies.subject import Subject
from policies.values import Kind, kind_of, number_in

TOGETHER = 64
"""Rules that are asked at once; RE2 is quickest with some dozens of patterns in one."""
WORTH_IT = 4
"""Rules about one argument from which on it is asked for all of them at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a value must be like, at the least: text like one of `texts`, or a number from `low` to `high`."""

    texts: tuple[str, ...] = ()
    """Regular expressions (RE2)."""
    low: float = float("inf")
    high: float = float("-inf")

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(self.texts + other.texts, min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True, slots=True)
class Question:
    """What many rules ask of one argument."""

    key: str
    values: Values
    may_be_text: Likeness
    wants_text: bool
    low: float
    high: float
    asking: int
    """The rules that ask it, a bit for each."""

    def excludes(self, subject: Subject) -> bool:
        """Whether no value can be what any of them wants."""
        values = self.values(subject)
        if values is None or subject.is_too_much(self.key, values):
            return False
        return not any(map(self._may_be, values))

    def _may_be(self, value: Any) -> bool:
        match value:
            case str():
                if self.may_be_text(value):
                    return True
                number = number_in(value) if self.low <= self.high else None
                return self.low <= self.high if number is None else self._includes(number)
            case bool():
                return True  # seldom asked about, and not worth being asked about quickly
            case int() | float():
                return self.wants_text or self._includes(value)
            case _:
                return True

    def _includes(self, number: float) -> bool:
        # What JavaScript rounds may be on the other side of an end.
        return not (number < self.low or number > self.high) or abs(number) > _EXACT


@dataclass(frozen=True, slots=True)
class Sieve:
    """Questions about some rules."""

    questions: tuple[Question, ...]
    everything: int
    """A bit for each rule."""

    def left(self, subject: Subject) -> int:
        """The rules that may be about a call, a bit for each, the first one lowest."""
        left = self.everything
        for question in self.questions:
            if left & question.asking and question.excludes(subject):
                left &= ~question.asking
        return left


def sieve_of(matches: Sequence[Match]) -> Sieve:
    """The questions worth asking about these rules."""
    asked: defaultdict[str, list[tuple[int, Values, Wanted]]] = defaultdict(list)
    for number, match in enumerate(matches):
        for key, values, wanted in _questions_of(match):
            asked[key].append((1 << number, values, wanted))
    together = (_together(key.removeprefix("args."), each) for key, each in asked.items() if len(each) >= WORTH_IT)
    return Sieve(tuple(question for question in together if question is not None), (1 << len(matches)) - 1)


def _together(key: str, askings: Sequence[tuple[int, Values, Wanted]]) -> Question | None:
    wanted, asking = Wanted(), 0
    for bit, _, each in askings:
        wanted, asking = wanted | each, asking | bit
    try:
        return Question(
            key, askings[0][1], perhaps(wanted.texts or (NOTHING,)), bool(wanted.texts), wanted.low, wanted.high, asking
        )
    except ValueError:
        return None  # together they are too large for RE2


def _questions_of(match: Match) -> Iterable[tuple[str, Values, Wanted]]:
    for argument in match.args:
        wanted = _wanted(argument.condition)
        if wanted is not None:
            yield f"args.{argument.key}", values_at(argument), wanted
    if match.requester and not any(map(is_group, match.requester)):
        yield "requester", lambda subject: (subject.facts.requester,), Wanted(tuple(map(literally, match.requester)))
    if match.channel is not None:
        yield "channel", lambda subject: (subject.facts.place,), Wanted((of_glob(match.channel),))
    if match.command is not None:
        yield (
            "command",
            _command_line,
            Wanted((within(match.command), of_glob(" ".join(match.command.lower().split())))),
        )


def _command_line(subject: Subject) -> Sequence[str] | None:
    command = subject.command
    if command is None:
        return ()
    return (command.line,) if command.readable else None


def _wanted(condition: Condition) -> Wanted | None:
    """`None`: it can fit what is not there, or too many kinds of values."""
    match condition:
        case Glob(pattern=text) | Equals(value=str() as text) if _means_more(condition, text):
            return None
        case Regex():
            return Wanted((condition.expression,))
        case Equals(value=str() as text):
            return Wanted((literally(text),))
        case Equals(value=bool()):
            return None
        case Equals(value=int() | float() as number):
            return Wanted(low=number, high=number) if kind_of(number) is Kind.NUMBER else None
        case Between(low=low, high=high):
            return Wanted(low=float("-inf") if low is None else low, high=float("inf") if high is None else high)
        case OneOf(options=options):
            each = [_wanted(Equals(option)) for option in options]
            return None if None in each else reduce(or_, filter(None, each), Wanted())
        case AnyOf() | AllOf():
            return _wanted(condition.condition)
        case Together():
            return next(filter(None, map(_wanted, condition.conditions)), None)
        case _:
            return None


def _means_more(condition: Condition, text: str) -> bool:
    """Whether text unlike this one may be meant as it: not what regular expressions can ask."""
    return says_more_than_its_letters(text) and (not isinstance(condition, Glob) or is_literal(text))


_EXACT = 2.0**53
