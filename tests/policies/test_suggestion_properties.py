"""Whatever the history and the rules: what no suggestion ever does."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.judging import Policy, judge
from policies.matching import NO, Subject, fit_all
from policies.model import Allow, Annotations, Ask, Call, Deny, Facts, Mode, Risk, Tool
from policies.policy_file import parse_policy
from policies.replaying import RecordedCall
from policies.suggestions import HistoricCall, Outcome, suggestions
from policies.trust import risks_of
from tests.policies.builders import facts
from tests.policies.strategies import arguments as any_arguments
from tests.policies.strategies import tools as any_tools
from tests.support.examples import examples

_RULES = (
    "match: {}\n    decide: ask",
    "match: {tool: make}\n    decide: ask\n    approvers: [any]",
    'match: {tool: "m*", args: {n: {min: 2}}}\n    decide: ask',
    "match: {server: shop}\n    decide: allow",
    "match: {args: {to: a}}\n    decide: deny",
    "match: {annotations: {destructiveHint: true}}\n    decide: ask\n    approvers: [any]\n    selfApproval: fourEyes",
    "match: {args: {flag: true}}\n    decide: allow",
    'match: {requester: ["web:ana"]}\n    decide: ask\n    reads: false',
)


def a_file(rules: list[str]) -> Policy:
    written = "".join(f"\n  - name: r{number}\n    {rule}" for number, rule in enumerate(rules))
    return parse_policy(f"version: 1\nrules:{written or ' []'}", "file")


policies = st.lists(st.sampled_from(_RULES), max_size=4).map(a_file)
hints = st.sampled_from(
    [
        Annotations(read_only=False, destructive=False, open_world=False),
        Annotations(read_only=False, destructive=False, open_world=False),
        Annotations(read_only=False, destructive=True),
        Annotations(read_only=True),
        Annotations(),
    ]
)
tools = st.builds(
    Tool,
    server=st.just("shop"),
    name=st.sampled_from(["make", "make", "move"]),
    annotations=hints,
    annotations_trusted=st.sampled_from([True, True, True, False]),
)
arguments = st.fixed_dictionaries(
    {}, optional={"n": st.integers(0, 3), "to": st.sampled_from(["a", "b", "c"]), "flag": st.booleans()}
)
facts_of = st.builds(
    facts,
    requester=st.sampled_from(["web:ana", "web:ben"]),
    agent=st.sampled_from(["default", "planner"]),
    mode=st.sampled_from([Mode.DEFAULT, Mode.DEFAULT, Mode.READ_ONLY]),
)
outcomes = st.sampled_from(["unchanged", "unchanged", "unchanged", *get_args(Outcome)])


def past_call(call: Call, around: Facts, outcome: Outcome, *, is_whole: bool) -> HistoricCall:
    return HistoricCall(RecordedCall(call, around, Ask(rule="then"), is_masked=not is_whole), outcome)


likely = st.builds(
    lambda tool, given, around, outcome, is_whole: past_call(Call(tool, given), around, outcome, is_whole=is_whole),
    tools,
    arguments,
    facts_of,
    outcomes,
    st.sampled_from([True, True, True, False]),
)
hostile = st.builds(
    lambda tool, given, around, outcome: past_call(Call(tool, given), around, outcome, is_whole=True),
    any_tools,
    any_arguments,
    facts_of,
    outcomes,
)
times = st.sampled_from([1, 1, 5, 12, 20])
"""A history repeats itself, or nothing could be learnt from it."""
histories = st.lists(st.tuples(likely | hostile, times), max_size=12).map(
    lambda several: [past for past, often in several for _ in range(often)]
)


ASKS = a_file(["match: {}\n    decide: ask"])
WRITES = Annotations(read_only=False, destructive=False, open_world=False)
DELETES = Annotations(read_only=False, destructive=True)


@st.composite
def _but_for_one(draw: st.DrawFn) -> list[HistoricCall]:
    """A history that speaks for a rule, but for one call that is like the others, or nearly."""
    make = Tool("shop", "make", annotations=WRITES, annotations_trusted=True)
    given_, around = draw(arguments), draw(facts_of.filter(lambda each: each.mode is Mode.DEFAULT))
    speaks = draw(st.sampled_from(["unchanged", "rejected"]))
    others = [past_call(Call(make, given_), around, speaks, is_whole=True)] * 12
    like = replace(make, annotations=draw(st.sampled_from([WRITES, WRITES, DELETES])))
    call = Call(like, draw(st.just(given_) | arguments))
    one = past_call(call, draw(st.just(around) | facts_of), draw(outcomes), is_whole=draw(st.booleans()))
    return draw(st.sampled_from([[one, *others], [*others, one]]))


but_for_one = _but_for_one()


def covers(policy: Policy, name: str, past: HistoricCall, *, without_arguments: bool = False) -> bool:
    """Whether the rule of this name is about a call, or may be."""
    rule = next(each for each in policy.rules if each.name == name)
    checks = [each for each in rule.checks if not (without_arguments and each.field.startswith("args."))]
    return fit_all([each.fits for each in checks], Subject(past.recorded.call, past.recorded.facts)) is not NO


@settings(deadline=None)
@given(policies, histories)
def test_no_suggestion_covers_what_it_must_not(policy: Policy, history: list[HistoricCall]) -> None:
    cover_nothing_else(policy, history)


@settings(deadline=None, max_examples=examples(120))
@given(st.just(ASKS) | policies, but_for_one)
def test_one_call_is_enough_to_speak_against_a_rule(policy: Policy, history: list[HistoricCall]) -> None:
    cover_nothing_else(policy, history)


def cover_nothing_else(policy: Policy, history: list[HistoricCall]) -> None:
    """All suggestions leave alone what they must."""
    for found in suggestions(policy, history):
        changed = parse_policy(found.policy, "file")
        for past in history:
            call, around = past.recorded.call, past.recorded.facts
            deletes = Risk.DESTROYS in risks_of(call, Allow(rule=""))
            unsure = not past.recorded.is_whole or past.outcome == "edited"
            is_covered = covers(changed, found.name, past, without_arguments=unsure)
            if found.kind == "allow":
                bad = past.outcome in ("rejected", "edited", "contested", "withdrawn")
                assert not (is_covered and (bad or deletes))
            if found.kind == "deny":
                assert not (is_covered and past.outcome in ("unchanged", "edited", "contested", "allowed"))
            before, now = judge(policy, call, around), judge(changed, call, around)
            if past in found.changed:
                expected = {"allow": (Ask, Allow), "deny": (Ask, Deny), "ask": (Allow, Ask)}[found.kind]
                assert (type(before), type(now)) == expected
            else:
                told = {"source", "version"}
                assert before.model_dump(exclude=told) == now.model_dump(exclude=told)


@settings(deadline=None)
@given(policies, tools, arguments, facts_of, st.sampled_from(["unchanged", "rejected"]))
def test_a_history_of_one_call_again_and_again_speaks_for_a_rule_or_is_refused_for_a_reason(
    policy: Policy, tool: Tool, given_: dict[str, object], around: Facts, outcome: Outcome
) -> None:
    """So that the property above is not true of nothing."""
    history = [past_call(Call(tool, given_), around, outcome, is_whole=True)] * 12
    verdict = judge(policy, history[0].recorded.call, around)
    found = [each.kind for each in suggestions(policy, history)]
    asked_of_one = isinstance(verdict, Ask) and verdict.self_approval == "confirm"
    if outcome == "rejected":
        assert found == (["deny"] if isinstance(verdict, Ask) else [])
    else:
        assert found == (["allow"] if asked_of_one and not history[0].destroys else [])
