"""What came of each judged call, from the audit log and the approvals: what decided, and what people said. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.dates import day_of
from graph.agents import DEFAULT
from policies.approvers import is_by_grant
from policies.judging import AGENT_ASKS, SERVER_ASKS
from policies.suggestions import Outcome

DecidedBy = Literal["rule", "none", "mode", "standing", "server", "agent"]
"""What decided: a rule; no rule fitted; the mode denied; a standing approval allowed; a rule allowed, and the tool's
server, or the agent, has it asked about all the same."""
UNAPPROVED: frozenset[Outcome] = frozenset({"edited", "rejected", "contested", "withdrawn"})
"""Outcomes of calls that people did not approve as they were. They are listed apart: no rule may be suggested that
would have allowed one, however long ago it was."""
MOST_UNAPPROVED = 1_000
"""Such calls of one tool that are looked at; of a tool with more of them, nothing is suggested."""
_STEPS = 4
"""Waits are counted by their length, each step longer by a quarter of a power of two: a median is right to a tenth."""
_MOST_ATTEMPTS = 10
"""Attempts of a call among which its first entry is looked for."""
_BY_MODE = "mode "


@dataclass(frozen=True, slots=True)
class ApprovalRound:
    """One round of asking people about a call."""

    call_id: str
    round: int
    status: str
    rule: str
    source: str
    is_edited: bool
    asked_at: float
    settled_at: float | None


@dataclass(frozen=True, slots=True)
class LoggedEnd:
    """An entry of the audit log about a call that was judged."""

    seq: int
    key: str
    at: float
    entry: Mapping[str, Any]

    @property
    def call_id(self) -> str:
        """Of the call."""
        return str(self.entry["call"])

    @property
    def earlier_keys(self) -> Sequence[str]:
        """The keys of entries that there may be of the same call from before: each call counts once."""
        last = self.entry.get("attempt")
        numbers = range(1, min(last, _MOST_ATTEMPTS) + 1) if isinstance(last, int) else (1,)
        ends = [f"{number}:{status}" for number in numbers for status in ("unknown", "failed", "done")]
        return [key for end in (*ends, "not made") if (key := f"{self.call_id}:{end}") != self.key]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A call that was judged, and what came of it."""

    seq: int
    """Number of its entry in the audit log."""
    day: str
    """On which it ended, `2026-11-21`, UTC."""
    decided_by: DecidedBy
    rule: str
    """Name of the rule; empty where none decided."""
    server: str
    tool: str
    outcome: Outcome
    waited: float | None = None
    """Seconds until people had decided; `None`: they did not."""


def counts(entry: Mapping[str, Any]) -> bool:
    """Whether an entry may be the first one about a call that was judged. Others are of what operators read, of calls
    that were never judged, and of what people said of an outcome afterwards."""
    return (
        isinstance(entry.get("judged"), Mapping)
        and bool(entry["judged"])
        and isinstance(entry.get("call"), str)
        and not entry.get("settled")
    )


def outcome_of(end: LoggedEnd, rounds: Sequence[ApprovalRound]) -> CallOutcome:
    """What came of a call. `rounds`: all rounds of asking about it, in order; none: nobody was asked. Raises nothing
    for entries that `counts` is true of."""
    entry = end.entry
    rule, source = _text(entry, "rule"), _text(entry, "source")
    if rounds:
        rule, source = rounds[-1].rule, rounds[-1].source
    server, tool = _text(entry, "server"), _text(entry, "tool")
    agent = _text(entry, "agent") or DEFAULT
    decided_by, name = _decided_by(rule, source, server=server, tool=tool, agent=agent)
    outcome = _outcome(entry, rounds)
    return CallOutcome(
        seq=end.seq,
        day=day_of(end.at).isoformat(),
        decided_by=decided_by,
        rule=name,
        server=server,
        tool=tool,
        outcome=outcome,
        waited=_waited(rounds) if outcome in ("unchanged", "edited", "rejected", "contested") else None,
    )


def _decided_by(rule: str, source: str, *, server: str, tool: str, agent: str) -> tuple[DecidedBy, str]:
    """Also the name of the rule, without what was added to it where more than it decided (`policies.judging`)."""
    if not source:
        return ("mode" if rule.startswith(_BY_MODE) else "none"), ""
    if is_by_grant(rule):
        return "standing", ""
    by_agent = AGENT_ASKS.format(rule="", agent=agent, tool=tool, server=server)
    by_server = SERVER_ASKS.format(rule="", tool=tool, server=server)
    if rule.endswith(by_agent):
        return "agent", rule.removesuffix(by_agent)
    if rule.endswith(by_server):
        return "server", rule.removesuffix(by_server)
    return "rule", rule


def _outcome(entry: Mapping[str, Any], rounds: Sequence[ApprovalRound]) -> Outcome:
    if not rounds:
        return _UNAPPROVED_BY_STATUS.get(_text(entry, "status")) or _UNASKED.get(_text(entry, "decision"), "other")
    last = rounds[-1].status
    votes = entry.get("votes")
    cast = votes if isinstance(votes, list) else []
    was_rejected = any(isinstance(vote, Mapping) and vote.get("verb") == "reject" for vote in cast)
    if last == "approved":
        if was_rejected:
            return "contested"
        return "edited" if any(each.is_edited for each in rounds) else "unchanged"
    if last == "rejected" or was_rejected:
        return "rejected"
    return "expired" if last == "expired" else "withdrawn" if last == "withdrawn" else "other"


_UNASKED: Mapping[str, Outcome] = {"allow": "allowed", "deny": "denied"}
_UNAPPROVED_BY_STATUS: Mapping[str, Outcome] = {"rejected": "rejected", "withdrawn": "withdrawn"}
"""How it ended → outcome, also where an operator has erased the approvals: what was rejected stays rejected."""


def _waited(rounds: Sequence[ApprovalRound]) -> float | None:
    """From when people were first asked."""
    settled = rounds[-1].settled_at if rounds else None
    return None if settled is None else max(0.0, settled - rounds[0].asked_at)


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


# --------------------------------------------------------------------------------- counted, by day


@dataclass(frozen=True, slots=True)
class CountKey:
    """What is counted apart."""

    day: str
    decided_by: DecidedBy
    rule: str
    server: str
    tool: str


@dataclass(slots=True)
class OutcomeCounts:
    """How many calls came to what."""

    of: Counter[Outcome] = field(default_factory=Counter)
    waits: Counter[int] = field(default_factory=Counter)
    """Step of the length of a wait → how many."""


def counted(outcomes: Iterable[CallOutcome]) -> Mapping[CountKey, OutcomeCounts]:
    """Adds outcomes up."""
    found: dict[CountKey, OutcomeCounts] = {}
    for each in outcomes:
        key = CountKey(each.day, each.decided_by, each.rule, each.server, each.tool)
        of_key = found.setdefault(key, OutcomeCounts())
        of_key.of[each.outcome] += 1
        if each.waited is not None:
            of_key.waits[step_of(each.waited)] += 1
    return found


def step_of(seconds: float) -> int:
    """The step of a wait's length; those of less than a second are one."""
    return round(_STEPS * math.log2(max(1.0, seconds)))


def median_of(waits: Mapping[int, int]) -> float | None:
    """The median of waits that were counted by step, in seconds, right to a tenth; `None`: there are none."""
    left = (sum(waits.values()) + 1) // 2
    if left == 0:
        return None
    for step in sorted(waits):
        left -= waits[step]
        if left <= 0:
            return float(2 ** (step / _STEPS))
    return None  # counts are positive
