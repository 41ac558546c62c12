"""JSON paths (RFC 9535) into the arguments of a call, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathQuery
from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment
from jsonpath_rfc9535.selectors import FilterSelector, IndexSelector, NameSelector, SliceSelector, WildcardSelector

from policies.names import other_spellings
from policies.values import Blank, Doubt, Undetermined

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
        several = False
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
                several = several or (
                    not descends and any(isinstance(s, WildcardSelector | SliceSelector) for s in selectors)
                )
        except _OtherKindError:
            return None
        return found

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
        if isinstance(one, Doubt | Undetermined) or level > DEEPEST or (isinstance(one, str) and _is_document(one)):
            raise _OtherKindError
        yield one
        inner = list(one.values()) if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else ()
        waiting += [(item, level + 1) for item in reversed(inner)]


def _is_document(text: str) -> bool:
    """Whether a text is written like an object or a list of JSON, which many servers read as such (FastMCP does)."""
    bare = text.strip(_AROUND)
    return bare[:1] + bare[-1:] in ("{}", "[]")


def _selected(selector: Any, value: Any, *, descends: bool, several: bool) -> Sequence[Any]:
    """What one selector takes of one value."""
    if isinstance(value, Blank):
        return (Blank.MISSING,) if several else ()
    match selector:
        case NameSelector(name=name):
            return _named(name, value, descends=descends, several=several)
        case IndexSelector(index=index):
            items = _items(value, descends=descends)
            return (items[index],) if -len(items) <= index < len(items) else ()
        case SliceSelector(slice=part):
            items = _items(value, descends=descends)
            return items[part] if part.step != 0 else ()  # RFC 9535, 2.3.4.2.2
        case _:
            if isinstance(value, Mapping):
                if isinstance(value, Undetermined):
                    raise _OtherKindError
                return list(value.values())
            return _items(value, descends=descends)


def _named(name: str, value: Any, *, descends: bool, several: bool) -> Sequence[Any]:
    if not isinstance(value, Mapping):
        if descends:
            return ()
        raise _OtherKindError
    if other_spellings(name, value):
        raise _OtherKindError
    if name in value:
        return (value[name],)
    if isinstance(value, Undetermined):
        raise _OtherKindError
    return (Blank.MISSING,) if several and not descends else ()


def _items(value: Any, *, descends: bool) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if descends:
        return ()
    raise _OtherKindError
