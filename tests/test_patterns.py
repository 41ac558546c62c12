"""Rule 13: no regular expression of the product takes time that doubles with each character.

Python's `re` tries every way in which a text can be divided among the parts of a pattern. In `(?:-?[a-z]+)*` thirty
letters can be divided in a billion ways, and all are tried when what follows does not fit.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from re import _constants, _parser  # type: ignore[attr-defined]  # what `re` itself reads patterns with
from typing import Any

import pytest

PACKAGES = ("adapters", "bot", "demo_model", "graph", "policies", "servers", "translations")


def module_names() -> Iterator[str]:
    yield "app"
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        found = (each.name for each in pkgutil.walk_packages(path, f"{package}."))
        yield from (name for name in found if "migrations" not in name and not name.endswith("__main__"))


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    match value:
        case re.Pattern():
            yield value
        case Mapping():
            for each in value.values():
                yield from patterns_in(each)
        case tuple() | list() | set() | frozenset():
            for each in value:
                yield from patterns_in(each)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for each in fields(value):
                yield from patterns_in(getattr(value, each.name, None))


def test_no_pattern_can_divide_a_text_in_ever_more_ways() -> None:
    patterns = {
        (name, pattern.pattern, pattern.flags)
        for name in module_names()
        for pattern in patterns_in(vars(importlib.import_module(name)))
    }
    assert len(patterns) > 150
    assert [each for each in sorted(patterns, key=str) if is_ambiguous(each[1], each[2])] == []


@pytest.mark.parametrize("pattern", ["(?:-?[a-z]+)*x", "([a-z]+)+$", "(?:[ab]|b+ *)*c", "(?:(?:a|b+)c?)*d", "(a*)*"])
def test_such_a_pattern_is_found(pattern: str) -> None:
    assert is_ambiguous(pattern, 0)


@pytest.mark.parametrize("pattern", ["(?:-[a-z]+)*x", "(?:a+,)*", "(?:a++ *)*+x", "(?:[a-z]+[0-9])*"])
def test_others_are_not(pattern: str) -> None:
    assert not is_ambiguous(pattern, 0)


def is_ambiguous(pattern: str | bytes, flags: int) -> bool:
    """Whether something is repeated without end that can itself be nothing but a repetition without end."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    keep = flags & ~re.UNICODE if isinstance(pattern, bytes) else flags
    return any(
        _is_endless(op, arguments) and _may_be_endless_alone(arguments[2])
        for op, arguments in _parts(_parser.parse(text, keep))
    )


def _parts(parsed: Any) -> Iterator[tuple[Any, Any]]:
    for op, arguments in parsed:
        yield op, arguments
        for inner in _inner(op, arguments):
            yield from _parts(inner)


def _inner(op: Any, arguments: Any) -> list[Any]:
    if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        return [arguments[2]]
    if op is _constants.SUBPATTERN:
        return [arguments[3]]
    if op is _constants.BRANCH:
        return list(arguments[1])
    if op in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [arguments[1]]
    return [arguments] if op is _constants.ATOMIC_GROUP else []


def _is_endless(op: Any, arguments: Any) -> bool:
    return op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and arguments[1] is _constants.MAXREPEAT


def _may_be_endless_alone(parsed: Any) -> bool:
    """Whether what a pattern fits may come from one repetition without end, and nothing beside it."""
    parts = list(parsed)
    others = [sum(_least(each) for each in parts[:at] + parts[at + 1 :]) for at in range(len(parts))]
    return any(
        without == 0
        and (
            _is_endless(op, arguments)
            or any(map(_may_be_endless_alone, _inner(op, arguments) if op in _GROUPS else []))
        )
        for without, (op, arguments) in zip(others, parts, strict=True)
    )


_GROUPS = (_constants.SUBPATTERN, _constants.BRANCH, _constants.MAX_REPEAT, _constants.MIN_REPEAT)


def _least(part: Any) -> int:
    """How many characters a part takes at the least."""
    least: int = _parser.SubPattern(_parser.State(), [part]).getwidth()[0]
    return least
