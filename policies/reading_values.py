"""Single values of a policy file: each reader returns what it reads or raises `LineError` with the value's line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from policies.references import GROUPS, PEOPLE, PLACES, normal
from policies.yaml_lines import LineError, Located


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
        raise LineError(node.line, f"{what} must be text, not {_kind(node)}{_quote_it(node)}")
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


def choice(node: Located, what: str, options: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(node.value, str) or node.value not in options:
        raise LineError(node.line, f"{what} must be one of {', '.join(options)}, not {_kind(node)}")
    return node.value


def reference(node: Located, what: str) -> str:
    """A person id or group reference. Not looked up: a policy is read before any platform is asked."""
    return _referred(node, {**PEOPLE, **GROUPS}, f"{what} must be a person ({_PERSONS}) or a group ({_GROUPS})")


def person(node: Located, what: str) -> str:
    """A person id; not a group."""
    return _referred(node, PEOPLE, f"{what} must be a person ({_PERSONS})")


def place(node: Located, what: str) -> str:
    """A channel, chat or person that something can be posted to. Not looked up, like a reference."""
    return _referred(node, PLACES, f"{what} must be a channel or a person ({_PLACES})")


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


def _quote_it(node: Located) -> str:
    return " (put it in quotes)" if isinstance(node.value, bool | int | float) else ""
