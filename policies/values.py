"""JSON values: their kinds, whether two are the same, how they are shown, and where a path finds them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import isfinite
from types import NoneType
from typing import Any

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathQuery
from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment
from jsonpath_rfc9535.selectors import FilterSelector, IndexSelector, NameSelector, SliceSelector, WildcardSelector

from policies.spellings import LONGEST_SPELLED, is_plain, other_spellings


class ValueKind(Enum):
    """The kinds of JSON values. A value is of the kind that it is written as, and of no other."""

    NULL = "null"
    FLAG = "flag"
    NUMBER = "number"
    TEXT = "text"
    LIST = "list"
    MAPPING = "mapping"
    NONE_OF_THEM = "none of them"
    """NaN, infinities, and what is not JSON: nothing is known of them."""


class Blank(Enum):
    """What stands for a value where there is none."""

    UNSET = "unset"
    """Left out, or `null`, where `null` is the tool's own default."""
    MISSING = "missing"
    """What one of several values does not have, such as the address of one of the guests."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One of several values, and nobody knows which."""

    options: tuple[Any, ...]


class Filled(dict[str, Any]):
    """A mapping with the defaults of what it leaves out."""

    def __init__(self, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.given = given
        """As it was before."""
        self.defaults = defaults
        """What it would hold, had it been given empty."""


def gives_nothing(mapping: Mapping[str, Any], levels: int = 100) -> bool:
    """Whether a mapping may be to a tool what an empty one is: all that it gives is `null`, what may be the default, or
    another such mapping; also below so many levels, where nobody looks."""
    given, defaults = (mapping.given, mapping.defaults) if isinstance(mapping, Filled) else (mapping, {})
    return levels == 0 or all(
        given[name] is None
        or _may_be(mapping[name], defaults.get(name, Blank.MISSING))
        or (isinstance(mapping[name], Mapping) and gives_nothing(mapping[name], levels - 1))
        for name in given
    )


def _may_be(filled: Any, default: Any) -> bool:
    if isinstance(default, Doubt):
        return any(_may_be(filled, option) for option in default.options)
    return default is not Blank.MISSING and bool(filled == default)


class Undetermined(Filled):
    """A mapping of which only what is in it is known: what it leaves out may have a default that was not found."""


class Implied(dict[str, Any]):
    """What a mapping that is left out would hold, had it been given empty: many tools make one then (Pydantic's
    `default_factory`), and many do not. What a path finds in it may be there."""


def kind_of(value: Any) -> ValueKind:
    """The kind that a value is written as."""
    match value:
        case str():
            return ValueKind.TEXT
        case bool():
            return ValueKind.FLAG
        case float() if not isfinite(value):
            return ValueKind.NONE_OF_THEM
        case int() | float():
            return ValueKind.NUMBER
        case None:
            return ValueKind.NULL
        case list() | tuple():
            return ValueKind.LIST
        case Mapping():
            return ValueKind.MAPPING
        case _:
            return ValueKind.NONE_OF_THEM


def number_in(text: str) -> int | float | None:
    """The number that a text is, where all tools read the same in it: `-12`, `0.5`, `1200.50`. `None` for all else:
    signs before or after it, separators, exponents, other bases, zeros before it, digits of other scripts, and three
    digits after a point, which may be thousands."""
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def cost_of_reading(values: Iterable[Any], enough: int) -> int:
    """What it costs to compare values with a condition, in about a microsecond: 40 for each, and 2 for each character
    of a text that may be written otherwise. Of texts too long to say, and beyond `enough`, it is not counted on."""
    cost, waiting = 0, list(values)
    while waiting and cost <= enough:
        match waiting.pop():
            case str() as text:
                cost += _EACH if len(text) > LONGEST_SPELLED or is_plain(text) else _EACH + 2 * len(text)
            case Doubt(options=inner) | (list() | tuple() as inner):
                cost += _EACH
                waiting += inner
            case Mapping() as inner:
                cost += _EACH
                waiting += inner.values()
            case _:
                cost += _EACH
    return cost


def flag_in(text: str) -> bool | None:
    """The truth value that a text is for most tools (`yes`, `off`, `0`); `None`: it is none of the usual words."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: `1` and `1.0` are the same, `1` and `true` are not.

    Goes only as deep as `one`, which comes from a policy and is therefore shallow, whatever a model sends as `other`.
    """
    if isinstance(one, _SCALARS):
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        return isinstance(other, _SCALARS) and bool(one == other)
    if isinstance(one, dict) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return False


def shown(value: Any) -> str:
    """A value for an explanation, cut after 60 characters."""
    match value:
        case str():
            return f"“{value[:60]}{'…' if len(value) > 60 else ''}”"
        case None | bool():
            return "null" if value is None else str(value).lower()
        case int() if abs(value) > _LARGEST:
            return "a number beyond all measure"
        case int() | float():
            return str(value)
        case list() | tuple():
            return f"a list of {len(value)}"
        case Mapping():
            return f"a mapping of {len(value)}"
        case Blank():
            return "left out"
        case Doubt():
            return " or ".join(map(shown, value.options[:3]))
        case _:
            return "something that is not JSON"


_EACH = 40
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,2})?")
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "on", "1"}), frozenset({"false", "f", "no", "n", "off", "0"})
_SCALARS = (str, int, float, bool, NoneType)
_LARGEST = 10**30


# ------------------------------------------------------ paths (RFC 9535) into the arguments of a call


DEEPEST = 100
"""Levels that `..` goes down."""
_ENVIRONMENT = JSONPathEnvironment()
_AROUND = " \t\r\n\f\v\0\ufeff\\\"'`"
"""What may stand around JSON in a text."""


def is_path(key: str) -> bool:
    """Whether the key of an argument is a path rather than a name; arguments may well be called `$filter`."""
    return key.startswith(("$.", "$["))


class _OtherKindError(Exception):
    """A path met something else than it is about."""


@dataclass(frozen=True)
class Path:
    """A path such as `$.attendees[*].email`. Raises `ValueError` with a sentence when it is none.

    Filters (`?`) are refused, conditions say the same and cannot be made slow by what a model sends; so is a second
    `..`, which would visit a value as often as it is deep.
    """

    text: str

    def __post_init__(self) -> None:
        segments = self._query.segments
        if any(isinstance(selector, FilterSelector) for segment in segments for selector in segment.selectors):
            raise ValueError("filters (?) are not supported: write a condition with any or all")
        if sum(isinstance(segment, JSONPathRecursiveDescentSegment) for segment in segments) > 1:
            raise ValueError("“..” may be used once")

    @cached_property
    def several(self) -> bool:
        """Whether it can yield more than one value."""
        return not self._query.singular_query()

    def values(self, arguments: Mapping[str, Any]) -> list[Any] | None:
        """What it yields: nothing where a mapping or list does not go on, and `Blank.MISSING` for each of several
        values that does not.

        `None`, could not be found out: it met another kind of value (a text where it wants a list; below `..`, a text
        that a tool may read as an object or a list), a name that is written otherwise, a mapping or value of which not
        all is known, or more than 100 levels below `..`.
        """
        found: list[Any] = [arguments]
        several = descends = False
        try:
            for segment in self._query.segments:
                descends = isinstance(segment, JSONPathRecursiveDescentSegment)
                if descends:
                    found = [inner for value in found for inner in _descendants(value)]
                selectors = segment.selectors
                found = [
                    inner
                    for value in found
                    for selector in selectors
                    for inner in _selected(selector, value, descends=descends, several=several)
                ]
                several = several or descends or _takes_several(selectors)
        except _OtherKindError:
            return None
        if not any(isinstance(value, Implied) for value in found):
            return found
        left_out = (Blank.MISSING,) if several and not descends else ()
        return [one for value in found for one in (left_out if isinstance(value, Implied) else (value,))]

    @cached_property
    def _query(self) -> JSONPathQuery:
        try:
            return _ENVIRONMENT.compile(self.text)
        except (JSONPathError, RecursionError, ValueError) as error:
            raise ValueError(f"not a JSON path: {error}".splitlines()[0]) from None


def _descendants(value: Any) -> Iterator[Any]:
    waiting = [(value, 0)]
    while waiting:
        one, level = waiting.pop()
        if isinstance(one, Undetermined) or level > DEEPEST or (isinstance(one, str) and is_document(one)):
            raise _OtherKindError
        if isinstance(one, Doubt) and not (one.options and all(map(_is_single, one.options))):
            raise _OtherKindError
        yield one
        inner = _inner(one) if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else ()
        waiting += [(item, level + 1) for item in reversed(inner)]


def _is_single(value: Any) -> bool:
    """Whether nothing is below a value."""
    if isinstance(value, str):
        return not is_document(value)
    return isinstance(value, (Blank, *_SCALARS))


def _inner(mapping: Mapping[str, Any]) -> list[Any]:
    values = list(mapping.values())
    return [*map(_perhaps, values)] if isinstance(mapping, Implied) else values


def _perhaps(value: Any) -> Any:
    """A value that may be there, or not."""
    match value:
        case Implied() | Undetermined():
            return value
        case Mapping():
            return Implied(value)
        case Doubt(options=options):
            return Doubt((*options, Blank.MISSING)) if options else value
        case _:
            return Doubt((value, Blank.MISSING))


def is_document(text: str) -> bool:
    """Whether a text is written like an object or a list of JSON, which many servers read as such (FastMCP does)."""
    bare = text.strip(_AROUND)
    return bare[:1] + bare[-1:] in ("{}", "[]")


def _takes_several(selectors: Sequence[Any]) -> bool:
    return len(selectors) > 1 or any(isinstance(one, WildcardSelector | SliceSelector) for one in selectors)


def _selected(selector: Any, value: Any, *, descends: bool, several: bool) -> Sequence[Any]:
    """What one selector takes of one value."""
    if isinstance(value, Blank):
        return (Blank.MISSING,) if several else ()
    match selector:
        case NameSelector(name=name):
            return _named(name, value, descends=descends, several=several)
        case IndexSelector(index=index):
            items = _items(value, descends=descends)
            if -len(items) <= index < len(items):
                return (items[index],)
            return (Blank.MISSING,) if several and not descends else ()
        case SliceSelector(slice=part):
            items = _items(value, descends=descends)
            return items[part] if part.step != 0 else ()  # RFC 9535, 2.3.4.2.2
        case _:
            if isinstance(value, Mapping):
                if isinstance(value, Undetermined):
                    raise _OtherKindError
                return _inner(value)
            return _items(value, descends=descends)


def _named(name: str, value: Any, *, descends: bool, several: bool) -> Sequence[Any]:
    if not isinstance(value, Mapping):
        if descends:
            return ()
        raise _OtherKindError
    if other_spellings(name, value):
        raise _OtherKindError
    if name in value:
        return (_perhaps(value[name]) if isinstance(value, Implied) else value[name],)
    if isinstance(value, Undetermined):
        raise _OtherKindError
    return (Blank.MISSING,) if several and not descends else ()


def _items(value: Any, *, descends: bool) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if descends:
        return ()
    raise _OtherKindError
