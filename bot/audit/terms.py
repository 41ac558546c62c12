"""What entries of the audit log are found by. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from bot.audit.entries import looker_in
from graph.agents import DEFAULT
from graph.json_values import storable
from policies.judging import AGENT_ASKS, SERVER_ASKS

TermKind = Literal["person", "server", "tool", "rule", "outcome", "decision"]
LONGEST_TERM = 500
"""Characters of a term; of a longer one the beginning counts."""


class Term(NamedTuple):
    """Something that an entry is found by."""

    kind: TermKind
    """`person`: who asked, who voted, who looked at what is hidden, or which operator looked or acted; `rule`: also the
    rule alone, where the tool's server or the agent had its call asked about; `outcome`: the status; `decision`: what
    the policy said."""
    text: str


def term(kind: TermKind, text: str) -> Term:
    """A term as it is kept."""
    return Term(kind, str(storable(text))[:LONGEST_TERM])


def terms_of(entry: Mapping[str, Any]) -> list[Term]:
    """What an entry is found by, each once."""
    return list(dict.fromkeys(_found_by(entry)))


def _found_by(entry: Mapping[str, Any]) -> Iterator[Term]:
    kinds: tuple[tuple[TermKind, str], ...] = (
        ("person", "requester"),
        ("server", "server"),
        ("tool", "tool"),
        ("rule", "rule"),
        ("outcome", "status"),
        ("decision", "decision"),
    )
    for kind, field in kinds:
        if isinstance(value := entry.get(field), str) and value:
            yield term(kind, value)
    if isinstance(rule := entry.get("rule"), str):
        told = {"server": entry.get("server"), "tool": entry.get("tool"), "agent": entry.get("agent") or DEFAULT}
        for asks in (SERVER_ASKS, AGENT_ASKS):
            if rule.endswith(words := asks.format(rule="", **told)):
                yield term("rule", rule.removesuffix(words))
    if looker := looker_in(entry):
        yield term("person", looker)
    votes = entry.get("votes")
    for vote in votes if isinstance(votes, list) else ():
        if isinstance(vote, Mapping) and isinstance(person := vote.get("person"), str):
            yield term("person", person)
