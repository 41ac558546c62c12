"""A changed policy against the calls of the past: what would have been decided otherwise, side by side. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bot.audit.entries import recorded_call
from bot.rules.outcomes import LoggedEnd
from policies.judging import Policy
from policies.model import Verdict
from policies.replaying import (
    RecordedCall,
    approvers_in_words,
    are_the_same,
    doubt_about,
    in_words,
    judged_by,
)

MOST_DIFFERENCES = 200
"""Differences of one answer, the newest; others are counted."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is said of a call: as it was recorded, by the rules in force, or by the changed ones."""

    verdict: str
    rule: str
    source: str
    why: str
    """The sentence; of what is recorded empty where an older version kept none."""
    approvers: str
    """In words; empty: nobody is asked."""
    text: str
    """All of it in one line."""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call that the changed rules judge otherwise than what is recorded, or than the rules in force."""

    at: str
    call_id: str
    requester: str
    client: str
    agent: str
    server: str
    tool: str
    input: str
    recorded: Side
    now: Side
    changed: Side
    doubt: str
    """Why the judgement by the changed rules may not be what it would have been; empty where it is certain."""


@dataclass(slots=True)
class Replay:
    """What has been replayed so far."""

    in_force: Policy
    changed: Policy
    calls: int = 0
    different: int = 0
    """From what is recorded."""
    different_from_now: int = 0
    """From what the rules in force say."""
    doubtful: int = 0
    unreadable: int = 0
    listed: int = 0
    """Calls with either difference; `differences` has the newest."""
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Recorded verdict and changed one → how many calls."""
    differences: deque[ReplayedCall] = field(default_factory=lambda: deque(maxlen=MOST_DIFFERENCES))
    _known: set[str] = field(default_factory=set)

    def go_on(self, ends: Iterable[LoggedEnd]) -> None:
        """Judges further calls. A call counts once, by its first entry of those that are replayed."""
        for end in ends:
            if end.call_id in self._known:
                continue
            self._known.add(end.call_id)
            self.calls += 1
            try:
                recorded = recorded_call(end.entry)
            except (KeyError, TypeError, ValueError, AttributeError):
                self.unreadable += 1
                continue
            self._judge(end, recorded)

    def _judge(self, end: LoggedEnd, recorded: RecordedCall) -> None:
        changed, now = judged_by(self.changed, recorded), judged_by(self.in_force, recorded)
        doubt = doubt_about(self.changed, recorded)
        self.doubtful += bool(doubt)
        differs = not are_the_same(recorded.then, changed.verdict, recorded.call)
        differs_from_now = not are_the_same(now.verdict, changed.verdict, recorded.call)
        self.different_from_now += differs_from_now
        if differs:
            self.different += 1
            self.changes[recorded.then.verdict, changed.verdict.verdict] += 1
        if differs or differs_from_now:
            self.listed += 1
            facts, entry = recorded.facts, end.entry
            requesters = (facts.requester,)
            self.differences.append(
                ReplayedCall(
                    at=str(entry.get("at", "")),
                    call_id=end.call_id,
                    requester=facts.requester,
                    client=facts.client,
                    agent=facts.agent,
                    server=recorded.call.tool.server,
                    tool=recorded.call.tool.name,
                    input=str(entry.get("input", "")),
                    recorded=_side(recorded.then, recorded.why, requesters),
                    now=_side(now.verdict, now.why, requesters),
                    changed=_side(changed.verdict, changed.why, requesters),
                    doubt=doubt,
                )
            )


def _side(verdict: Verdict, told: str, requesters: Sequence[str]) -> Side:
    return Side(
        verdict=verdict.verdict,
        rule=verdict.rule,
        source=verdict.source,
        why=told,
        approvers=approvers_in_words(verdict, requesters),
        text=in_words(verdict, requesters[0]),
    )
