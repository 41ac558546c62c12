"""A policy file to rules, or an error with the line and the reason.

The file's schema is described in `docs/policies.md`. Whatever the reader does not know it refuses: a rule that is
silently half understood would be worse than none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from policies.match import Match
from policies.model import Allow, Ask, Deny
from policies.reading_ask import ASK_KEYS, read_ask
from policies.reading_conditions import says_something_of_absence
from policies.reading_match import read_match
from policies.reading_values import child, choice, flag, mapping, only_keys, text, whole_number
from policies.rules import Policy, PolicyError, Rule
from policies.yaml_lines import LineError, Located, read_yaml

VERSION = 1
"""The only version of the file there is."""

_ALWAYS = frozenset({"name", "match", "decide"})
_DENY_KEYS = frozenset({"reason"})
_READS = "reads"


def load_policy(path: Path) -> Policy:
    """The policy in a file (UTF-8). Raises `PolicyError`, also when the file cannot be read."""
    try:
        written = path.read_bytes()
        return _parse(written.decode("utf-8-sig"), str(path), written)
    except OSError as error:
        raise PolicyError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(str(path), line, "is not UTF-8 text") from error


def parse_policy(text: str, source: str) -> Policy:
    """The policy in a text; `source` names it in errors and verdicts. Raises `PolicyError`, and nothing else."""
    return _parse(text, source, text.encode("utf-8", "surrogatepass"))


def _parse(text: str, source: str, written: bytes) -> Policy:
    version = hashlib.sha256(written).hexdigest()[:12]
    try:
        policy = Policy(tuple(_read_rules(read_yaml(text), source, version)), source, version)
    except LineError as fault:
        raise PolicyError(source, fault.line, fault.reason) from None
    policy.prepare()
    return policy


def _read_rules(root: Located | None, source: str, version: str) -> list[Rule]:
    if root is None:
        raise LineError(1, f"the policy is empty: write at least “version: {VERSION}” and “rules: []”")
    entries = mapping(root, "a policy")
    only_keys(entries, frozenset({"version", "rules"}), "a policy")
    number = whole_number(child(entries, "version", root), "version")
    if number != VERSION:
        raise LineError(entries["version"].line, f"version {number} is unknown: this program reads version {VERSION}")
    rules = child(entries, "rules", root)
    if not isinstance(rules.value, list):
        raise LineError(rules.line, "rules must be a list")
    read: dict[str, Rule] = {}
    for item in rules.value:
        rule = _read_rule(item, f"{source}:{item.line}", version)
        if rule.name in read:
            raise LineError(item.line, f"the name “{rule.name}” is taken: cards and records tell rules by it")
        read[rule.name] = rule
    return list(read.values())


def _read_rule(node: Located, source: str, version: str) -> Rule:
    entries = mapping(node, "a rule")
    name = text(child(entries, "name", node), "name")
    verdict = choice(child(entries, "decide", node), "decide", ("allow", "ask", "deny"))
    _only_keys_of(verdict, entries)
    match = read_match(child(entries, "match", node))
    if verdict == "allow":
        _refuse_doubtful_allows(match, entries["match"])
    read = _read_verdict(verdict, name, entries, match)
    return Rule(name, match, read.model_copy(update={"source": source, "version": version}))


def _refuse_doubtful_allows(match: Match, node: Located) -> None:
    """`not` fits an argument that is left out, which is right for stricter rules and seldom meant by an allow."""
    written = mapping(mapping(node, "match").get("args", Located({}, node.line, node.line)), "args")
    for argument in match.args:
        at = written[argument.key]
        if argument.condition.fits(()) and not says_something_of_absence(at):
            raise LineError(
                at.line,
                f"{argument.key}: in a rule that allows, “not” has to say whether the argument must be there: write "
                "present: true beside it (or present: false, where it may not)",
            )


def _only_keys_of(verdict: str, entries: Mapping[str, Located]) -> None:
    belongs = {"allow": frozenset({_READS}), "ask": ASK_KEYS | {_READS}, "deny": _DENY_KEYS}
    for key, entry in entries.items():
        owner = next((which for which, keys in belongs.items() if key in keys), None)
        if owner is not None and key not in belongs[verdict]:
            raise LineError(
                entry.key_line, f"{key} belongs to “decide: {owner}”, and this rule says “decide: {verdict}”"
            )
    only_keys(entries, _ALWAYS | belongs[verdict], f"a rule with “decide: {verdict}”")


def _read_verdict(verdict: str, name: str, entries: Mapping[str, Located], match: Match) -> Allow | Ask | Deny:
    match verdict:
        case "allow":
            return Allow(rule=name, reads=_reads(entries, match))
        case "ask":
            return read_ask(name, entries, match).model_copy(update={"reads": _reads(entries, match)})
        case _:
            reason = text(entries["reason"], "reason") if "reason" in entries else None
            return Deny(rule=name, reason=reason or f"The rule “{name}” does not allow this.")


def _reads(entries: Mapping[str, Located], match: Match) -> bool:
    if _READS not in entries:
        return False
    reads = flag(entries[_READS], _READS)
    if reads and not match.names_tools:
        raise LineError(
            entries[_READS].line,
            "reads says of particular tools that they change nothing: name a server, a tool or a command in match",
        )
    return reads
