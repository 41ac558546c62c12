"""YAML text to plain values that remember their lines.

Only what a policy needs, in YAML 1.2's sense: mappings with text keys, lists, text, numbers, `true`/`false`, `null`.
`yes` and `2026-11-21` stay text (YAML 1.1 would make a boolean and a date of them); anchors, aliases and tags are
refused, so that what is written on a line is all there is to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

import yaml

from policies.model import GROUP_ID_FORMS, PERSON_ID_FORMS, PLACE_ID_FORMS, normal

LARGEST = 1_000_000
"""Characters of a text; thousands of rules fit, and reading them takes seconds at most."""
DEEPEST = 30
"""Levels of nesting; far more than any rule needs, and few enough for every recursion over a policy."""
_Word = TypeVar("_Word", bound=str)
_LINE_BREAKS = re.compile(r"[\x85\u2028\u2029]")
"""Where a line ends for YAML 1.1, and so for PyYAML, even in a comment. Few editors show it; YAML 1.2 knows none."""


class LineError(Exception):
    """Something is wrong on a line (counted from 1)."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Located:
    """A value and where it stands."""

    value: str | int | float | bool | list[Located] | dict[str, Located] | None
    line: int
    """Line where the value begins, from 1."""
    key_line: int
    """Line of the key it belongs to; its own line where it has none."""

    def plain(self) -> Any:
        """The value without its lines, as JSON would hold it."""
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        return self.value


class _Loader(yaml.SafeLoader):
    """Reads nodes, never objects; implicit types are those of YAML 1.2."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own class attribute, emptied for this class

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # types-PyYAML left it untyped
            raise LineError(mark.line + 1, "aliases (*name) are not supported: write it out")
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            mark = event.start_mark
            raise LineError(mark.line + 1, "anchors (&name) are not supported: put text that begins so in quotes")
        return super().compose_node(parent, index)


_NULL, _BOOL, _INT, _FLOAT, _TEXT = (f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str"))
for _tag, _pattern, _first in (
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_BOOL, r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    (_INT, r"[-+]?[0-9]+", list("-+0123456789")),
    (_FLOAT, r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), _first)


def read_yaml(text: str) -> Located | None:
    """The one document of a YAML text; `None` when there is none. Raises `LineError`, and nothing else."""
    if len(text) > LARGEST:
        raise LineError(text.count("\n", 0, LARGEST) + 1, f"too large: at most {LARGEST:,} characters are read")
    if hidden := _LINE_BREAKS.search(text):
        line = text.count("\n", 0, hidden.start()) + 1
        raise LineError(line, f"the character U+{ord(hidden[0]):04X} is not allowed: write a line break instead")
    try:
        loader = _Loader(text)  # checks every character of a str at once
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise LineError(line, f"the character U+{int(error.character):04X} is not allowed in YAML") from None
    try:
        node = loader.get_single_node()
        return None if node is None else _located(node, node.start_mark.line + 1, DEEPEST)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = loader.line if mark is None else mark.line
        raise LineError(line + 1, f"not valid YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise LineError(loader.line + 1, f"nested too deeply: at most {DEEPEST} levels") from None
    except (ValueError, OverflowError):
        # PyYAML lets chr() and int() complain themselves about an impossible \U escape or %YAML version.
        raise LineError(loader.line + 1, "not valid YAML: an escape or number that means nothing") from None
    finally:
        loader.dispose()


def _located(node: yaml.Node, key_line: int, levels: int) -> Located:
    line = node.start_mark.line + 1
    if levels == 0:
        raise LineError(line, f"nested too deeply: at most {DEEPEST} levels")
    if isinstance(node, yaml.MappingNode) and node.tag.endswith(":map"):
        return Located(_mapping(node, levels), line, key_line)
    if isinstance(node, yaml.SequenceNode) and node.tag.endswith(":seq"):
        items = [_located(item, item.start_mark.line + 1, levels - 1) for item in node.value]
        return Located(items, line, key_line)
    if isinstance(node, yaml.ScalarNode):
        return Located(_scalar(node, line), line, key_line)
    raise LineError(line, f"the tag {node.tag} is not supported")


def _mapping(node: yaml.MappingNode, levels: int) -> dict[str, Located]:
    entries: dict[str, Located] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = _scalar(key_node, line) if isinstance(key_node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise LineError(line, "a key must be text (put it in quotes)")
        if key in entries:
            raise LineError(line, f"“{key}” is written twice, first on line {entries[key].key_line}")
        entries[key] = _located(value_node, line, levels - 1)
    return entries


def _scalar(node: yaml.ScalarNode, line: int) -> str | int | float | bool | None:
    text: str = node.value
    match node.tag:
        case tag if tag == _TEXT:
            if not _is_text(text):
                raise LineError(line, "half a character (a lone surrogate) is not text")
            return text
        case tag if tag == _NULL:
            return None
        case tag if tag == _BOOL and text.lower() in ("true", "false"):
            return text.lower() == "true"
        case tag if tag in (_INT, _FLOAT):
            return _number(text, tag, line)
        case _:
            raise LineError(line, f"the tag {node.tag} is not supported")


def _number(text: str, tag: str, line: int) -> int | float:
    try:
        number = int(text) if tag == _INT else float(text)
    except (ValueError, OverflowError):
        raise LineError(line, f"“{text[:40]}” is not a number") from None
    if not math.isfinite(number):
        raise LineError(line, f"“{text[:40]}” is too large a number")
    return number


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -------------------------------------------------------------------------------------- single values
# Each function returns the value as its type or raises `LineError` with the value's line.


def child(entries: Mapping[str, Located], key: str, parent: Located) -> Located:
    """The value of a key that has to be there; its absence is reported on the parent's line."""
    if key not in entries:
        raise LineError(parent.line, f"“{key}” is missing")
    return entries[key]


def only_keys(entries: Mapping[str, Located], known: Collection[str], what: str) -> None:
    """Refuses keys that are not known, on their own line, with a guess at what was meant."""
    for key, entry in entries.items():
        if key not in known:
            near = get_close_matches(key[:60], list(known), n=1)
            guess = f"did you mean “{near[0]}”?" if near else f"known are {', '.join(sorted(known))}"
            raise LineError(entry.key_line, f"{what} has no key “{key[:60]}”: {guess}")


def mapping(node: Located, what: str) -> Mapping[str, Located]:
    """A mapping with text keys."""
    if not isinstance(node.value, dict):
        raise LineError(node.line, f"{what} must be a mapping (key: value), not {_kind(node)}")
    return node.value


def not_empty(node: Located, what: str) -> Mapping[str, Located]:
    """A mapping with at least one key."""
    entries = mapping(node, what)
    if not entries:
        raise LineError(node.line, f"{what} is empty: take it out, or say what must fit")
    return entries


def text(node: Located, what: str) -> str:
    """Text that says something."""
    if not isinstance(node.value, str):
        quoted = " (put it in quotes)" if isinstance(node.value, bool | int | float) else ""
        raise LineError(node.line, f"{what} must be text, not {_kind(node)}{quoted}")
    if not node.value.strip():
        raise LineError(node.line, f"{what} is empty")
    return node.value


def flag(node: Located, what: str) -> bool:
    """`true` or `false`; YAML 1.1's yes and on are refused rather than guessed at."""
    if not isinstance(node.value, bool):
        raise LineError(node.line, f"{what} must be true or false, not {_kind(node)}")
    return node.value


def whole_number(node: Located, what: str) -> int:
    """A whole number."""
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        raise LineError(node.line, f"{what} must be a whole number, not {_kind(node)}")
    return node.value


def versioned_list(root: Located, key: str, version: int, what: str) -> Sequence[Located]:
    """The items of a file that has a `version` and one list, under this key.

    Args:
        version: the only one that is read.
        what: how errors call the file.
    """
    entries = mapping(root, what)
    only_keys(entries, frozenset({"version", key}), what)
    number = whole_number(child(entries, "version", root), "version")
    if number != version:
        raise LineError(entries["version"].line, f"version {number} is unknown: this program reads version {version}")
    items = child(entries, key, root)
    if not isinstance(items.value, list):
        raise LineError(items.line, f"{key} must be a list")
    listed: list[Located] = items.value
    return listed


def choice(node: Located, what: str, options: Sequence[_Word]) -> _Word:
    """One of a few words."""
    chosen = next((each for each in options if each == node.value), None)
    if chosen is None:
        raise LineError(node.line, f"{what} must be one of {', '.join(options)}, not {_kind(node)}")
    return chosen


def reference(node: Located, what: str) -> str:
    """A person id or group reference. Not looked up: a policy is read before any platform is asked."""
    return _referred(
        node, {**PERSON_ID_FORMS, **GROUP_ID_FORMS}, f"{what} must be a person ({_PERSONS}) or a group ({_GROUPS})"
    )


def person(node: Located, what: str) -> str:
    """A person id; not a group."""
    return _referred(node, PERSON_ID_FORMS, f"{what} must be a person ({_PERSONS})")


def place(node: Located, what: str) -> str:
    """A channel, chat or person that something can be posted to. Not looked up, like a reference."""
    return _referred(node, PLACE_ID_FORMS, f"{what} must be a channel or a person ({_PLACES})")


def _referred(node: Located, forms: Mapping[str, re.Pattern[str]], demand: str) -> str:
    written = normal(node.value, forms) if isinstance(node.value, str) else None
    if written is None:
        raise LineError(node.line, f"{demand}, not {_kind(node)}")
    return written


_PERSONS = "slack:T1:U2, teams:{tenant}:{object id}, web:ana"
_GROUPS = "slack-group:T1:S1, entra-group:{tenant}:{object id}"
_PLACES = "slack:T1:C2, teams:{tenant}:{conversation}"


def texts(node: Located, what: str) -> tuple[Located, ...]:
    """The items of a list of texts, each still with its line; the same text twice is refused."""
    if not isinstance(node.value, list):
        raise LineError(node.line, f"{what} must be a list, not {_kind(node)}")
    seen: set[str] = set()
    for item in node.value:
        written = text(item, f"each of {what}")
        if written in seen:
            raise LineError(item.line, f"“{written}” is in {what} twice")
        seen.add(written)
    return tuple(node.value)


def _kind(node: Located) -> str:
    match node.value:
        case None:
            return "nothing"
        case bool():
            return str(node.value).lower()
        case str():
            return f"“{node.value[:60]}”"
        case int() | float():
            return f"the number {str(node.value)[:60]}"
        case list():
            return "a list"
        case _:
            return "a mapping"


# ------------------------------------------------------------------------------------------ durations
# As people write them: `30s`, `15m`, `24h`, `7d`.

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WRITTEN = re.compile(r"([0-9]{1,9})([smhd])")
LONGEST_DURATION = 3650 * 86400.0
"""Seconds. Ten years: beyond it a date stops being one that people plan by, and `never` is the honest word."""


def seconds(text: str) -> float:
    """Seconds of a written duration. Raises `ValueError` with a sentence when it is none, is zero, or is too long."""
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f"“{text}” is not a duration: write a whole number and a unit, such as 30s, 15m, 24h or 7d")
    length = float(int(written[1]) * _SECONDS[written[2]])
    if length == 0:
        raise ValueError("a duration must be longer than nothing")
    if length > LONGEST_DURATION:
        raise ValueError(f"“{text}” is longer than ten years: write never instead")
    return length


def in_words(length: float) -> str:
    """A number of seconds as one would write it: `24h`, `90s`."""
    whole = int(length)
    unit, size = next((unit, size) for unit, size in reversed(_SECONDS.items()) if whole % size == 0)
    return f"{whole // size}{unit}"
