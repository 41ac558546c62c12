"""What a policy is made of: rules in the order they were written, each a match and a prepared verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from policies.matching import TOGETHER, Check, RuleIndex, Subject, Test, checks_of, rule_index
from policies.model import Allow, Ask, Deny, Match, is_group
from policies.patterns import glob

MOST_REMEMBERED = 4_096
"""Tools for which a policy remembers its candidates; far more than any company has, few enough for its memory."""


class PolicyError(Exception):
    """A policy that cannot be used; the start stops with it (rule 9).

    `source` names the policy (usually a path), `line` counts from 1 and is `None` only when there is no text to point
    into (the file cannot be read), `reason` says what is wrong and what to do.
    """

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Rule:
    """One rule: when `match` fits, `verdict` is what it says."""

    name: str
    match: Match
    verdict: Allow | Ask | Deny

    @property
    def source(self) -> str:
        """Where it stands: `policies/default.yaml:12`."""
        return self.verdict.source

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Its match, prepared."""
        return checks_of(self.match)

    @cached_property
    def tests(self) -> tuple[Test, ...]:
        """What its checks ask, but those of the tool's name and server: `Policy.candidates` has asked these."""
        return tuple(check.fits for check in self.checks if check.field not in ("server", "tool"))


@dataclass(frozen=True)
class Candidates:
    """The rules that can be about a tool."""

    rules: tuple[Rule, ...]

    @cached_property
    def indexed(self) -> tuple[tuple[tuple[Rule, ...], RuleIndex], ...]:
        """Stretches of them, in order, each with its index."""
        parts = [self.rules[at : at + TOGETHER] for at in range(0, len(self.rules), TOGETHER)]
        return tuple((part, rule_index([rule.match for rule in part])) for part in parts)


@dataclass(frozen=True)
class Policy:
    """Rules in order; the first that fits decides."""

    rules: tuple[Rule, ...] = ()
    source: str = ""
    """Its file, as it was named."""
    version: str = ""
    """The first 12 hexadecimal digits of the SHA-256 of the file."""

    @property
    def requester_groups(self) -> frozenset[str]:
        """The group references to look up for a requester before judging (`Facts.groups`)."""
        return frozenset(reference for rule in self.rules for reference in rule.match.requester if is_group(reference))

    def prepare(self) -> None:
        """Do all at once that is otherwise done for the first call: a thousand rules take a tenth of a second."""
        for rule, _ in self._by_tool:
            len(rule.tests)

    def candidates(self, server: str, tool: str) -> tuple[Rule, ...]:
        """The rules, in order, that can be about a tool at all."""
        return self._about(server, tool).rules

    def held_against(self, subject: Subject) -> Iterator[Rule]:
        """Those of the candidates, in order, that nothing excludes at first sight."""
        tool = subject.call.tool
        for rules, index in self._about(tool.server, tool.name).indexed:
            left = index.left(subject)
            while left:
                first = left & -left
                yield rules[first.bit_length() - 1]
                left ^= first

    def _about(self, server: str, tool: str) -> Candidates:
        """Remembered for each tool; tools that the same rules are about share what is prepared for them."""
        known = self._tools.get((server, tool))
        if known is None:
            if len(self._tools) >= MOST_REMEMBERED:
                self._tools.clear()
                self._shared.clear()
            rules = tuple(rule for rule, is_about in self._by_tool if is_about(server, tool))
            known = self._shared.setdefault(tuple(map(id, rules)), Candidates(rules))
            self._tools[server, tool] = known
        return known

    @cached_property
    def _tools(self) -> dict[tuple[str, str], Candidates]:
        return {}

    @cached_property
    def _shared(self) -> dict[tuple[int, ...], Candidates]:
        return {}

    @cached_property
    def _by_tool(self) -> tuple[tuple[Rule, Callable[[str, str], bool]], ...]:
        return tuple((rule, _about(rule.match)) for rule in self.rules)


def _about(match: Match) -> Callable[[str, str], bool]:
    is_like = None if match.tool is None else glob(match.tool)

    def is_about(server: str, tool: str) -> bool:
        return match.server in (None, server) and (is_like is None or bool(is_like(tool)))

    return is_about
