"""What a policy is made of: rules in the order they were written, each a match and a prepared verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.model import Allow, Ask, Deny, Mode


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


@dataclass(frozen=True, slots=True)
class Match:
    """Which calls a rule is about. A field that is `None` (or empty) fits every call; all given fields must fit."""

    server: str | None = None
    """The server's name in `mcp.json`."""
    tool: str | None = None
    """Glob over the tool's name as its server calls it (`*`, `?`, `[abc]`; case counts)."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Argument name → glob for text, or the exact value for anything else; an absent argument does not fit."""
    annotations: Mapping[str, bool] = field(default_factory=dict)
    """MCP hint → its value; fits nothing on servers whose annotations the operator does not trust."""
    mode: Mode | None = None
    platform: str | None = None
    channel: str | None = None
    """The place's channel, as the platform's adapter names it."""
    requester: str | None = None
    """A person id, or a group reference that the requester must be in."""

    @property
    def names_tools(self) -> bool:
        """Whether it picks calls by server or tool name, rather than taking any tool that happens to come along."""
        return self.server is not None or (self.tool is not None and self.tool.strip("*") != "")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: when `match` fits, `verdict` is what it says."""

    name: str
    match: Match
    verdict: Allow | Ask | Deny


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in order; the first that fits decides."""

    rules: tuple[Rule, ...] = ()

    @property
    def requester_groups(self) -> frozenset[str]:
        """The group references to look up for a requester before judging (`Facts.groups`)."""
        named = (rule.match.requester for rule in self.rules)
        return frozenset(reference for reference in named if reference is not None and is_group(reference))


def is_group(reference: str) -> bool:
    """Whether a reference names a group (`slack-group:T1:S1`, `entra-group:…`) rather than a person."""
    kind, colon, _ = reference.partition(":")
    return bool(colon) and kind.endswith("-group")
