"""A policy file to rules, or an error with the line and the reason.

The file's schema is described in `docs/policies.md`. Whatever the reader does not know it refuses: a rule that is
silently half understood would be worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from policies.model import Allow, Ask, Deny, Mode
from policies.reading_ask import ASK_KEYS, read_ask
from policies.reading_values import child, choice, flag, mapping, only_keys, reference, text, whole_number
from policies.rules import Match, Policy, PolicyError, Rule
from policies.yaml_lines import LineError, Located, read_yaml

VERSION = 1
"""The only version of the file there is."""

_ALWAYS = frozenset({"name", "match", "decide"})
_DENY_KEYS = frozenset({"reason"})
_NOT_YET = frozenset({"remindAfter", "escalateAfter", "escalateTo"})
_HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
_T = TypeVar("_T")


def load_policy(path: Path) -> Policy:
    """The policy in a file (UTF-8). Raises `PolicyError`, also when the file cannot be read."""
    try:
        return parse_policy(path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise PolicyError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(str(path), line, "is not UTF-8 text") from error


def parse_policy(text: str, source: str) -> Policy:
    """The policy in a text; `source` names it in errors. Raises `PolicyError`, and nothing else."""
    try:
        return _read_policy(read_yaml(text))
    except LineError as fault:
        raise PolicyError(source, fault.line, fault.reason) from None


def _read_policy(root: Located | None) -> Policy:
    if root is None:
        raise LineError(1, f"the policy is empty: write at least “version: {VERSION}” and “rules: []”")
    entries = mapping(root, "a policy")
    only_keys(entries, frozenset({"version", "rules"}), "a policy")
    version = whole_number(child(entries, "version", root), "version")
    if version != VERSION:
        raise LineError(entries["version"].line, f"version {version} is unknown: this program reads version {VERSION}")
    rules = child(entries, "rules", root)
    if not isinstance(rules.value, list):
        raise LineError(rules.line, "rules must be a list")
    read: dict[str, Rule] = {}
    for item in rules.value:
        rule = _read_rule(item)
        if rule.name in read:
            raise LineError(item.line, f"the name “{rule.name}” is taken: cards and records tell rules by it")
        read[rule.name] = rule
    return Policy(rules=tuple(read.values()))


def _read_rule(node: Located) -> Rule:
    entries = mapping(node, "a rule")
    name = text(child(entries, "name", node), "name")
    verdict = choice(child(entries, "decide", node), "decide", ("allow", "ask", "deny"))
    _only_keys_of(verdict, entries)
    match = _read_match(child(entries, "match", node))
    return Rule(name=name, match=match, verdict=_read_verdict(verdict, name, entries, match))


def _only_keys_of(verdict: str, entries: Mapping[str, Located]) -> None:
    belongs = {"allow": frozenset[str](), "ask": ASK_KEYS, "deny": _DENY_KEYS}
    for key, entry in entries.items():
        if key in _NOT_YET:
            raise LineError(entry.key_line, f"{key} is not supported yet: take it out")
        owner = next((which for which, keys in belongs.items() if key in keys), None)
        if owner is not None and owner != verdict:
            raise LineError(
                entry.key_line, f"{key} belongs to “decide: {owner}”, and this rule says “decide: {verdict}”"
            )
    only_keys(entries, _ALWAYS | belongs[verdict], f"a rule with “decide: {verdict}”")


def _read_verdict(verdict: str, name: str, entries: Mapping[str, Located], match: Match) -> Allow | Ask | Deny:
    match verdict:
        case "allow":
            return Allow(rule=name)
        case "ask":
            return read_ask(name, entries, match)
        case _:
            reason = text(entries["reason"], "reason") if "reason" in entries else None
            return Deny(rule=name, reason=reason or f"The rule “{name}” does not allow this.")


def _read_match(node: Located) -> Match:
    entries = mapping(node, "match")
    known = frozenset({"server", "tool", "args", "annotations", "mode", "platform", "channel", "requester"})
    only_keys(entries, known, "match")

    def given(key: str, read: Callable[[Located, str], _T]) -> _T | None:
        return read(entries[key], key) if key in entries else None

    return Match(
        server=given("server", text),
        tool=given("tool", text),
        args=given("args", _arguments) or {},
        annotations=given("annotations", _annotations) or {},
        mode=given("mode", _mode),
        platform=given("platform", text),
        channel=given("channel", text),
        requester=given("requester", reference),
    )


def _arguments(node: Located, what: str) -> dict[str, Any]:
    return {name: value.plain() for name, value in _not_empty(node, what).items()}


def _annotations(node: Located, what: str) -> dict[str, bool]:
    entries = _not_empty(node, what)
    only_keys(entries, _HINTS, what)
    return {hint: flag(value, hint) for hint, value in entries.items()}


def _not_empty(node: Located, what: str) -> Mapping[str, Located]:
    entries = mapping(node, what)
    if not entries:
        raise LineError(node.line, f"{what} is empty: take it out, or say what must fit")
    return entries


def _mode(node: Located, what: str) -> Mode:
    return Mode(choice(node, what, tuple(Mode)))
