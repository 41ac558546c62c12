"""Where things stand in a JSON text, so that a mistake in a file can be reported with its line.

The standard library's parser reads the text and reports what is no JSON; here its tokens are only followed, to note
their lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ValuePosition = tuple[str | int, ...]
DEEPEST = 32
"""Levels of nesting. A configuration needs five; more is a mistake, and would exhaust the stack."""
LONGEST_SCALAR = 100
"""Characters of a number."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^ \t\n\r,:{}\[\]"]+')


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
    keys: Mapping[ValuePosition, int]
    """Path of an object's member → line of its key."""
    values: Mapping[ValuePosition, int]
    """Path → line on which the value begins; the empty path is the whole."""

    def line_of(self, path: ValuePosition, *, key: bool = False) -> int:
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
    keys: dict[ValuePosition, int] = {}
    values: dict[ValuePosition, int] = {}
    path: list[str | int] = []  # to the value that is read; its last step belongs to the innermost list or object
    open_brackets: list[str] = []
    line, counted = 1, 0
    is_key = False
    for found in _TOKEN.finditer(text):
        part = found.group()
        line += text.count("\n", counted, found.start())
        counted = found.start()
        if part in "}]":
            open_brackets.pop()
            path.pop()
        elif part == ",":
            is_key = open_brackets[-1] == "{"
        elif is_key:
            path[-1] = key = json.loads(part)
            if tuple(path) in keys:
                first = keys[tuple(path)]
                raise NotJsonError(line, f'"{key}" is here for the second time (first on line {first})')
            keys[tuple(path)] = line
        elif part != ":":
            if open_brackets and open_brackets[-1] == "[":
                path[-1] = int(path[-1]) + 1
            values[tuple(path)] = line
            if len(path) > DEEPEST:
                raise NotJsonError(line, "nested too deeply")
            if part.endswith(("NaN", "Infinity")) or (part[0] != '"' and len(part) > LONGEST_SCALAR):
                raise NotJsonError(line, f"{part[:20]} is not a number that JSON knows")
            if part in "{[":
                open_brackets.append(part)
                path.append(-1)
        is_key = part == "{" or (is_key and part == ",")
    return LocatedJson(value, keys, values)


def _integer(digits: str) -> int:
    # Python refuses to read thousands of digits without saying where; that is found out afterwards.
    return int(digits) if len(digits) <= LONGEST_SCALAR else 0
