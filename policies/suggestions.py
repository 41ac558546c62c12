"""Rules that history speaks for: an allow where people have always approved unchanged, a deny where they have always
rejected, an ask where what deletes runs without anybody being asked. Pure.

Each suggestion is one rule more, right before the one that decides such calls now. It wants all that that one wants,
and more: so it takes calls from that rule alone. It is proved by judging all of history again with the file that has
it, and where anything comes out otherwise than it should, there is no such suggestion.

No allow covers a call that somebody rejected, edited or withdrew, or one that may delete; not even a call of which the
record lacks something, if it may be one. No deny covers a call that somebody approved, or that ran.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Literal

from policies.commands import argument_of_command
from policies.judging import Policy, PolicyError, Rule, by_rules, judge, judge_with_reasons
from policies.matching import NO, Subject, fit_all
from policies.model import Allow, Ask, Deny, Risk, Verdict
from policies.policy_file import parse_policy
from policies.replaying import RecordedCall
from policies.trust import risks_of
from policies.yaml_values import LineError, read_yaml

Outcome = Literal["allowed", "denied", "unchanged", "edited", "rejected", "contested", "expired", "withdrawn", "other"]
"""What came of a judged call. Nobody was asked: `allowed`, `denied`. People were: approved `unchanged` or `edited`,
`rejected`, `contested` (approved, though somebody had rejected it), `expired`, `withdrawn` by its requester, or `other`
(they wrote something else instead, or the request was void)."""
Kind = Literal["allow", "deny", "ask"]

LEAST_APPROVED = 10
"""Calls that people approved unchanged, for an allow. Our own choice."""
LEAST_REJECTED = 5
"""Calls that people rejected, for a deny, likewise."""
LEAST_UNASKED = 3
"""Calls that may delete and were not asked about, for an ask, likewise."""
MOST_UNDECIDED = 0.1
"""The part of the calls that people were asked about, and that nobody decided, of those that an allow covers."""
MOST_SUGGESTIONS = 20
"""Of one kind; those that cover the most calls."""
_MOST_OF_A_RULE = 3
"""For one tool under one rule."""
_MOST_TRIED = 40
"""Ways in which one tool's calls are told apart."""
_MOST_TEXTS = 5
"""Different texts of an argument to which an allow is limited; more are taken for free text."""
_LONGEST_TEXT = 60
_AGAINST_ALLOW: frozenset[Outcome] = frozenset({"edited", "rejected", "contested", "withdrawn", "denied"})
_AGAINST_DENY: frozenset[Outcome] = frozenset({"unchanged", "edited", "contested", "allowed"})
_UNDECIDED: frozenset[Outcome] = frozenset({"expired", "other"})
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_TOOL = re.compile(r"[A-Za-z0-9._/-]+")
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class HistoricCall:
    """A call of the past, and what came of it."""

    recorded: RecordedCall
    outcome: Outcome
    call_id: str = ""
    at: str = ""
    """When it ended, as the audit log has it."""
    input: str = ""
    """Its arguments, short and without secrets."""

    @property
    def about(self) -> tuple[str, str]:
        """Its server and its tool."""
        return self.recorded.call.tool.server, self.recorded.call.tool.name

    @property
    def destroys(self) -> bool:
        """Whether it may delete, as far as tool and command are known; rules that say that it reads count for
        nothing."""
        return Risk.DESTROYS in risks_of(self.recorded.call, Allow(rule=""))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One rule more, and what it would have changed."""

    kind: Kind
    name: str
    rule: str
    """The rule as YAML, indented as in the file."""
    before: str
    """Name of the rule that it stands before; empty: it is the last one."""
    policy: str
    """The whole file with it."""
    server: str
    tool: str
    open_arguments: tuple[str, ...]
    """Of an allow: arguments that it does not limit, though they were given."""
    risks: tuple[Risk, ...]
    """What such calls may do."""
    replayed: int
    """Calls of the tool that were judged again."""
    changed: tuple[HistoricCall, ...]
    """Those that would have been decided otherwise, the oldest first."""

    @property
    def is_looser(self) -> bool:
        """Whether fewer calls are asked about."""
        return self.kind == "allow"

    @property
    def decided(self) -> int:
        """How many of them speak for it: approved unchanged, rejected, or not asked about."""
        return sum(past.outcome == _SPEAKS_FOR[self.kind] for past in self.changed)


_SPEAKS_FOR: Mapping[Kind, Outcome] = {"allow": "unchanged", "deny": "rejected", "ask": "allowed"}
_LEAST: Mapping[Kind, int] = {"allow": LEAST_APPROVED, "deny": LEAST_REJECTED, "ask": LEAST_UNASKED}


@dataclass(frozen=True, slots=True)
class _Judged:
    """A past call, and what the rules say of it now."""

    past: HistoricCall
    verdict: Verdict
    is_by_rules: bool
    """Whether nothing but the rules says so: neither the server nor the agent nor the mode."""


@dataclass(slots=True)
class _Group:
    """The calls of one tool that one rule decides now."""

    rule: Rule | None
    server: str
    tool: str
    calls: list[_Judged] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What a rule would want beside its server and its tool."""

    match: Mapping[str, Any] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)
    open_arguments: tuple[str, ...] = ()


def suggestions(
    policy: Policy, history: Sequence[HistoricCall], *, not_whole: Collection[tuple[str, str]] = ()
) -> list[Suggestion]:
    """What history speaks for, the looser ones first, and of each kind those that cover the most calls.

    Args:
        policy: the rules in force, with their text.
        history: calls of the past, the oldest first, each once.
        not_whole: servers and tools of which calls are known to be missing from `history` that somebody did not
            approve: nothing is suggested about them.
    """
    of_tool: defaultdict[tuple[str, str], list[_Judged]] = defaultdict(list)
    groups: dict[tuple[str, str, str], _Group] = {}
    for past in history:
        if past.about in not_whole:
            continue
        rule, judged = _judged(policy, past)
        of_tool[past.about].append(judged)
        key = (rule.name if rule is not None else "", *past.about)
        groups.setdefault(key, _Group(rule, *past.about)).calls.append(judged)
    file = _RulesFile(policy, _as_written(policy.text))
    found: list[Suggestion] = []
    for group in groups.values():
        found += _of_group(file, group, of_tool[group.server, group.tool])
    return _best(found)


def _judged(policy: Policy, past: HistoricCall) -> tuple[Rule | None, _Judged]:
    recorded = past.recorded
    rule, _said = by_rules(policy, Subject(recorded.call, recorded.facts))
    verdict, reasons = judge_with_reasons(policy, recorded.call, recorded.facts)
    by_rules_alone = not (reasons.raised_by or reasons.mode or reasons.is_unknown)
    return rule, _Judged(past, verdict, by_rules_alone)


def _best(found: Sequence[Suggestion]) -> list[Suggestion]:
    ordered = sorted(found, key=lambda each: (-each.decided, each.server, each.tool, each.name))
    kinds: Sequence[Kind] = ("allow", "deny", "ask")
    return [each for kind in kinds for each in islice((one for one in ordered if one.kind == kind), MOST_SUGGESTIONS)]


def _of_group(file: _RulesFile, group: _Group, of_tool: Sequence[_Judged]) -> Iterator[Suggestion]:
    if not _TOOL.fullmatch(group.tool):
        return
    ways: Sequence[tuple[Kind, Callable[[_Group], Iterator[_Candidate]]]]
    ways = (("allow", _allows), ("deny", _denies), ("ask", _asks))
    for kind, candidates in ways:
        yield from islice(_proved(file, group, of_tool, kind, candidates(group)), _MOST_OF_A_RULE)


def _proved(
    file: _RulesFile, group: _Group, of_tool: Sequence[_Judged], kind: Kind, candidates: Iterable[_Candidate]
) -> Iterator[Suggestion]:
    """The candidates that hold. The first one tells no calls apart, and where it holds, the others are needless."""
    taken: set[int] = set()
    for number, candidate in enumerate(islice(candidates, _MOST_TRIED)):
        suggestion = _proof(file, group, of_tool, kind, candidate)
        if suggestion is None or taken & set(map(id, suggestion.changed)):
            continue
        taken.update(map(id, suggestion.changed))
        yield suggestion
        if number == 0:
            return


# -------------------------------------------------------------------------------------- candidates


def _allows(group: _Group) -> Iterator[_Candidate]:
    good = [
        each.past
        for each in group.calls
        if each.past.outcome == "unchanged" and each.is_by_rules and _may_be_allowed(each) and not each.past.destroys
    ]
    if len(good) < LEAST_APPROVED:
        return
    for narrowed, calls in _told_apart(good, LEAST_APPROVED):
        limits = _limits(calls)
        safe = _never_destroying(calls)
        if limits is None or safe is None:
            continue
        conditions, open_arguments = limits
        yield _Candidate({**safe, **narrowed.match}, {**conditions, **narrowed.args}, open_arguments)


def _may_be_allowed(judged: _Judged) -> bool:
    """Where rules want a second person, or several, that is meant; and of a command it is not known what it will be."""
    verdict, call = judged.verdict, judged.past.recorded.call
    if not isinstance(verdict, Ask) or verdict.self_approval == "fourEyes" or verdict.quorum > 1:
        return False
    is_command = argument_of_command(call.tool.input_schema) is not None
    return not is_command and Subject(call, judged.past.recorded.facts).command_given is None


def _denies(group: _Group) -> Iterator[_Candidate]:
    rejected = [
        each.past
        for each in group.calls
        if each.past.outcome == "rejected" and isinstance(each.verdict, Ask) and not _lacks_something(each.past)
    ]
    if len(rejected) >= LEAST_REJECTED:
        yield from (narrowed for narrowed, _calls in _told_apart(rejected, LEAST_REJECTED))


def _lacks_something(past: HistoricCall) -> bool:
    return not past.recorded.is_whole


def _asks(group: _Group) -> Iterator[_Candidate]:
    unasked = [
        each
        for each in group.calls
        if each.past.outcome == "allowed"
        and isinstance(each.verdict, Allow)
        and each.is_by_rules
        and each.past.destroys
    ]
    if len(unasked) >= LEAST_UNASKED:
        yield _Candidate()


def _told_apart(calls: list[HistoricCall], least: int) -> Iterator[tuple[_Candidate, list[HistoricCall]]]:
    """All of them; then those that have one thing in common, the most first."""
    yield _Candidate(), calls
    kinds: list[tuple[Callable[[HistoricCall], Any], Callable[[Any], _Candidate]]] = [
        (_agent_of, lambda value: _Candidate({"agent": value})),
        (lambda past: past.recorded.facts.place, lambda value: _Candidate({"channel": value})),
        (lambda past: past.recorded.facts.requester, lambda value: _Candidate({"requester": [value]})),
    ]
    names = {name for past in calls for name in past.recorded.call.arguments if _NAME.fullmatch(name)}
    kinds += [(_argument(name), _wanting(name)) for name in sorted(names)]
    apart: list[tuple[int, str, _Candidate, list[HistoricCall]]] = []
    for value_of, candidate in kinds:
        by_value: defaultdict[tuple[str, Any], list[HistoricCall]] = defaultdict(list)
        for past in calls:
            value = value_of(past)
            if value not in ("", None):
                by_value[type(value).__name__, value].append(past)
        for (_type, value), having in by_value.items():
            if len(having) >= least:
                made = candidate(value)
                apart.append((-len(having), str(made), made, having))
    for _size, _order, made, having in sorted(apart, key=lambda each: each[:2]):
        yield made, having


def _agent_of(past: HistoricCall) -> str:
    return past.recorded.facts.agent


def _argument(name: str) -> Callable[[HistoricCall], Any]:
    def value_of(past: HistoricCall) -> Any:
        value = past.recorded.call.arguments.get(name)
        is_short_text = isinstance(value, str) and len(value) <= _LONGEST_TEXT and value.isprintable()
        return value if is_short_text or isinstance(value, bool) else None

    return value_of


def _wanting(name: str) -> Callable[[Any], _Candidate]:
    return lambda value: _Candidate(args={name: {"equals": value}})


def _limits(calls: Sequence[HistoricCall]) -> tuple[Mapping[str, Any], tuple[str, ...]] | None:
    """What their arguments have in common, as conditions, and the arguments that these do not limit; `None`: that
    cannot be said."""
    given: defaultdict[str, list[Any]] = defaultdict(list)
    for past in calls:
        for name, value in past.recorded.call.arguments.items():
            given[name].append(value)
    conditions, unlimited = dict[str, Any](), list[str]()
    for name, values in sorted(given.items()):
        if not _NAME.fullmatch(name):
            return None
        if 2 * len(values) < len(calls):
            conditions[name] = {"present": False}
            continue
        limit = _limit(values)
        if limit is None:
            unlimited.append(name)
        else:
            conditions[name] = limit
    return conditions, tuple(unlimited)


def _limit(values: Sequence[Any]) -> Mapping[str, Any] | None:
    """The condition that all of them fit and little else does; `None`: they are free text, lists or objects."""
    if all(isinstance(value, bool) for value in values):
        return {"equals": values[0]} if len(set(values)) == 1 else None
    if all(map(_is_number, values)):
        return {"min": min(values), "max": max(values)}
    if not all(isinstance(value, str) and len(value) <= _LONGEST_TEXT and value.isprintable() for value in values):
        return None
    texts = Counter(values)
    if len(texts) > _MOST_TEXTS or min(texts.values()) < 2:  # once may be chance
        return None
    return {"in": sorted(texts)}


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) <= _EXACT
    )


def _never_destroying(calls: Sequence[HistoricCall]) -> Mapping[str, Any] | None:
    """What a rule has to want so that no call that it fits may delete, also when the tool's server says otherwise one
    day."""
    subjects = [Subject(past.recorded.call, past.recorded.facts) for past in calls]
    if all(subject.hints is not None and subject.hints["destructiveHint"] is False for subject in subjects):
        return {"annotations": {"destructiveHint": False}}
    return {"reads": True} if all(subject.known_to_read for subject in subjects) else None


# -------------------------------------------------------------------------------------------- proof


def _proof(
    file: _RulesFile, group: _Group, of_tool: Sequence[_Judged], kind: Kind, candidate: _Candidate
) -> Suggestion | None:
    """The suggestion, if it does what it should and nothing else."""
    policy, match = file.policy, _match(file, group, candidate)
    if match is None:
        return None
    written = _written(policy, group, kind, match)
    alone = _read(f"version: 1\nrules:\n{written}")
    if alone is None or any(may_cover(alone.rules[0], each.past) for each in of_tool if _speaks_against(kind, each)):
        return None
    text = _inserted(policy, group.rule, written)
    changed_policy = None if text is None else _read(text, policy.source)
    if text is None or changed_policy is None or not _has_one_more(policy, changed_policy, alone.rules[0].name):
        return None
    changed: list[HistoricCall] = []
    for each in of_tool:
        after = judge(changed_policy, each.past.recorded.call, each.past.recorded.facts)
        if _comes_to_the_same(each.verdict, after):
            continue
        if not _is_meant(kind, each, after):
            return None
        changed.append(each.past)
    if not _suffices(kind, changed):
        return None
    risks = dict.fromkeys(risk for past in changed for risk in risks_of(past.recorded.call, Allow(rule="")))
    return Suggestion(
        kind=kind,
        name=alone.rules[0].name,
        rule=written,
        before=group.rule.name if group.rule is not None else "",
        policy=text,
        server=group.server,
        tool=group.tool,
        open_arguments=tuple(name for name in candidate.open_arguments if name not in match.get("args", {})),
        risks=tuple(risks),
        replayed=len(of_tool),
        changed=tuple(changed),
    )


def may_cover(rule: Rule, past: HistoricCall) -> bool:
    """Whether a rule is about a call, or may be: what the record does not tell counts as if it fitted. Raises
    nothing."""
    open_fields: tuple[str, ...] = ()
    if _lacks_something(past) or past.outcome == "edited":  # as it was asked, or as it was approved
        open_fields += ("args.", "command")
    if past.outcome in _AGAINST_ALLOW:  # the same call again is covered once its server is trusted, or says otherwise
        open_fields += ("annotations.", "reads")
    checks = [check for check in rule.checks if not check.field.startswith(open_fields)]
    return fit_all([check.fits for check in checks], Subject(past.recorded.call, past.recorded.facts)) is not NO


def _speaks_against(kind: Kind, each: _Judged) -> bool:
    match kind:
        case "allow":
            return each.past.outcome in _AGAINST_ALLOW or each.past.destroys
        case "deny":
            return each.past.outcome in _AGAINST_DENY
        case "ask":
            return False


def _comes_to_the_same(before: Verdict, after: Verdict) -> bool:
    told = {"source", "version"}
    return before.model_dump(exclude=told) == after.model_dump(exclude=told)


def _is_meant(kind: Kind, each: _Judged, after: Verdict) -> bool:
    """Whether a suggestion of this kind is to change the verdict on a call so."""
    match kind:
        case "allow":
            return isinstance(each.verdict, Ask) and isinstance(after, Allow)
        case "deny":
            return isinstance(each.verdict, Ask) and isinstance(after, Deny)
        case "ask":
            return isinstance(each.verdict, Allow) and isinstance(after, Ask)


def _suffices(kind: Kind, changed: Sequence[HistoricCall]) -> bool:
    outcomes = Counter(past.outcome for past in changed)
    for_it = outcomes[_SPEAKS_FOR[kind]]
    undecided = sum(outcomes[each] for each in _UNDECIDED)
    return for_it >= _LEAST[kind] and (kind != "allow" or undecided <= MOST_UNDECIDED * (for_it + undecided))


def _read(text: str, source: str = "a suggestion") -> Policy | None:
    try:
        return parse_policy(text, source)
    except PolicyError:
        return None


def _has_one_more(policy: Policy, changed: Policy, name: str) -> bool:
    """Whether the file with the rule has all the others, in their order."""
    others = [(rule.name, rule.match) for rule in changed.rules if rule.name != name]
    return len(changed.rules) == len(policy.rules) + 1 and others == [(r.name, r.match) for r in policy.rules]


# ------------------------------------------------------------------------------------------- as text


@dataclass(frozen=True, slots=True)
class _RulesFile:
    """The rules in force, and how they are written."""

    policy: Policy
    rules: Sequence[Mapping[str, Any]]


def _as_written(text: str) -> Sequence[Mapping[str, Any]]:
    try:
        root = read_yaml(text)
    except LineError:
        return ()
    written = root.plain() if root is not None else {}
    return written.get("rules") or () if isinstance(written, dict) else ()


def _match(file: _RulesFile, group: _Group, candidate: _Candidate) -> Mapping[str, Any] | None:
    """All that the rule in force wants, and what the candidate does; `None`: that does not go together."""
    match: dict[str, Any] = {}
    if group.rule is not None:
        at = file.policy.rules.index(group.rule)
        if at >= len(file.rules):
            return None  # these rules are of no file
        match = {key: value for key, value in file.rules[at]["match"].items() if key not in ("server", "tool")}
    for key, value in candidate.match.items():
        wanted = match.get(key, value)
        if key == "annotations":
            if any(wanted.get(hint, hinted) != hinted for hint, hinted in value.items()):
                return None
            match[key] = {**wanted, **value}
        elif wanted != value:
            return None
        else:
            match[key] = value
    args = dict(match.get("args", {}))
    for name, condition in candidate.args.items():
        args[name] = _both(args[name], condition) if name in args else condition
    return {"server": group.server, "tool": group.tool, **match, **({"args": args} if args else {})}


def _both(own: Any, condition: Mapping[str, Any]) -> Any:
    """A condition as it is written in a rule, and another one that is made of values that fit it: where both say the
    same kind of thing, the other one is narrower."""
    match own:
        case Mapping():
            return {**own, **condition}
        case str() if set(own) & set("*?["):
            return {"glob": own, **condition}
        case _:
            return own  # one value, or some


def _written(policy: Policy, group: _Group, kind: Kind, match: Mapping[str, Any]) -> str:
    """The rule as YAML."""
    rule: dict[str, Any] = {"name": _free_name(policy, group, kind), "match": match, "decide": kind}
    if kind == "deny":
        rule["reason"] = "People have rejected this each time they were asked."
    if kind == "ask":
        rule["approvers"] = ["requester"]
    indent = " " * _indent(policy)
    lines = [f"{key}: {_as_yaml(value)}" for key, value in rule.items()]
    return f"{indent}- {lines[0]}\n" + "".join(f"{indent}  {line}\n" for line in lines[1:])


_CALLED: Mapping[Kind, str] = {
    "allow": "Always approved so far",
    "deny": "Always rejected so far",
    "ask": "Deletes and was not asked about",
}


def _free_name(policy: Policy, group: _Group, kind: Kind) -> str:
    taken = {rule.name for rule in policy.rules}
    name = f"{_CALLED[kind]}: {group.tool} on {group.server}"
    return next(each for each in (name if n == 1 else f"{name} {n}" for n in count(1)) if each not in taken)


_DASH = re.compile(r"( *)-(?: |$)")
_NO_RULES = re.compile(r"^rules:[ \t]*\[[ \t]*\][ \t]*(#.*)?$", re.MULTILINE)


def _indent(policy: Policy) -> int:
    """Blanks before the dash of each rule."""
    at = _first_line(policy, policy.rules[0]) if policy.rules else None
    found = _DASH.match(policy.text.split("\n")[at]) if at is not None else None
    return len(found[1]) if found else 2


def _first_line(policy: Policy, rule: Rule) -> int | None:
    """Where a rule begins, counted from 0; `None`: it does not begin a line."""
    number = rule.source.rpartition(":")[2]
    lines = policy.text.split("\n")
    at = int(number) - 1 if number.isdigit() else -1
    for line in (at, at - 1):  # the dash may stand alone, above
        if 0 <= line < len(lines) and _DASH.match(lines[line]):
            return line
    return None


def _inserted(policy: Policy, rule: Rule | None, written: str) -> str | None:
    """The file with one rule more: before this one, or last; `None`: it is written in a way in which that cannot be
    done."""
    lines = policy.text.split("\n")
    if not policy.rules:
        made, times = _NO_RULES.subn(lambda found: f"rules:{found[1] or ''}\n{written}".rstrip("\n"), policy.text, 1)
        return made if times else None
    at = _first_line(policy, policy.rules[-1] if rule is None else rule)
    if at is None:
        return None
    if rule is None:
        at = _after(lines, at)
    else:
        while at > 0 and lines[at - 1].lstrip().startswith("#"):  # a rule's comment stays with it
            at -= 1
    apart = [""] if rule is not None and at > 0 and not lines[at - 1].strip() else []
    return "\n".join([*lines[:at], *written.rstrip("\n").split("\n"), *apart, *lines[at:]])


def _after(lines: Sequence[str], at: int) -> int:
    """Where what begins on a line has ended."""
    own = len(lines[at]) - len(lines[at].lstrip(" "))
    last = at
    for number, line in enumerate(lines[at + 1 :], start=at + 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) - len(line.lstrip(" ")) <= own:
            break
        last = number
    return last + 1


def _as_yaml(value: Any) -> str:
    """A value on one line."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_as_yaml(str(key))}: {_as_yaml(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_as_yaml, value)) + "]"
        case str() if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        case _:
            return json.dumps(value, ensure_ascii=True, allow_nan=False)
