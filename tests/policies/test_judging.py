from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.judging import judge
from policies.matching import same_json
from policies.model import Allow, Annotations, Ask, Call, Deny, Mode, Tool
from policies.rules import Match, Policy, Rule
from policies.trust import known_to_read
from tests.policies.builders import READS, WRITES, a_call, a_policy, a_tool, facts

GROUP = "slack-group:T1:S1"


def test_a_call_that_no_rule_matches_asks_the_requester_to_confirm() -> None:
    assert judge(a_policy(), a_call(), facts()) == Ask(
        rule="no rule matched", approvers=("requester",), self_approval="confirm"
    )


def test_the_first_rule_that_matches_decides() -> None:
    policy = a_policy("match: {tool: other}, decide: deny", "match: {}, decide: allow", "match: {}, decide: deny")
    assert judge(policy, a_call(), facts()) == Allow(rule="r2")


FITS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("{}", {}, {}, {}),
    ("{server: calendar}", {}, {}, {}),
    ("{tool: create_event}", {}, {}, {}),
    ("{tool: 'create_*'}", {}, {}, {}),
    ("{tool: '*'}", {}, {}, {}),
    ("{args: {calendar_id: primary}}", {}, {"calendar_id": "primary", "more": 1}, {}),
    ("{args: {title: 'Test*'}}", {}, {"title": "Test of\nlines"}, {}),
    ("{args: {count: 3}}", {}, {"count": 3.0}, {}),
    ("{args: {sure: true}}", {}, {"sure": True}, {}),
    ("{args: {end: null}}", {}, {"end": None}, {}),
    ("{args: {to: [a, {b: 1}]}}", {}, {"to": ["a", {"b": 1}]}, {}),
    ("{annotations: {readOnlyHint: false}}", {}, {}, {}),
    ("{annotations: {readOnlyHint: true, openWorldHint: false}}", {"says": READS}, {}, {}),
    ("{annotations: {destructiveHint: true, openWorldHint: true}}", {"says": Annotations()}, {}, {}),
    ("{annotations: {idempotentHint: true}}", {"says": Annotations(idempotent=True)}, {}, {}),
    ("{mode: default}", {}, {}, {}),
    ("{platform: slack}", {}, {}, {"platform": "slack"}),
    ("{channel: C1}", {}, {}, {"place": "C1"}),
    ("{requester: 'web:ana'}", {}, {}, {}),
    (f"{{requester: '{GROUP}'}}", {}, {}, {"groups": {GROUP: True}}),
]


@pytest.mark.parametrize(("match", "tool", "arguments", "around"), FITS, ids=[f[0] for f in FITS])
def test_a_rule_fits(match: str, tool: dict[str, Any], arguments: dict[str, Any], around: dict[str, Any]) -> None:
    policy = a_policy(f"match: {match}, decide: allow")
    assert judge(policy, Call(a_tool(**tool), arguments), facts(**around)) == Allow(rule="r1")


MISFITS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("{server: tasks}", {}, {}, {}),
    ("{server: 'cal*'}", {}, {}, {}),
    ("{tool: delete_event}", {}, {}, {}),
    ("{tool: 'Create_*'}", {}, {}, {}),
    ("{tool: 'create'}", {}, {}, {}),
    ("{args: {calendar_id: primary}}", {}, {}, {}),
    ("{args: {end: null}}", {}, {}, {}),
    ("{args: {calendar_id: primary}}", {}, {"calendar_id": ["primary"]}, {}),
    ("{args: {count: 3}}", {}, {"count": "3"}, {}),
    ("{args: {count: 1}}", {}, {"count": True}, {}),
    ("{args: {sure: true}}", {}, {"sure": 1}, {}),
    ("{args: {to: [a]}}", {}, {"to": ["a", "b"]}, {}),
    ("{args: {to: {a: 1}}}", {}, {"to": {"a": 1, "b": 2}}, {}),
    ("{args: {to: ['a*']}}", {}, {"to": ["abc"]}, {}),
    ("{annotations: {readOnlyHint: true}}", {"says": READS, "trusted": False}, {}, {}),
    ("{annotations: {readOnlyHint: false}}", {"trusted": False}, {}, {}),
    ("{annotations: {readOnlyHint: true}}", {"says": Annotations()}, {}, {}),
    ("{annotations: {readOnlyHint: true}}", {"says": Annotations(read_only=True, destructive=True)}, {}, {}),
    ("{annotations: {openWorldHint: false}}", {"says": Annotations(read_only=True)}, {}, {}),
    ("{mode: safeWrite}", {}, {}, {}),
    ("{platform: slack}", {}, {}, {}),
    ("{channel: C1}", {}, {}, {}),
    ("{requester: 'web:ben'}", {}, {}, {}),
    (f"{{requester: '{GROUP}'}}", {}, {}, {"groups": {GROUP: False}}),
    ("{server: calendar, tool: 'delete_*'}", {}, {}, {}),
]


@pytest.mark.parametrize(("match", "tool", "arguments", "around"), MISFITS, ids=[m[0] for m in MISFITS])
def test_a_rule_does_not_fit(
    match: str, tool: dict[str, Any], arguments: dict[str, Any], around: dict[str, Any]
) -> None:
    policy = a_policy(f"match: {match}, decide: allow")
    verdict = judge(policy, Call(a_tool(**tool), arguments), facts(**around))
    assert isinstance(verdict, Ask)
    assert verdict.rule == "no rule matched"


def test_a_server_that_requires_approval_turns_an_allow_into_an_ask() -> None:
    tool = a_tool(requires_approval=True)
    verdict = judge(a_policy("match: {}, decide: allow"), a_call(tool), facts())
    assert verdict == Ask(rule="r1; calendar requires approval for create_event")


def test_a_server_that_requires_approval_softens_neither_an_ask_nor_a_deny() -> None:
    tool = a_tool(requires_approval=True)
    ask = "match: {}, decide: ask, approvers: [any], selfApproval: fourEyes"
    assert judge(a_policy(ask), a_call(tool), facts()) == judge(a_policy(ask), a_call(), facts())
    assert isinstance(judge(a_policy("match: {}, decide: deny"), a_call(tool), facts()), Deny)


def test_a_group_that_could_not_be_found_out_never_allows() -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}'}}, decide: allow", "match: {}, decide: ask")
    for groups in ({}, {GROUP: None}):
        assert judge(policy, a_call(), facts(groups=groups)) == Ask(rule="r2")


@pytest.mark.parametrize("stricter", ["deny", "ask"])
def test_a_stricter_rule_that_hangs_on_an_unknown_group_refuses(stricter: str) -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}'}}, decide: {stricter}", "match: {}, decide: allow")
    verdict = judge(policy, a_call(), facts(groups={GROUP: None}))
    assert isinstance(verdict, Deny)
    assert "could not be found out" in verdict.reason
    assert judge(policy, a_call(), facts(groups={GROUP: False})) == Allow(rule="r2")


def test_an_unknown_group_does_not_matter_where_the_rule_is_about_something_else() -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}', tool: other}}, decide: deny", "match: {}, decide: allow")
    assert judge(policy, a_call(), facts()) == Allow(rule="r2")


ALLOW_ALL = "match: {}, decide: allow"
NAMES_TOOL = "match: {tool: create_event}, decide: allow"
NAMES_SERVER = "match: {server: calendar}, decide: allow"
NAMES_NOTHING = "match: {tool: '*'}, decide: allow"

MODES = [
    (Mode.DEFAULT, ALLOW_ALL, a_tool(), Allow),
    (Mode.READ_ONLY, ALLOW_ALL, a_tool(), Deny),
    (Mode.READ_ONLY, NAMES_TOOL, a_tool(), Deny),
    (Mode.READ_ONLY, "match: {}, decide: ask", a_tool(), Deny),
    (Mode.READ_ONLY, ALLOW_ALL, a_tool(says=READS), Allow),
    (Mode.READ_ONLY, ALLOW_ALL, a_tool(says=READS, trusted=False), Deny),
    (Mode.READ_ONLY, ALLOW_ALL, a_tool(says=Annotations()), Deny),
    (Mode.READ_ONLY, "match: {}, decide: ask", a_tool(says=READS), Ask),
    (Mode.READ_ONLY, "match: {}, decide: deny", a_tool(says=READS), Deny),
    (Mode.SAFE_WRITE, ALLOW_ALL, a_tool(), Deny),
    (Mode.SAFE_WRITE, NAMES_NOTHING, a_tool(), Deny),
    (Mode.SAFE_WRITE, NAMES_TOOL, a_tool(), Allow),
    (Mode.SAFE_WRITE, NAMES_SERVER, a_tool(), Allow),
    (Mode.SAFE_WRITE, "match: {tool: other}, decide: allow", a_tool(), Deny),
    (Mode.SAFE_WRITE, "match: {tool: create_event}, decide: ask", a_tool(), Ask),
    (Mode.SAFE_WRITE, ALLOW_ALL, a_tool(says=READS), Allow),
]


@pytest.mark.parametrize(("mode", "rule", "tool", "verdict"), MODES)
def test_a_mode_is_a_ceiling(mode: Mode, rule: str, tool: Tool, verdict: type) -> None:
    assert isinstance(judge(a_policy(rule), a_call(tool), facts(mode=mode)), verdict)


def test_what_a_mode_denies_comes_with_a_sentence_to_pass_on() -> None:
    for mode in (Mode.READ_ONLY, Mode.SAFE_WRITE):
        verdict = judge(a_policy(), a_call(), facts(mode=mode))
        assert isinstance(verdict, Deny)
        assert verdict.rule == f"mode {mode}"
        assert "create_event of calendar" in verdict.reason


def test_what_a_rule_denies_keeps_its_own_reason_in_every_mode() -> None:
    policy = a_policy("match: {}, decide: deny, reason: Never.")
    for mode in Mode:
        assert judge(policy, a_call(), facts(mode=mode)) == Deny(rule="r1", reason="Never.")


# ------------------------------------------------------------------------------------------------ for any input

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
hints = st.sampled_from([True, False, None])
few_words = st.sampled_from(["a", "b", "create_event", "*", "a*", "[", "web", ""])
maybe = st.none() | few_words
tools = st.builds(
    Tool,
    server=few_words,
    name=few_words,
    annotations=st.builds(Annotations, hints, hints, hints, hints),
    annotations_trusted=st.booleans(),
    requires_approval=st.booleans(),
)
calls = st.builds(Call, tool=tools, arguments=st.dictionaries(few_words, json_values, max_size=3))
groups = st.dictionaries(st.just(GROUP), hints)
any_facts = st.builds(
    facts, mode=st.sampled_from(Mode), requester=few_words, platform=few_words, place=few_words, groups=groups
)
matches = st.builds(
    Match,
    server=maybe,
    tool=maybe,
    args=st.dictionaries(few_words, json_values, max_size=2),
    annotations=st.dictionaries(st.sampled_from(["readOnlyHint", "openWorldHint"]), st.booleans(), max_size=1),
    mode=st.none() | st.sampled_from(Mode),
    platform=maybe,
    channel=maybe,
    requester=maybe | st.just(GROUP),
)
verdicts = st.sampled_from([Allow(rule="r"), Ask(rule="r"), Deny(rule="r", reason="no")])
policies = st.lists(st.builds(Rule, name=st.just("r"), match=matches, verdict=verdicts), max_size=4).map(
    lambda rules: Policy(rules=tuple(rules))
)
WIDTH = {"allow": 2, "ask": 1, "deny": 0}


@given(policies, calls, any_facts)
def test_judging_never_raises(policy: Policy, call: Call, around: Any) -> None:
    assert isinstance(judge(policy, call, around), Allow | Ask | Deny)


@given(policies, calls, any_facts, st.lists(st.builds(Rule, st.just("x"), matches, verdicts), max_size=3))
def test_rules_after_a_deny_that_matches_never_soften_it(
    policy: Policy, call: Call, around: Any, later: list[Rule]
) -> None:
    if isinstance(judge(policy, call, around), Deny):
        longer = Policy(rules=(*policy.rules, Rule("deny", Match(), Deny(rule="deny", reason="no")), *later))
        assert isinstance(judge(longer, call, around), Deny)


@given(policies, calls, any_facts)
def test_not_finding_out_about_a_group_never_allows_more_than_the_truth_would(
    policy: Policy, call: Call, around: Any
) -> None:
    unknown = facts(mode=around.mode, requester=around.requester, platform=around.platform, place=around.place)
    for truth in (True, False):
        known = facts(
            mode=around.mode,
            requester=around.requester,
            platform=around.platform,
            place=around.place,
            groups={GROUP: truth},
        )
        assert WIDTH[judge(policy, call, unknown).verdict] <= WIDTH[judge(policy, call, known).verdict]


@given(policies, calls, any_facts)
def test_nothing_but_a_known_read_gets_past_read_only(policy: Policy, call: Call, around: Any) -> None:
    strict = facts(mode=Mode.READ_ONLY, requester=around.requester, groups=around.groups)
    if not known_to_read(call.tool):
        assert isinstance(judge(policy, call, strict), Deny)


@given(policies, calls, any_facts)
def test_what_requires_approval_is_never_allowed(policy: Policy, call: Call, around: Any) -> None:
    if call.tool.requires_approval:
        assert not isinstance(judge(policy, call, around), Allow)


def test_arguments_nested_beyond_all_measure_are_judged_too() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    policy = a_policy("match: {args: {a: [[1]]}}, decide: allow")
    assert isinstance(judge(policy, a_call(a_tool(says=WRITES), a=deep), facts()), Ask)


@given(json_values)
def test_a_json_value_equals_itself_unless_it_is_not_a_number(value: Any) -> None:
    assert same_json(value, value) or "nan" in repr(value)


def test_leaving_out_an_argument_that_has_a_default_does_not_get_a_call_around_a_rule() -> None:
    schema = {"type": "object", "properties": {"calendar_id": {"type": "string", "default": "primary"}}}
    tool = replace(a_tool(), input_schema=schema)
    policy = a_policy("match: {args: {calendar_id: primary}}, decide: deny, reason: Not from primary.")
    assert isinstance(judge(policy, a_call(tool), facts()), Deny)
    assert isinstance(judge(policy, a_call(tool, calendar_id="team"), facts()), Ask)
