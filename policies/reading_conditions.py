"""The conditions on arguments in a policy file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from policies.conditions import AllOf, AnyOf, Between, Condition, Equals, Glob, Not, OneOf, Present, Regex, Together
from policies.match import Argument
from policies.reading_values import flag, not_empty, only_keys
from policies.yaml_lines import LineError, Located

_OF_ONE = frozenset({"equals", "glob", "regex", "in", "min", "max", "present", "not"})
_OF_AN_ITEM = _OF_ONE - {"present"}
_OF_SEVERAL = frozenset({"any", "all", "present", "not"})


def read_arguments(node: Located, what: str) -> tuple[Argument, ...]:
    """All that `args` says. Raises `LineError`."""
    return tuple(_argument(key, value) for key, value in not_empty(node, what).items())


def says_something_of_absence(node: Located) -> bool:
    """Whether a condition is explicit about arguments that are left out."""
    return isinstance(node.value, dict) and "present" in node.value


def _argument(key: str, node: Located) -> Argument:
    try:
        argument = Argument.of(key, Present(wanted=True))
    except ValueError as error:
        raise LineError(node.key_line, f"args: “{key[:60]}”: {error}") from None
    several = argument.path is not None and argument.path.several
    condition = _of_several(key, node) if several else _of_one(key, node)
    return Argument(key, condition, argument.path)


def _of_one(key: str, node: Located, keys: frozenset[str] = _OF_ONE) -> Condition:
    if isinstance(node.value, str):
        return Glob(node.value)
    if not isinstance(node.value, dict):
        return Equals(node.plain())
    entries = not_empty(node, f"the condition on {key}")
    for word in ("any", "all"):
        if word in entries:
            where = entries[word].key_line
            raise LineError(where, f"{word} is for paths that yield several values, such as “$.{key}[*]”")
    unknown = next((entry for name, entry in entries.items() if name not in keys), None)
    if unknown is not None and not any(name in keys for name in entries):
        known = ", ".join(sorted(keys))
        raise LineError(
            unknown.key_line, f"{key} must be {known}; to compare it with this very mapping write equals: {{…}}"
        )
    only_keys(entries, keys, f"the condition on {key}")
    return _together(key, entries, lambda inner: _of_one(key, inner, keys))


def _of_several(key: str, node: Located) -> Condition:
    if not isinstance(node.value, dict) or not any(name in _OF_SEVERAL for name in node.value):
        raise LineError(node.line, f"{key} can yield several values: write “any: …” or “all: …”")
    only_keys(node.value, _OF_SEVERAL, f"the condition on {key}")
    return _together(key, node.value, lambda inner: _of_several(key, inner))


def _together(key: str, entries: Mapping[str, Located], negated: Callable[[Located], Condition]) -> Condition:
    read = [_READERS[name](key, entry) for name, entry in entries.items() if name in _READERS]
    if "min" in entries or "max" in entries:
        read.append(_between(entries))
    if "not" in entries:
        read.append(Not(negated(entries["not"])))
    return read[0] if len(read) == 1 else Together(tuple(read))


def _item(key: str, node: Located) -> Condition:
    return _of_one(key, node, _OF_AN_ITEM)


def _glob(key: str, node: Located) -> Condition:
    return Glob(_pattern(key, "glob", node))


def _regex(key: str, node: Located) -> Condition:
    pattern = _pattern(key, "regex", node)
    try:
        condition = Regex(pattern)
        condition.fits(("",))  # prepared now, so that a mistake in it is found now
    except ValueError as error:
        raise LineError(node.line, f"{key}: not a regular expression that RE2 knows: {error}") from None
    return condition


def _pattern(key: str, what: str, node: Located) -> str:
    if not isinstance(node.value, str):
        raise LineError(node.line, f"{key}: {what} must be text (put it in quotes)")
    return node.value


def _one_of(key: str, node: Located) -> Condition:
    if not isinstance(node.value, list) or not node.value:
        raise LineError(node.line, f"{key}: in must be a list of values, with at least one")
    return OneOf(tuple(item.plain() for item in node.value))


def _between(entries: Mapping[str, Located]) -> Between:
    low, high = (_number(entries[end], end) if end in entries else None for end in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise LineError(entries["max"].line, f"max ({high}) is below min ({low}): nothing could ever fit")
    return Between(low, high)


def _number(node: Located, what: str) -> Any:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise LineError(node.line, f"{what} must be a number")
    return node.value


_READERS: Mapping[str, Callable[[str, Located], Condition]] = {
    "equals": lambda _, node: Equals(node.plain()),
    "glob": _glob,
    "regex": _regex,
    "in": _one_of,
    "present": lambda key, node: Present(flag(node, f"present of {key}")),
    "any": lambda key, node: AnyOf(_item(key, node)),
    "all": lambda key, node: AllOf(_item(key, node)),
}
