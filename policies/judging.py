"""A policy, and its judgement of one tool call: what the rules say, what the tool's server requires, and the mode's
ceiling.

A policy is rules in the order in which they were written, each a match and a prepared verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from policies import yaml_values
from policies.approvers import either_of
from policies.commands import argument_of_command
from policies.matching import (
    NO,
    TOGETHER,
    Check,
    Fit,
    RuleIndex,
    Subject,
    Test,
    checks_of,
    fit_all,
    nothing_but_a_command,
    rule_index,
)
from policies.model import Allow, Ask, Call, Deny, Facts, Match, Mode, Tool, Verdict, is_group
from policies.patterns import glob
from policies.quoting import is_quoted
from policies.reasons import Reasons, conditions_of, why
from policies.trust import known_to_read
from translations import gettext as _

ONLY_ITS_WORD = (
    "a program says of itself what it is called: match a client to be stricter with it, not to permit it something"
)
"""What is said of rules that believe a client."""
MOST_REMEMBERED = 4_096
"""Tools for which a policy remembers its candidates; far more than any company has, few enough for its memory."""


class PolicyError(Exception):
    """A policy that cannot be used; the start stops with it (rule 9 in docs/architecture.md).

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

    @property
    def believes_a_client(self) -> bool:
        """Whether it permits something to a program because of the name that the program has given itself."""
        return bool(self.match.client) and _permits(self.verdict)

    @cached_property
    def reasons(self) -> Mapping[str, Any]:
        """What of `Reasons` is the same for all calls that it fits."""
        conditions, more = conditions_of({check.field: check.wanted for check in checks_of(self.match)})
        of = {"of_server": self.match.server or "", "of_tool": self.match.tool or ""}
        return {"rule": self.name, "conditions": conditions, "more": more, **of}

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the rule's match, prepared once."""
        if _permits(self.verdict) and self.match.command is not None:
            return (*checks_of(self.match), nothing_but_a_command())
        return checks_of(self.match)

    @cached_property
    def tests(self) -> tuple[Test, ...]:
        """What its checks ask, but those of the tool's name and server: `Policy.candidates` has asked these."""
        return tuple(check.fits for check in self.checks if check.field not in ("server", "tool"))


def _permits(verdict: Verdict) -> bool:
    return isinstance(verdict, Allow) or (isinstance(verdict, Ask) and verdict.reads)


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
    """The policy's file, as it was named."""
    version: str = ""
    """The first 12 hexadecimal digits of the SHA-256 of the file."""
    text: str = field(default="", repr=False, compare=False)
    """The file, as it was read; empty: the rules are of none."""
    _tools: dict[tuple[str, str], Candidates] = field(default_factory=dict, init=False, repr=False, compare=False)
    _shared: dict[tuple[int, ...], Candidates] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def requester_groups(self) -> frozenset[str]:
        """The group references to look up for a requester before judging (`Facts.groups`)."""
        return frozenset(reference for rule in self.rules for reference in rule.match.requester if is_group(reference))

    @cached_property
    def people_and_groups(self) -> frozenset[str]:
        """What its rules name as requesters, as approvers, or to be told: person ids, groups, places and words."""
        named: set[str] = set()
        for rule in self.rules:
            named.update(rule.match.requester)
            if isinstance(rule.verdict, Ask):
                named.update(rule.verdict.approvers, rule.verdict.escalate_to, rule.verdict.route_to)
        return frozenset(named)

    def prepare(self) -> None:
        """Do all at once that is otherwise done for the first call: a thousand rules take a tenth of a second."""
        for rule, _tool in self._by_tool:
            len(rule.tests)

    def candidates(self, server: str, tool: str) -> tuple[Rule, ...]:
        """The rules, in order, that can be about a tool at all."""
        return self._about(server, tool).rules

    def requesters_about(self, tools: Iterable[Tool]) -> frozenset[str]:
        """The person ids and group references that rules about any of these tools name as requesters: what has to be
        known of a requester before their calls are judged (`Facts.groups`)."""
        about = {id(rules): rules for rules in (self.candidates(tool.server, tool.name) for tool in tools)}
        return frozenset(named for rules in about.values() for rule in rules for named in rule.match.requester)

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
    def _by_tool(self) -> tuple[tuple[Rule, Callable[[str, str], bool]], ...]:
        return tuple((rule, _about(rule.match)) for rule in self.rules)


def _about(match: Match) -> Callable[[str, str], bool]:
    is_like = None if match.tool is None else glob(match.tool)

    def is_about(server: str, tool: str) -> bool:
        return match.server in (None, server) and (is_like is None or bool(is_like(tool)))

    return is_about


# -------------------------------------------------------------------------- the judgement of a call


def judge(policy: Policy, call: Call, facts: Facts) -> Allow | Ask | Deny:
    """Whether a call may run, must be asked about, or may not run. Pure; raises nothing.

    The first rule that fits decides; when none does, the requester is asked. With `Tool.requires_approval` or
    `Facts.agent_asks` an allow becomes an ask. `facts.mode` is the effective mode and a ceiling:

    - `readOnly`: only calls that are known to read: a rule says so (`reads: true`), the operator's list, a trusted
      server, or the command;
    - `default`: what the rules say;
    - `safeWrite`: those, and calls for which a rule names the server, the tool or the command, where the model quotes
      the words of the requester that ask for it (`Call.quote` from `Facts.said`).
    """
    return judge_with_reasons(policy, call, facts)[0]


def judge_with_reasons(policy: Policy, call: Call, facts: Facts) -> tuple[Allow | Ask | Deny, Reasons]:
    """The same, and why. Pure; raises nothing."""
    subject = Subject(call, facts)
    rule, said = by_rules(policy, subject)
    by_server = as_server_requires(said, call.tool)
    raised = as_agent_requires(by_server, call.tool, facts)
    verdict = under_ceiling(policy, raised, rule, subject)
    by = "server" if by_server is not said else "agent" if isinstance(raised, Ask) and isinstance(said, Allow) else ""
    reasons = Reasons(
        decided=verdict.verdict,
        server=call.tool.server,
        tool=call.tool.name,
        raised_by=by,
        agent=facts.agent if by == "agent" else "",
        mode=facts.mode.value if verdict is not raised else "",
        is_unknown=rule is not None and isinstance(said, Deny) and said is not rule.verdict,
        **(rule.reasons if rule is not None else {}),
    )
    return verdict, reasons


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


SERVER_ASKS = "{rule}; {server} requires approval for {tool}"
AGENT_ASKS = "{rule}; the {agent} agent requires approval for {tool} of {server}"
"""What stands in the place of a rule's name where more than the rule has a call asked about."""


def as_server_requires(verdict: Verdict, tool: Tool) -> Verdict:
    """An allow becomes an ask where the tool's server requires approval."""
    if isinstance(verdict, Allow) and tool.requires_approval:
        return Ask(
            rule=SERVER_ASKS.format(rule=verdict.rule, server=tool.server, tool=tool.name),
            source=verdict.source,
            version=verdict.version,
            reads=verdict.reads,
        )
    return verdict


def as_agent_requires(verdict: Verdict, tool: Tool, facts: Facts) -> Verdict:
    """An allow becomes an ask where the agent that calls has to ask about the tool each time; and what is asked cannot
    be answered beforehand."""
    if not facts.agent_asks or isinstance(verdict, Deny):
        return verdict
    if isinstance(verdict, Ask):
        return verdict.model_copy(update={"always_allow": False})
    return Ask(
        rule=AGENT_ASKS.format(rule=verdict.rule, agent=facts.agent, tool=tool.name, server=tool.server),
        source=verdict.source,
        version=verdict.version,
        reads=verdict.reads,
        always_allow=False,
    )


def as_required(verdict: Verdict, tool: Tool, facts: Facts) -> Verdict:
    """What a verdict is beyond the rules: as the tool's server requires, and the agent that calls."""
    return as_agent_requires(as_server_requires(verdict, tool), tool, facts)


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


# ------------------------------------------- tools that a caller need not be offered: all calls are denied


def denied_anyway(policy: Policy, tool: Tool, facts: Facts) -> bool:
    """Whether every call of a tool by a caller is denied, whatever its arguments and its quote, now and at any other
    time. Pure; raises nothing.

    `facts`: as they are for a call by this caller, but for `at`, which counts for nothing. Where something could not be
    found out (`Facts.groups`), a call may still be allowed or asked about once it can.
    """
    subject = Subject(Call(tool, {}), facts)
    for rule in policy.candidates(tool.server, tool.name):
        fits = _fits_every_call(rule, subject)
        if fits is False:
            continue
        if not _is_denied(rule, rule.verdict, subject):
            return False
        if fits:
            return True
    return _is_denied(None, Ask(rule="no rule matched"), subject)


def _fits_every_call(rule: Rule, subject: Subject) -> bool | None:
    """`None`: some calls perhaps, and others not, or that could not be found out; false: none."""
    tool, answer = subject.call.tool, True
    for check in rule.checks:
        fits = None if check.varies(tool) else check.fits(subject)
        if fits is False:
            return False
        answer = answer and fits is True
    return answer or None


def _is_denied(rule: Rule | None, verdict: Verdict, subject: Subject) -> bool:
    """Whether a verdict of this rule denies in this mode, whatever the arguments and the quote (`under_ceiling`)."""
    tool, facts = subject.call.tool, subject.facts
    if isinstance(verdict, Deny):
        return True
    may_read = argument_of_command(tool.input_schema) is not None or known_to_read(tool)
    if facts.mode == Mode.DEFAULT or verdict.reads or may_read:
        return False
    may_be_quoted = rule is not None and rule.match.names_tools and bool(facts.said)
    return facts.mode == Mode.READ_ONLY or not may_be_quoted


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
    """The verdict that `judge` gives."""
    tried: tuple[Tried, ...]
    """The rules in order, down to the one that decided."""
    decided_by: str
    """Name of the rule that decides; empty when none fits."""
    server_requirement: str
    """What the tool's server requires beyond the rules, in a sentence; empty when that changed nothing."""
    agent_requirement: str
    """What the agent requires beyond that, likewise."""
    ceiling: str
    """What the mode took away, in a sentence; empty when that changed nothing."""
    approvers: str
    """Who could approve, in words; empty when nobody is asked."""
    why: str
    """The sentence that people are told."""


def explain(policy: Policy, call: Call, facts: Facts) -> Explanation:
    """The judgement of a call, step by step. Pure; raises nothing."""
    subject = Subject(call, facts)
    rule, said = by_rules(policy, subject)
    by_server = as_server_requires(said, call.tool)
    raised = as_agent_requires(by_server, call.tool, facts)
    verdict, reasons = judge_with_reasons(policy, call, facts)
    down_to = len(policy.rules) if rule is None else policy.rules.index(rule) + 1
    return Explanation(
        verdict=verdict,
        tried=tuple(_tried(each, subject) for each in policy.rules[:down_to]),
        decided_by=rule.name if rule else "",
        server_requirement=""
        if by_server is said
        else f"{call.tool.server} requires approval for {call.tool.name}: allow became ask.",
        agent_requirement=""
        if raised is by_server
        else f"The {facts.agent} agent requires approval for {call.tool.name} each time: no allow, no “always allow”.",
        ceiling=f"Mode {facts.mode}: {verdict.reason}" if reasons.mode and isinstance(verdict, Deny) else "",
        approvers=_approvers(verdict, facts.requester) if isinstance(verdict, Ask) else "",
        why=why(reasons),
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
    """Plain words such as "Ana", "someone other than Ana", "2 of: Ben, Chloe or members of finance".

    They stand after "Approver:" and after "Waiting for", on cards and in lists. `requester_names` are names in the
    order of `ApprovalAsked.requesters`; `name_of` gives the name of a person id or group reference. Names are passed
    through as they are: escaping them is the renderer's.
    """
    four_eyes = ask.self_approval == "fourEyes"
    listed = [approver for approver in ask.approvers if not (four_eyes and approver == "requester")]
    if "any" in listed:
        listed = ["any"]
    words = [_in_words(approver, requester_names, name_of) for approver in listed]
    if not words:
        return _("no one")
    left_out = _all_of(_left_out(ask, listed, words, requester_names))
    if listed in (["any"], ["channel"]):
        return _anyone(ask.quorum, left_out, in_channel=listed == ["channel"])
    told = either_of(words)
    if ask.quorum > 1:
        told = _("{count} of: {approvers}").format(count=ask.quorum, approvers=told)
    return _("{approvers}, except {names}").format(approvers=told, names=left_out) if left_out else told


def _anyone(quorum: int, left_out: str, *, in_channel: bool) -> str:
    """Who may decide where nobody is listed. `left_out`: names; empty: nobody is."""
    if in_channel:
        one = _("someone in this channel other than {names}") if left_out else _("anyone in this channel")
        several = (
            _("{count} people in this channel other than {names}") if left_out else _("{count} people in this channel")
        )
    else:
        one = _("someone other than {names}") if left_out else _("anyone")
        several = _("{count} people other than {names}") if left_out else _("{count} people")
    return (several if quorum > 1 else one).format(count=quorum, names=left_out)


def _left_out(ask: Ask, listed: Sequence[str], words: Sequence[str], requester_names: Sequence[str]) -> Sequence[str]:
    """Names of those who may not decide though others like them may."""
    if ask.self_approval != "fourEyes":
        return ()
    open_ended = any(approver in ("any", "channel") or is_group(approver) for approver in listed)
    if not open_ended and not set(words) & set(requester_names):
        return ()
    return list(dict.fromkeys(requester_names))


def _in_words(approver: str, requester_names: Sequence[str], name_of: Callable[[str], str]) -> str:
    match approver:
        case "any":
            return _("anyone")
        case "channel":
            return _("anyone in this channel")
        case "requester":
            return requester_names[0] if requester_names else _("the requester")
        case group if is_group(group):
            return _("members of {group}").format(group=name_of(group))
        case person:
            return name_of(person)


def _all_of(names: Sequence[str]) -> str:
    if len(names) <= 1:
        return "".join(names)
    return _("{names} and {last}").format(names=", ".join(names[:-1]), last=names[-1])
