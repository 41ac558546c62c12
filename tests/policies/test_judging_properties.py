"""What holds for any policy, any call and any facts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from policies.approvers import Decider, StandingApproval, digest_of, under_grants
from policies.judging import Policy, Rule, explain, judge
from policies.model import Allow, Annotations, Ask, Call, Deny, Facts, Match, Mode, Risk
from policies.trust import call_known_to_read, risks_of
from tests.policies.strategies import (
    GROUP,
    any_annotations,
    any_facts,
    any_mode,
    any_policy,
    calls,
    policies,
    rules,
    texts,
)
from tests.support.examples import examples

WIDTH = {"allow": 2, "ask": 1, "deny": 0}
DENY = Rule("deny", Match(), Deny(rule="deny", reason="no"))
ALLOW = Allow(rule="allow", reads=True)
in_any_mode = policies(st.none())
"""Rules that do not ask for the mode."""


@given(any_policy, calls, any_facts)
@settings(max_examples=examples(65))
def test_judging_and_explaining_never_raise_and_say_the_same(policy: Policy, call: Call, around: Facts) -> None:
    verdict = judge(policy, call, around)
    assert isinstance(verdict, Allow | Ask | Deny)
    assert explain(policy, call, around).verdict == verdict
    assert risks_of(call, verdict)


@given(any_policy, calls, any_facts, st.lists(rules(any_mode), max_size=3))
def test_rules_after_the_one_that_decides_change_nothing(
    policy: Policy, call: Call, around: Facts, later: list[Rule]
) -> None:
    decided = Policy(rules=(*policy.rules, DENY))
    longer = Policy(rules=(*decided.rules, *later))
    assert judge(longer, call, around) == judge(decided, call, around)


@given(any_policy, calls, any_facts, rules(any_mode))
def test_a_less_specific_rule_at_the_end_never_turns_a_rules_deny_into_an_allow(
    policy: Policy, call: Call, around: Facts, last: Rule
) -> None:
    explained = explain(policy, call, around)
    if isinstance(explained.verdict, Deny) and explained.decided_by:
        assert isinstance(judge(Policy(rules=(*policy.rules, last)), call, around), Deny)


@given(any_policy, calls, any_facts, st.sampled_from([field.name for field in fields(Match)]))
def test_the_same_rule_less_specific_below_a_deny_never_makes_an_allow(
    policy: Policy, call: Call, around: Facts, left_out: str
) -> None:
    """Whatever of the match is left out: an allow about more calls, below, changes nothing."""
    denied = Policy(rules=tuple(replace(rule, verdict=DENY.verdict) for rule in policy.rules))
    wider = [Rule("wider", replace(rule.match, **{left_out: _nothing(left_out)}), ALLOW) for rule in policy.rules]
    if explain(denied, call, around).decided_by:
        assert isinstance(judge(Policy(rules=(*denied.rules, *wider)), call, around), Deny)


def _else_allowed(policy: Policy) -> Policy:
    """With a rule at the end that allows everything: few calls fit a rule that was made up."""
    return Policy(rules=(*policy.rules, Rule("all", Match(), ALLOW)))


def _nothing(field: str) -> Any:
    return getattr(Match(), field)


@given(any_policy, calls, any_facts)
def test_not_finding_out_about_a_group_never_allows_more_than_the_truth_would(
    policy: Policy, call: Call, around: Facts
) -> None:
    unknown = judge(policy, call, replace(around, groups={}))
    for truth in (True, False):
        known = judge(policy, call, replace(around, groups={GROUP: truth}))
        assert WIDTH[unknown.verdict] <= WIDTH[known.verdict]


@given(any_policy, calls, any_facts)
def test_nothing_gets_past_read_only_but_what_is_known_to_read(policy: Policy, call: Call, around: Facts) -> None:
    verdict = judge(policy, call, replace(around, mode=Mode.READ_ONLY))
    assert isinstance(verdict, Deny) or verdict.reads or call_known_to_read(call)


@given(in_any_mode, calls, any_facts)
def test_no_mode_allows_more_than_the_rules_do(policy: Policy, call: Call, around: Facts) -> None:
    by_rules = judge(policy, call, replace(around, mode=Mode.DEFAULT))
    for mode in Mode:
        assert WIDTH[judge(policy, call, replace(around, mode=mode)).verdict] <= WIDTH[by_rules.verdict]


@given(any_policy, calls, any_facts, texts)
def test_a_quote_matters_in_safe_write_only(policy: Policy, call: Call, around: Facts, quote: str) -> None:
    quoting = judge(policy, replace(call, quote=quote), around)
    if around.mode != Mode.SAFE_WRITE:
        assert quoting == judge(policy, replace(call, quote=""), around)


@given(any_policy, calls, any_facts)
def test_a_write_that_nobody_asked_for_does_not_run_in_safe_write(policy: Policy, call: Call, around: Facts) -> None:
    verdict = judge(policy, call, replace(around, mode=Mode.SAFE_WRITE, said=()))
    assert isinstance(verdict, Deny) or verdict.reads or call_known_to_read(call)


@given(any_policy, calls, any_facts, any_annotations)
def test_what_an_untrusted_server_says_of_its_tools_changes_nothing(
    policy: Policy, call: Call, around: Facts, said: Annotations
) -> None:
    untrusted = replace(call, tool=replace(call.tool, annotations_trusted=False))
    otherwise = replace(untrusted, tool=replace(untrusted.tool, annotations=said))
    assert judge(policy, untrusted, around) == judge(policy, otherwise, around)


@given(any_policy, calls, any_facts)
def test_what_requires_approval_is_never_allowed(policy: Policy, call: Call, around: Facts) -> None:
    required = replace(call, tool=replace(call.tool, requires_approval=True))
    assert not isinstance(judge(_else_allowed(policy), required, around), Allow)


@given(any_policy, calls, any_facts)
def test_what_an_agent_must_ask_about_is_never_allowed_and_never_always_allowed(
    policy: Policy, call: Call, around: Facts
) -> None:
    lenient = _else_allowed(policy)
    asking, free = (judge(lenient, call, replace(around, agent_asks=asks)) for asks in (True, False))
    assert WIDTH[asking.verdict] <= min(WIDTH[free.verdict], WIDTH["ask"])
    if isinstance(asking, Ask):
        assert asking.always_allow is False
        assert free.model_copy(update={"always_allow": False}) == asking or isinstance(free, Allow)


@given(any_policy, calls, any_facts)
def test_a_grant_turns_an_ask_into_an_allow_and_nothing_else(policy: Policy, call: Call, around: Facts) -> None:
    verdict = judge(policy, call, around)
    try:
        digest = digest_of(call.tool, call.arguments)
    except ValueError:
        reject()  # no text of JSON's: such a call has no grants
    grant = StandingApproval(
        around.requester,
        call.tool.server,
        call.tool.name,
        digest,
        until=100.0,
        risks=tuple(Risk),
    )
    granted = under_grants(verdict, call, [grant], Decider(around.requester, (around.requester,)), now=99.0)
    assert granted == verdict or (isinstance(verdict, Ask) and isinstance(granted, Allow))
    somebody = Decider("somebody", ("somebody",))
    assert under_grants(verdict, call, [grant], somebody, now=99.0) == verdict
