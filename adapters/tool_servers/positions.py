"""Where things stand in a JSON text, so that a mistake in a file can be reported with its line.

The standard library's parser reads the text and reports what is no JSON; the walk here only follows text that is
known to be JSON and notes lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]

DEEPEST = 32
"""Levels of nesting. A configuration needs five; more is a mistake, and would exhaust the stack."""

LONGEST_SCALAR = 100
"""Characters of a number."""

_BLANK = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^ \t\n\r,\]}]+")


class NotJsonError(Exception):
    """The text is not JSON, or not JSON with one meaning. `line` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class LocatedJson:
    """A JSON value and the lines of its parts."""

    value: Any
    keys: Mapping[Path, int]
    """Path of an object's member → line of its key."""
    values: Mapping[Path, int]
    """Path → line on which the value begins; the empty path is the whole."""

    def line_of(self, path: Path, *, key: bool = False) -> int:
        """The line of the value at `path` (or of its key); of the nearest thing around it where there is none."""
        if key and path in self.keys:
            return self.keys[path]
        while path not in self.values:
            path = path[:-1]
        return self.values[path]


def locate(text: str) -> LocatedJson:
    """Parse JSON and note where everything stands. Raises `NotJsonError`."""
    try:
        value = json.loads(text, parse_constant=str, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise NotJsonError(error.lineno, f"not valid JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise NotJsonError(1, "nested too deeply") from None
    walk = _Walk(text)
    walk.value((), walk.skip(0))
    return LocatedJson(value, walk.keys, walk.values)


def _integer(digits: str) -> int:
    # Python refuses to read thousands of digits without saying where: the walk does
    return int(digits) if len(digits) <= LONGEST_SCALAR else 0


class _Walk:
    """Follows valid JSON from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted = 0
        self._line = 1
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}

    def skip(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def value(self, path: Path, at: int) -> int:
        """Note the value that begins at `at`; returns where it ends."""
        self.values[path] = self._line_at(at)
        if len(path) > DEEPEST:
            raise NotJsonError(self.values[path], "nested too deeply")
        match self._text[at]:
            case "{":
                return self._object(path, at)
            case "[":
                return self._array(path, at)
            case '"':
                return self._string(at)[1]
            case _:
                return self._scalar(path, at)

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self._text, at)
        if match is None:  # the parser has accepted the text, so this is a mistake of ours
            raise NotJsonError(self._line_at(at), "a text is expected here")
        return json.loads(match.group()), match.end()

    def _scalar(self, path: Path, at: int) -> int:
        match = _SCALAR.match(self._text, at)
        scalar = match.group() if match else ""
        if scalar.endswith(("NaN", "Infinity")) or len(scalar) > LONGEST_SCALAR:
            raise NotJsonError(self.values[path], f"{scalar[:20]} is not a number that JSON knows")
        return at + len(scalar)

    def _object(self, path: Path, at: int) -> int:
        at = self.skip(at + 1)
        while self._text[at] != "}":
            line = self._line_at(at)
            key, at = self._string(at)
            member = (*path, key)
            if member in self.keys:
                raise NotJsonError(line, f'"{key}" is here for the second time (first on line {self.keys[member]})')
            self.keys[member] = line
            at = self.skip(self.value(member, self.skip(self.skip(at) + 1)))
            if self._text[at] == ",":
                at = self.skip(at + 1)
        return at + 1

    def _array(self, path: Path, at: int) -> int:
        at = self.skip(at + 1)
        index = 0
        while self._text[at] != "]":
            at = self.skip(self.value((*path, index), at))
            index += 1
            if self._text[at] == ",":
                at = self.skip(at + 1)
        return at + 1

    def _line_at(self, at: int) -> int:
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line
