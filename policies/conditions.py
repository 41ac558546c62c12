"""What an argument must be. A condition is asked of the values found: none, one or, by a path, many.

It fits, does not, or may: a value that fits only when it is read as something else (`"1000"` as a number, `["a"]` as
its one item, `Primary` as `primary`) is one that a tool may well read so, and nobody here can know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from policies.patterns import Likeness, literally, of_glob, perhaps, whole
from policies.values import flag_of, is_nan, numbers_of, same_json, shown, texts_of

Holds = Callable[[Any], bool | None]
"""Whether a value is as wanted; `None`: it would be, were it written otherwise."""


class Condition(Protocol):
    """Whether the values found for an argument are what a rule is about; `str()` says it in words."""

    def fits(self, values: Sequence[Any]) -> bool | None:
        """`values` is empty where the argument is left out. `None`: they would fit, were they written otherwise.
        Raises nothing, whatever the values are."""
        ...


@dataclass(frozen=True)
class Equals:
    """This very JSON value."""

    value: Any

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether one of them is."""
        return any_of(map(self.holds, values))

    def __str__(self) -> str:
        return f"exactly {shown(self.value)}"

    def holds(self, value: Any) -> bool | None:
        """Whether a value is this one."""
        if same_json(self.value, value):
            return True
        return None if self._read_otherwise(value) else False

    @cached_property
    def _read_otherwise(self) -> Likeness:
        wanted = self.value
        match wanted:
            case bool():
                return lambda value: flag_of(value) is wanted
            case str():
                alike = perhaps([literally(wanted)])
                return lambda value: any(map(alike, texts_of(value)))
            case int() | float():
                return lambda value: any(number == wanted for number in numbers_of(value))
            case _:
                return lambda value: False


@dataclass(frozen=True)
class OneOf:
    """One of these very JSON values."""

    options: tuple[Any, ...]

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether one of them is."""
        return any_of(map(self.holds, values))

    def __str__(self) -> str:
        return f"one of {', '.join(map(shown, self.options))}"

    def holds(self, value: Any) -> bool | None:
        """Whether a value is one of them."""
        return any_of(option.holds(value) for option in self.equals)

    @cached_property
    def equals(self) -> tuple[Equals, ...]:
        """Each of them."""
        return tuple(map(Equals, self.options))


@dataclass(frozen=True)
class Regex:
    """Text that fits a regular expression (RE2) as a whole."""

    pattern: str

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether one of them does."""
        return any_of(map(self.holds, values))

    def __str__(self) -> str:
        return f"text like /{self.pattern}/"

    @property
    def expression(self) -> str:
        """In RE2's syntax."""
        return self.pattern

    def holds(self, value: Any) -> bool | None:
        """Whether a value does."""
        exactly, alike = self._likeness
        if not any(map(alike, texts_of(value))):
            return False
        return True if isinstance(value, str) and exactly(value) else None

    @cached_property
    def _likeness(self) -> tuple[Likeness, Likeness]:
        return whole(self.expression), perhaps([self.expression])


@dataclass(frozen=True)
class Glob(Regex):
    """Text that fits a glob as a whole."""

    def __str__(self) -> str:
        return f"text like {shown(self.pattern)}"

    @property
    def expression(self) -> str:
        """In RE2's syntax."""
        return of_glob(self.pattern)


@dataclass(frozen=True)
class Between:
    """A number; both ends are included, `None` is open."""

    low: float | None
    high: float | None

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether one of them is."""
        return any_of(map(self.holds, values))

    def __str__(self) -> str:
        if self.low is None:
            return f"at most {self.high}"
        return f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"

    def holds(self, value: Any) -> bool | None:
        """Whether a value is a number between the two; of what is not a number (NaN) nothing is known."""
        if isinstance(value, int | float) and not isinstance(value, bool) and not is_nan(value):
            return self._includes(value)
        return None if any(is_nan(number) or self._includes(number) for number in numbers_of(value)) else False

    def _includes(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


@dataclass(frozen=True)
class Present:
    """Whether there is a value at all."""

    wanted: bool

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether there is one, or none."""
        return bool(values) is self.wanted

    def __str__(self) -> str:
        return "present" if self.wanted else "left out"


@dataclass(frozen=True)
class Not:
    """Whatever the other does not fit; so it fits where there is no value."""

    condition: Condition

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether the other does not."""
        other = self.condition.fits(values)
        return None if other is None else not other

    def __str__(self) -> str:
        return f"not {self.condition}"


@dataclass(frozen=True)
class AnyOf:
    """At least one of the values fits."""

    condition: Condition

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether one of them does."""
        return any_of(map(_of_each(self.condition), values))

    def __str__(self) -> str:
        return f"any {self.condition}"


@dataclass(frozen=True)
class AllOf:
    """There are values, and every one fits."""

    condition: Condition

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether there are some, and all do."""
        return all_of(map(_of_each(self.condition), values)) if values else False

    def __str__(self) -> str:
        return f"all {self.condition}"


@dataclass(frozen=True)
class Together:
    """All of several conditions."""

    conditions: tuple[Condition, ...]

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether each of the conditions does."""
        return all_of(condition.fits(values) for condition in self.conditions)

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


OfOne = Equals | OneOf | Regex | Between
"""Conditions that look at one value, with `holds`."""


def _of_each(condition: Condition) -> Holds:
    return condition.holds if isinstance(condition, OfOne) else lambda value: condition.fits((value,))


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """Whether one is yes; `None` where none is but one may be."""
    known: bool | None = False
    for answer in answers:
        if answer:
            return True
        known = None if answer is None else known
    return known


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """Whether none is no; `None` where none is but one may be."""
    known: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        known = None if answer is None else known
    return known
