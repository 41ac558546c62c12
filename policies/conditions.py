"""What an argument must be. A condition is asked of the values found: none, one or, by a path, many.

It fits, does not, or may. A value is read strictly, as the kind that it is written as (`policies.values.ValueKind`). Of
one of another kind than the condition is about, nothing is known: tools make numbers of texts, one value of a list, a
truth value of anything, and nobody here can know what a given tool makes of it. And a text may be another one to a
tool, once it is trimmed, decoded or split (`policies.spellings`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from policies.patterns import Likeness, certainly, of_glob, perhaps, perhaps_one_of
from policies.spellings import LONGEST_SPELLED, composed, other_spellings
from policies.values import Blank, Doubt, ValueKind, flag_in, gives_nothing, kind_of, number_in, same_json, shown

Holds = Callable[[Any], bool | None]
"""Whether a value is as wanted; `None`: it may be."""


class Condition(Protocol):
    """Whether the values found for an argument are what a rule is about; `str()` says it in words."""

    def fits(self, values: Sequence[Any]) -> bool | None:
        """`values` is empty where the argument is left out. `None`: they may fit, nobody can know. Raises nothing,
        whatever the values are."""
        ...


class _OfAValue:
    """A condition on one value, which fits where it holds for one of them."""

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether it holds for one of them."""
        return any_of(_settled(self.holds, value) for value in values)

    def holds(self, value: Any) -> bool | None:
        """Whether it holds for a value; `None`: it may."""
        raise NotImplementedError


@dataclass(frozen=True)
class OneOf(_OfAValue):
    """One of these very JSON values."""

    options: tuple[Any, ...]

    def __str__(self) -> str:
        return f"one of {', '.join(map(shown, self.options))}"

    def holds(self, value: Any) -> bool | None:
        """Whether a value is one of them. It may be where it is of another kind than all of them, or is only written
        otherwise."""
        if value is Blank.UNSET:
            return None in self.options
        kind = kind_of(value)
        if kind in _SCALARS:
            if (kind, value) in self._scalars:
                return True
        elif any(same_json(option, value) for option in self._others):
            return True
        if kind not in self._kinds:
            if not self._kinds - {ValueKind.NULL}:
                return None if self.options and _is_empty(value) else False
            return False if kind is ValueKind.TEXT and self._is_plainly_another_number(value) else None
        if self._scalars and (kind not in _SCALARS or self._scalars_alike[kind](value)):
            return None
        return None if any(alike(value) for alike in self._alike) else False

    def _is_plainly_another_number(self, text: str) -> bool:
        """Whether only numbers are wanted, and a text is plainly a number that is none of them."""
        return (
            self._kinds == {ValueKind.NUMBER}
            and number_in(text) is not None
            and not self._scalars_alike[ValueKind.TEXT](text)
        )

    @cached_property
    def _kinds(self) -> frozenset[ValueKind]:
        return frozenset(map(kind_of, self.options))

    @cached_property
    def _scalars(self) -> frozenset[tuple[ValueKind, Any]]:
        """The texts, numbers and truth values, which are looked up, since these lists may be long."""
        return frozenset((kind, option) for option in self.options if (kind := kind_of(option)) in _SCALARS)

    @cached_property
    def _scalars_alike(self) -> Mapping[ValueKind, Callable[[Any], object]]:
        """Kind of a value → what says whether it may be meant as one of those."""
        return {kind: _one_otherwise(self._scalars, kind) for kind in _SCALARS}

    @cached_property
    def _others(self) -> tuple[Any, ...]:
        return tuple(option for option in self.options if kind_of(option) not in _SCALARS)

    @cached_property
    def _alike(self) -> tuple[Callable[[Any], object], ...]:
        return tuple(map(_written_otherwise, self._others))


@dataclass(frozen=True)
class Equals:
    """This very JSON value."""

    value: Any

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether one of them is."""
        return self._one_of.fits(values)

    def __str__(self) -> str:
        return f"exactly {shown(self.value)}"

    @cached_property
    def _one_of(self) -> OneOf:
        return OneOf((self.value,))


@dataclass(frozen=True)
class Regex(_OfAValue):
    """Text that fits a regular expression (RE2) as a whole."""

    pattern: str

    def __str__(self) -> str:
        return f"text like /{self.pattern}/"

    @property
    def expression(self) -> str:
        """The condition in RE2's syntax."""
        return self.pattern

    def holds(self, value: Any) -> bool | None:
        """Whether a value does."""
        if value is Blank.UNSET:
            return False
        surely, alike = self._likeness
        if not isinstance(value, str):
            return None
        if not alike(value):
            return False
        return True if surely(value) else None

    @cached_property
    def _likeness(self) -> tuple[Likeness, Likeness]:
        return certainly(self.expression), perhaps([self.expression])


@dataclass(frozen=True)
class Glob(Regex):
    """Text that fits a glob as a whole."""

    def __str__(self) -> str:
        return shown(self.pattern) if is_literal(self.pattern) else f"text like {shown(self.pattern)}"

    @property
    def expression(self) -> str:
        """The condition in RE2's syntax."""
        return of_glob(self.pattern)

    @cached_property
    def _likeness(self) -> tuple[Likeness, Likeness]:
        if is_literal(self.pattern):
            return lambda value: value == self.pattern, _text_like(self.pattern)
        return certainly(self.expression), perhaps([self.expression])


@dataclass(frozen=True)
class Between(_OfAValue):
    """`min` and `max`: a number; both ends are included, `None` is open."""

    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None:
            return f"at most {self.high}"
        return f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"

    def holds(self, value: Any) -> bool | None:
        """Whether a value is a number between the two. A text may be, unless it is plainly another number."""
        match kind_of(value):
            case ValueKind.NUMBER:
                exactly = self._includes(value)
                return exactly if exactly is self._includes(_rounded(value)) else None
            case ValueKind.TEXT:
                number = number_in(value)
                return None if number is None or self._includes(number) else False
            case _:
                return False if value is Blank.UNSET else None

    def _includes(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


@dataclass(frozen=True)
class Present:
    """Whether there is a value at all. Of `null` nobody knows: to many tools it is the same as leaving it out."""

    wanted: bool

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether there is one, or none."""
        there = any_of(map(_is_there, values))
        return None if there is None else there is self.wanted

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
        return any_of(self.condition.fits(() if value is Blank.MISSING else (value,)) for value in values)

    def __str__(self) -> str:
        return f"any {self.condition}"


@dataclass(frozen=True)
class AllOf:
    """There are values, and every one fits."""

    condition: Condition

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether there are some, and all do."""
        return all_of(map(self._of_one, values)) if values else False

    def __str__(self) -> str:
        return f"all {self.condition}"

    def _of_one(self, value: Any) -> bool | None:
        """Whether one value fits; `None` for a field that it does not have (a guest without an address)."""
        if value is Blank.MISSING:
            return True if self.condition.fits(()) else None
        return self.condition.fits((value,))


@dataclass(frozen=True)
class AllConditions:
    """All of several conditions."""

    conditions: tuple[Condition, ...]

    def fits(self, values: Sequence[Any]) -> bool | None:
        """Whether each of the conditions does."""
        return all_of(condition.fits(values) for condition in self.conditions)

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


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


def is_literal(pattern: str) -> bool:
    """Whether a glob has nothing in it that stands for something else."""
    return not _SIGNS_OF_A_GLOB.search(pattern)


def says_more_than_its_letters(text: str) -> bool:
    """Whether a text is also a number or a truth value, which other texts mean too (`5000` and `5,000`)."""
    return number_in(text) is not None or text.strip().lower() in _FLAG_WORDS


def _settled(holds: Holds, value: Any) -> bool | None:
    """What a condition says of a value, or of all that it may be."""
    match value:
        case Doubt():
            answers = {_settled(holds, option) for option in value.options}
            return answers.pop() if len(answers) == 1 else None
        case Blank.MISSING:
            return False
        case _:
            return holds(value)


def _is_there(value: Any) -> bool | None:
    match value:
        case Doubt():
            answers = set(map(_is_there, value.options))
            return answers.pop() if len(answers) == 1 else None
        case Blank():
            return False
        case _:
            return None if value is None else True


def _one_otherwise(scalars: Collection[tuple[ValueKind, Any]], kind: ValueKind) -> Callable[[Any], object]:
    """Whether a text, number or truth value of this kind, none of those wanted, may be meant as one of them."""
    numbers = {_rounded(wanted) for other, wanted in scalars if other is kind is ValueKind.NUMBER}
    as_text = _text_like(
        *(_as_text(wanted) for other, wanted in scalars if kind is ValueKind.TEXT or other is not kind)
    )

    def alike(value: Any) -> object:
        return (bool(numbers) and _rounded(value) in numbers) or as_text(_as_text(value))

    return alike


def _written_otherwise(wanted: Any) -> Callable[[Any], object]:
    """Whether a value may be meant as a list, a mapping or nothing that it is not."""
    kind = kind_of(wanted)

    def alike(value: Any) -> object:
        other = kind_of(value)
        if kind is ValueKind.NULL:
            return _is_empty(value)
        if kind is ValueKind.LIST and other is kind:
            return _list_like(wanted, value)
        if kind is ValueKind.MAPPING and other is kind:
            return _mapping_like(wanted, value)
        return True

    return alike


_SCALARS = frozenset({ValueKind.TEXT, ValueKind.NUMBER, ValueKind.FLAG})
_SIGNS_OF_A_GLOB = re.compile(r"[*?\[]")
_FLAG_WORDS = frozenset({"true", "false", "yes", "no", "on", "off"})
_NO_DECIMAL = re.compile(r"[0-9]\s*[ekmbxo]|[xbo]\s*[0-9]", re.IGNORECASE)
_EMPTY = frozenset({"", "null", "none", "nil", "undefined", "nan", "n/a"})


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, float | int) and abs(value) < 10**30 else ""


def _is_empty(value: Any) -> bool:
    """Whether a value is one that tools take for none."""
    if isinstance(value, str):
        return value.strip().lower() in _EMPTY
    if isinstance(value, Mapping):
        return gives_nothing(value)
    return not value or kind_of(value) is ValueKind.NONE_OF_THEM


def _rounded(number: float) -> float:
    """A number as JavaScript, and many others, keep it."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _text_like(*wanted: str) -> Likeness:
    """Whether a text may be meant as one of others; a number or a truth value is meant by its other spellings too."""
    alike = perhaps_one_of(wanted)
    flags = {flag_in(text) for text in wanted if text.strip().lower() in _FLAG_WORDS}
    numbers = {number: text for text in wanted if (number := number_in(text)) is not None}
    digits = frozenset(map(_digits, numbers.values()))

    def may_be(text: str) -> bool:
        if alike(text):
            return True
        if flags and ((said := flag_in(text)) is None or said in flags):
            return True
        return bool(numbers) and _number_like(numbers, digits, text)

    return may_be


def _number_like(numbers: Collection[float], digits: Collection[str], text: str) -> bool:
    """Whether a text may be read as one of some numbers: by its digits, whatever stands around and between them."""
    plainly = number_in(text)
    if plainly is not None:
        return plainly in numbers
    flag = flag_in(text)
    if flag is not None or len(text) > LONGEST_SPELLED:
        return flag is None or flag in numbers
    plain = composed(text)
    return _NO_DECIMAL.search(plain) is not None or _digits(plain) in digits


def _digits(text: str) -> str:
    return "".join(str(unicodedata.digit(c)) for c in text if c.isdigit()).strip("0")


def _list_like(wanted: Sequence[Any], value: Sequence[Any]) -> bool:
    """Whether two lists may be meant as the same: in another order, with items twice, or written otherwise."""
    one_of = OneOf(tuple(wanted))
    return all(one_of.holds(item) is not False for item in value) and all(
        Equals(item).fits(value) is not False for item in wanted
    )


def _mapping_like(wanted: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether two mappings may be meant as the same: tools often overlook what they do not know. An empty one is meant
    only by those that give nothing."""
    if not wanted:
        return gives_nothing(value)
    return all(
        Equals(inner).fits((value[key],)) is not False if key in value else other_spellings(key, value)
        for key, inner in wanted.items()
    )


# ------------------------------------------------------------- times of the week at which a rule fits

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_OF_A_DAY = 24 * 60
_EARLIEST, _LATEST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
"""First and last time; beyond them the calendar ends in some zone."""


@dataclass(frozen=True)
class Hours:
    """Days and minutes of the day, by the wall clock of a time zone."""

    zone: str
    """A name of the IANA database (`Europe/Berlin`, `UTC`)."""
    days: frozenset[int] = frozenset(range(7))
    """Weekdays, Monday is 0. A time that goes over midnight belongs to the day on which it began."""
    start: int = 0
    """Minute of the day from which it fits."""
    end: int = MINUTES_OF_A_DAY
    """Minute of the day from which it no longer fits; before `start`: on the next day."""

    def include(self, local: datetime) -> bool:
        """Whether a time, local to their zone, is among them."""
        minute, today = local.hour * 60 + local.minute, local.weekday()
        if self.start < self.end:
            return today in self.days and self.start <= minute < self.end
        yesterday = (today - 1) % len(DAYS)
        return (minute >= self.start and today in self.days) or (minute < self.end and yesterday in self.days)

    def __str__(self) -> str:
        days = "" if len(self.days) == len(DAYS) else f"{', '.join(DAYS[day] for day in sorted(self.days))} "
        start, end = (f"{minute // 60:02}:{minute % 60:02}" for minute in (self.start, self.end))
        return f"{days}{start} to {end} ({self.zone})"


def local_time(at: datetime, zone: str) -> datetime:
    """An (aware) time by the wall clock of a zone, but not beyond the calendar's ends."""
    return min(max(at, _EARLIEST), _LATEST).astimezone(ZoneInfo(zone))


def in_words(local: datetime) -> str:
    """Day and time: `fri 17:30`."""
    return f"{DAYS[local.weekday()]} {local:%H:%M}"
