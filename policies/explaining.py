"""Why a call was judged as it was, rule by rule, in words (`policy explain`)."""

from __future__ import annotations

from dataclasses import dataclass

from policies import durations
from policies.describing import describe_approvers
from policies.judging import above_floor, by_rules, under_ceiling
from policies.matching import Fit, fit_all
from policies.model import Ask, Call, Deny, Facts, Mode, Verdict
from policies.rules import Policy, Rule
from policies.subject import Subject


@dataclass(frozen=True, slots=True)
class Tried:
    """A rule that was held against the call."""

    name: str
    source: str
    """`policies/default.yaml:12`."""
    fit: Fit
    because: tuple[str, ...] = ()
    """Each field that did not fit or could not be found out: “server is tasks; wanted: calendar”."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the verdict came about."""

    verdict: Verdict
    """The same that `judge` gives."""
    tried: tuple[Tried, ...]
    """The rules in order, down to the one that decided."""
    decided_by: str
    """That rule's name; empty when none fits."""
    floor: str
    """What the tool's server requires beyond the rules, in a sentence; empty when that changed nothing."""
    ceiling: str
    """What the mode took away, in a sentence; empty when that changed nothing."""
    approvers: str
    """Who could approve, in words; empty when nobody is asked."""


def explain(policy: Policy, call: Call, facts: Facts) -> Explanation:
    """The judgement of a call, step by step. Pure; raises nothing."""
    subject = Subject(call, facts)
    rule, said = by_rules(policy, subject)
    raised = above_floor(said, call.tool)
    verdict = under_ceiling(policy, raised, rule, subject)
    return Explanation(
        verdict=verdict,
        tried=tuple(_tried(each, subject) for each in _down_to(policy, rule)),
        decided_by=rule.name if rule else "",
        floor="" if raised is said else f"{call.tool.server} requires approval for {call.tool.name}: allow became ask.",
        ceiling="" if verdict is raised else _ceiling(facts.mode, verdict),
        approvers=_approvers(verdict, facts.requester) if isinstance(verdict, Ask) else "",
    )


def _down_to(policy: Policy, rule: Rule | None) -> tuple[Rule, ...]:
    return policy.rules if rule is None else policy.rules[: policy.rules.index(rule) + 1]


def _tried(rule: Rule, subject: Subject) -> Tried:
    wrong = [check for check in rule.checks if not check.fits(subject)]
    because = tuple(f"{check.field} is {check.found(subject)}; wanted: {check.wanted}" for check in wrong)
    return Tried(rule.name, rule.source, fit_all([check.fits for check in rule.checks], subject), because)


def _ceiling(mode: Mode, verdict: Verdict) -> str:
    return f"Mode {mode}: {verdict.reason}" if isinstance(verdict, Deny) else ""


def _approvers(ask: Ask, requester: str) -> str:
    who = describe_approvers(ask, (requester,), str)
    if ask.escalate_after is None:
        return who
    return f"{who}; after {durations.in_words(ask.escalate_after)} also {', '.join(ask.escalate_to)}"
