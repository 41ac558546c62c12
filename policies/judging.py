"""The judgement of one tool call: what the rules say, raised to the tool's floor, under the mode's ceiling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies import yaml_values
from policies.matching import NO, Fit, Subject, fit_all
from policies.model import Allow, Ask, Call, Deny, Facts, Mode, Tool, Verdict, is_group
from policies.quoting import is_quoted
from policies.rules import Policy, Rule


def judge(policy: Policy, call: Call, facts: Facts) -> Allow | Ask | Deny:
    """Whether a call may run, must be asked about, or may not run. Pure; raises nothing.

    The first rule that fits decides; when none does, the requester is asked. `Tool.requires_approval` is a floor: an
    allow becomes an ask. `facts.mode` is the effective mode and a ceiling:

    - `readOnly`: only calls that are known to read: a rule says so (`reads: true`), the operator's list, a trusted
      server, or the command;
    - `default`: what the rules say;
    - `safeWrite`: those, and calls for which a rule names the server, the tool or the command, where the model quotes
      the words of the requester that ask for it (`Call.quote` from `Facts.said`).
    """
    subject = Subject(call, facts)
    rule, verdict = by_rules(policy, subject)
    return under_ceiling(policy, above_floor(verdict, call.tool), rule, subject)


def by_rules(policy: Policy, subject: Subject) -> tuple[Rule | None, Verdict]:
    """What the rules say, and the one that says so."""
    for rule in policy.held_against(subject):
        fitting = fit_all(rule.tests, subject)
        if fitting is NO:
            continue
        if fitting is Fit.YES:
            return rule, rule.verdict
        if not isinstance(rule.verdict, Allow):
            # Passing over a stricter rule that may well apply would widen what is allowed. Passing over an allow
            # cannot: nothing below it is wider.
            return rule, could_not_find_out(rule, subject)
    return None, Ask(rule="no rule matched", version=policy.version)


def could_not_find_out(rule: Rule, subject: Subject) -> Deny:
    """The refusal where a rule hangs on something that is not known."""
    doubts = [check.doubt for check in rule.checks if check.fits(subject) is None]
    return Deny(
        rule=rule.name,
        source=rule.verdict.source,
        version=rule.verdict.version,
        reason=f"{' and '.join(doubts)} could not be found out, and the rule “{rule.name}” depends on it.",
    )


def above_floor(verdict: Verdict, tool: Tool) -> Verdict:
    """An allow becomes an ask where the tool's server requires approval."""
    if isinstance(verdict, Allow) and tool.requires_approval:
        return Ask(
            rule=f"{verdict.rule}; {tool.server} requires approval for {tool.name}",
            source=verdict.source,
            version=verdict.version,
            reads=verdict.reads,
        )
    return verdict


def under_ceiling(policy: Policy, verdict: Verdict, rule: Rule | None, subject: Subject) -> Verdict:
    """What the mode leaves of a verdict; `rule` is the one that gave it."""
    facts = subject.facts
    if isinstance(verdict, Deny) or facts.mode == Mode.DEFAULT or verdict.reads or subject.known_to_read:
        return verdict
    refused = _refused_in_read_only if facts.mode == Mode.READ_ONLY else _refused_in_safe_write
    reason = refused(rule, subject)
    if reason is None:
        return verdict
    return Deny(rule=f"mode {facts.mode}", version=policy.version, reason=reason)


def _refused_in_read_only(_: Rule | None, subject: Subject) -> str | None:
    command, what = subject.command, _name_of(subject)
    if command is None:
        return f"In readOnly mode nothing may be changed, and {what} is not known to only read."
    if not command.readable:
        return (
            f"In readOnly mode nothing may be changed, and this command for {what} is not one plain command "
            "(without pipes, substitutions or line breaks) of which that is known."
        )
    return (
        f"In readOnly mode nothing may be changed, and the command “{command.readings[-1][:60]}” for {what} is not "
        "known to only read."
    )


def _refused_in_safe_write(rule: Rule | None, subject: Subject) -> str | None:
    what = _name_of(subject)
    if rule is None or not rule.match.names_tools:
        return f"In safeWrite mode only changes that a rule names are possible, and no rule names {what}."
    if not is_quoted(subject.call.quote, subject.facts.said):
        return (
            f"In safeWrite mode {what} needs a quote: the requester's own words in this turn that ask for this very "
            "action, at least three in a row or a whole message. Quote them, or ask the requester whether they want it."
        )
    return None


def _name_of(subject: Subject) -> str:
    return f"{subject.call.tool.name} of {subject.call.tool.server}"


# ------------------------------------------------------ explanations, rule by rule (`policy explain`)


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
    down_to = len(policy.rules) if rule is None else policy.rules.index(rule) + 1
    return Explanation(
        verdict=verdict,
        tried=tuple(_tried(each, subject) for each in policy.rules[:down_to]),
        decided_by=rule.name if rule else "",
        floor="" if raised is said else f"{call.tool.server} requires approval for {call.tool.name}: allow became ask.",
        ceiling=f"Mode {facts.mode}: {verdict.reason}" if verdict is not raised and isinstance(verdict, Deny) else "",
        approvers=_approvers(verdict, facts.requester) if isinstance(verdict, Ask) else "",
    )


def _tried(rule: Rule, subject: Subject) -> Tried:
    wrong = [check for check in rule.checks if not check.fits(subject)]
    because = tuple(f"{check.field} is {check.found(subject)}; wanted: {check.wanted}" for check in wrong)
    return Tried(rule.name, rule.source, fit_all([check.fits for check in rule.checks], subject), because)


def _approvers(ask: Ask, requester: str) -> str:
    who = describe_approvers(ask, (requester,), str)
    if ask.escalate_after is None:
        return who
    return f"{who}; after {yaml_values.in_words(ask.escalate_after)} also {', '.join(ask.escalate_to)}"


# ------------------------------------------------------------- who may decide, in the words of a card


def describe_approvers(ask: Ask, requester_names: Sequence[str], name_of: Callable[[str], str]) -> str:
    """Plain words such as "Ana", "anyone but Ana", "2 of: Ben, Chloe or members of finance".

    `requester_names` are names in the order of `ApprovalAsked.requesters`; `name_of` gives the name of a person id or
    group reference. Names are passed through as they are: escaping them is the renderer's.
    """
    four_eyes = ask.self_approval == "fourEyes"
    listed = [approver for approver in ask.approvers if not (four_eyes and approver == "requester")]
    if "any" in listed:
        listed = ["any"]
    words = [_in_words(approver, requester_names, name_of) for approver in listed]
    if not words:
        return "nobody"
    several = f"{ask.quorum} of: " if ask.quorum > 1 else ""
    return f"{several}{_list(words, 'or')}{_exception(ask, listed, words, requester_names)}"


def _exception(ask: Ask, listed: Sequence[str], words: Sequence[str], requester_names: Sequence[str]) -> str:
    if ask.self_approval != "fourEyes" or not requester_names:
        return ""
    open_ended = any(approver in ("any", "channel") or is_group(approver) for approver in listed)
    if not open_ended and not set(words) & set(requester_names):
        return ""
    return f"{' but' if len(words) == 1 else ', but not'} {_list(list(dict.fromkeys(requester_names)), 'and')}"


def _in_words(approver: str, requester_names: Sequence[str], name_of: Callable[[str], str]) -> str:
    match approver:
        case "any":
            return "anyone"
        case "channel":
            return "anyone in this channel"
        case "requester":
            return requester_names[0] if requester_names else "the requester"
        case group if is_group(group):
            return f"members of {name_of(group)}"
        case person:
            return name_of(person)


def _list(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
