"""JSON paths (RFC 9535) into the arguments of a call, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathQuery
from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment
from jsonpath_rfc9535.selectors import FilterSelector

_ENVIRONMENT = JSONPathEnvironment()


def is_path(key: str) -> bool:
    """Whether the key of an argument is a path rather than a name; arguments may well be called `$filter`."""
    return key.startswith(("$.", "$["))


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
        """What it yields; `None` when the arguments are nested so deeply (100 levels) that `..` gave up."""
        try:
            return [node.value for node in self._query.finditer(dict(arguments))]
        except (JSONPathError, RecursionError):
            return None

    @cached_property
    def _query(self) -> JSONPathQuery:
        try:
            return _ENVIRONMENT.compile(self.text)
        except (JSONPathError, RecursionError, ValueError) as error:
            raise ValueError(f"not a JSON path: {error}".splitlines()[0]) from None
