"""`match` in a policy file: which calls a rule is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from policies.match import Match
from policies.model import Mode
from policies.reading_conditions import read_arguments
from policies.reading_time import read_hours
from policies.reading_values import choice, flag, mapping, not_empty, only_keys, reference, text, texts
from policies.references import PEOPLE, PLACES
from policies.yaml_lines import LineError, Located

_KEYS = frozenset(
    {"server", "tool", "command", "args", "reads", "annotations", "mode", "platform", "channel", "requester", "time"}
)
_HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
_T = TypeVar("_T")


def read_match(node: Located) -> Match:
    """All the fields that are given. Raises `LineError`."""
    entries = mapping(node, "match")
    only_keys(entries, _KEYS, "match")

    def given(key: str, read: Callable[[Located, str], _T]) -> _T | None:
        return read(entries[key], key) if key in entries else None

    return Match(
        server=given("server", text),
        tool=given("tool", text),
        command=given("command", text),
        args=given("args", read_arguments) or (),
        reads=given("reads", flag),
        annotations=given("annotations", _annotations) or {},
        mode=given("mode", _mode),
        platform=given("platform", _platform),
        channel=given("channel", _channel),
        requester=given("requester", _requesters) or (),
        time=given("time", read_hours),
    )


def _annotations(node: Located, what: str) -> dict[str, bool]:
    entries = not_empty(node, what)
    only_keys(entries, _HINTS, what)
    return {hint: flag(value, hint) for hint, value in entries.items()}


def _mode(node: Located, what: str) -> Mode:
    return Mode(choice(node, what, tuple(Mode)))


def _platform(node: Located, what: str) -> str:
    return choice(node, what, tuple(PEOPLE))


def _channel(node: Located, what: str) -> str:
    pattern = text(node, what)
    platform, colon, rest = pattern.partition(":")
    if not pattern.startswith("*") and not (colon and rest and platform in PLACES):
        raise LineError(
            node.line,
            f"{what} must be a channel as platforms name it (slack:T1:C2, teams:{{tenant}}:{{conversation}}) or a "
            f"pattern over that (*:C2), not “{pattern[:60]}”",
        )
    return pattern


def _requesters(node: Located, what: str) -> tuple[str, ...]:
    if not isinstance(node.value, list):
        return (reference(node, what),)
    items = texts(node, what)
    if not items:
        raise LineError(node.line, f"{what} is empty: take it out, or name somebody")
    return tuple(reference(item, f"each {what}") for item in items)
