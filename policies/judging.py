"""The judgement of one tool call: what the rules say, raised to the tool's floor, under the mode's ceiling."""

from __future__ import annotations

from policies.matching import Fit, fit
from policies.model import Allow, Ask, Call, Deny, Facts, Mode, Tool, Verdict
from policies.rules import Policy, Rule
from policies.trust import known_to_read


def judge(policy: Policy, call: Call, facts: Facts) -> Allow | Ask | Deny:
    """Whether a call may run, must be asked about, or may not run. Pure; raises nothing.

    The first rule that fits decides; when none does, the requester is asked. `Tool.requires_approval` is a floor: an
    allow becomes an ask. `facts.mode` is the effective mode and a ceiling:

    - `readOnly`: only calls that a trusted server says to be reading;
    - `default`: what the rules say;
    - `safeWrite`: those, and calls for which a rule names the server or the tool. (Quoting a call back before it
      runs, the other half of this mode, comes in a later issue.)
    """
    rule, verdict = _by_rules(policy, call, facts)
    return _under_ceiling(_above_floor(verdict, call.tool), rule, call.tool, facts.mode)


def _by_rules(policy: Policy, call: Call, facts: Facts) -> tuple[Rule | None, Verdict]:
    for rule in policy.rules:
        match fit(rule.match, call, facts):
            case Fit.YES:
                return rule, rule.verdict
            case Fit.UNKNOWN if not isinstance(rule.verdict, Allow):
                # Passing over a stricter rule that may well apply would widen what is allowed. Passing over an allow
                # cannot: nothing below it is wider.
                return rule, _could_not_find_out(rule)
            case _:
                continue
    return None, Ask(rule="no rule matched")


def _could_not_find_out(rule: Rule) -> Deny:
    return Deny(
        rule=rule.name,
        reason=f"Whether the requester is in {rule.match.requester} could not be found out, "
        f"and the rule “{rule.name}” depends on it. Try again later.",
    )


def _above_floor(verdict: Verdict, tool: Tool) -> Verdict:
    if isinstance(verdict, Allow) and tool.requires_approval:
        return Ask(rule=f"{verdict.rule}; {tool.server} requires approval for {tool.name}")
    return verdict


def _under_ceiling(verdict: Verdict, rule: Rule | None, tool: Tool, mode: Mode) -> Verdict:
    if isinstance(verdict, Deny) or mode == Mode.DEFAULT or known_to_read(tool):
        return verdict
    if mode == Mode.SAFE_WRITE:
        if rule is not None and rule.match.names_tools:
            return verdict
        return Deny(
            rule=f"mode {Mode.SAFE_WRITE}",
            reason=f"In safeWrite mode only changes that a rule names are possible, and no rule names {tool.name} "
            f"of {tool.server}.",
        )
    return Deny(
        rule=f"mode {Mode.READ_ONLY}",
        reason=f"In readOnly mode nothing may be changed, and {tool.name} of {tool.server} is not known to only read.",
    )
