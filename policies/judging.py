"""The judgement of one tool call: what the rules say, raised to the tool's floor, under the mode's ceiling."""

from __future__ import annotations

from policies.matching import NO, Fit, fit_all
from policies.model import Allow, Ask, Call, Deny, Facts, Mode, Tool, Verdict
from policies.quoting import is_quoted
from policies.rules import Policy, Rule
from policies.subject import Subject


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
