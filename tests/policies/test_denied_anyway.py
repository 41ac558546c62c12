"""Tools that a caller need not be offered, because every call of theirs is denied."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.judging import Policy, Rule, denied_anyway, judge
from policies.model import Ask, Call, Deny, Facts, Match, Mode, Tool
from tests.policies.builders import READS, WRITES, a_policy, a_tool, facts
from tests.policies.strategies import GROUP, any_facts, any_policy, arguments, texts, tools
from tests.support.examples import examples

NIGHT, DAY = datetime.fromisoformat("2026-11-20T23:00Z"), datetime.fromisoformat("2026-11-20T09:00Z")
COMMAND = a_tool("run", schema={"properties": {"command": {"type": "string"}}, "required": ["command"]}, trusted=False)


def _about_more(policy: Policy, left_out: set[str], last: Rule) -> Policy:
    """Of rules about any words whatever few are about one call: the same rules with fewer fields."""
    nothing = {field: getattr(Match(), field) for field in {"server", "tool", *left_out}}
    rules = [replace(rule, match=replace(rule.match, **nothing)) for rule in policy.rules]
    return Policy(rules=(*rules, last))


LAST = [Rule("last", Match(), Deny(rule="last", reason="no")), Rule("last", Match(), Ask(rule="last"))]
FIELDS = [field.name for field in fields(Match)]
dense_policies = st.builds(_about_more, any_policy, st.sets(st.sampled_from(FIELDS), min_size=4), st.sampled_from(LAST))


@given(dense_policies, tools, any_facts, arguments, texts, st.booleans(), any_facts)
@settings(max_examples=examples(60))
def test_what_is_denied_anyway_is_denied_whatever_the_arguments_the_quote_and_the_time(
    policy: Policy,
    tool: Tool,
    around: Facts,
    given_arguments: dict[str, Any],
    quote: str,
    truth: bool,  # noqa: FBT001 - a value
    later: Facts,
) -> None:
    if denied_anyway(policy, tool, around):
        found_out = {group: truth if known is None else known for group, known in around.groups.items()}
        for groups in (around.groups, found_out):
            then = replace(around, at=later.at, groups=groups)
            assert isinstance(judge(policy, Call(tool, given_arguments, quote), then), Deny)


@given(dense_policies, tools, any_facts)
@settings(max_examples=examples(40))
def test_where_nothing_varies_it_is_just_what_is_denied(policy: Policy, tool: Tool, around: Facts) -> None:
    plain = Policy(
        rules=tuple(replace(r, match=replace(r.match, args=(), command=None, time=None)) for r in policy.rules)
    )
    tool = replace(tool, input_schema={})
    around = replace(around, said=(), groups={GROUP: False})
    assert denied_anyway(plain, tool, around) == isinstance(judge(plain, Call(tool, {}), around), Deny)


FOR_CERTAIN = {
    "server": "calendar",
    "tool": "'create_*'",
    "reads": "false",
    "annotations": "{readOnlyHint: false}",
    "mode": "default",
    "platform": "mcp",
    "channel": "'slack:T1:*'",
    "client": "['claude*', 'cursor*']",
    "agent": "'finance*'",
    "requester": GROUP,
}
VARYING = {"args": "{a: x}", "command": "'* list'", "time": "{from: '22:00', zone: UTC}"}
CALLER = facts(platform="mcp", client="Cursor", agent="finance", groups={GROUP: True}, at=NIGHT)


def test_every_field_of_a_match_varies_or_does_not() -> None:
    assert {*FOR_CERTAIN, *VARYING} == {field.name for field in fields(Match)}


@pytest.mark.parametrize("field", FOR_CERTAIN)
def test_a_deny_by_what_does_not_vary_decides(field: str) -> None:
    around = replace(CALLER, place="slack:T1:C1") if field == "channel" else CALLER
    assert denied_anyway(a_policy(f"match: {{{field}: {FOR_CERTAIN[field]}}}, decide: deny"), a_tool(), around)
    assert not denied_anyway(
        a_policy(f"match: {{{field}: {FOR_CERTAIN[field]}}}, decide: ask", "match: {}, decide: deny"),
        a_tool(),
        around,
    )


@pytest.mark.parametrize("field", VARYING)
@pytest.mark.parametrize("at", [DAY, NIGHT])
def test_a_deny_by_arguments_or_time_decides_nothing_for_certain(field: str, at: datetime) -> None:
    around, rule = replace(CALLER, at=at), f"match: {{{field}: {VARYING[field]}}}, decide"
    for tool in (a_tool(), COMMAND):
        assert not denied_anyway(a_policy(f"{rule}: deny"), tool, around)
        assert not denied_anyway(a_policy(f"{rule}: ask", "match: {}, decide: deny"), tool, around)
        assert denied_anyway(a_policy(f"{rule}: deny", "match: {}, decide: deny"), tool, around)


def test_a_group_that_could_not_be_looked_up_decides_nothing_for_certain() -> None:
    unknown = replace(CALLER, groups={})
    for decide, anyway in (("allow", False), ("ask", False), ("deny", True)):
        policy = a_policy(f"match: {{requester: {GROUP}}}, decide: {decide}", "match: {}, decide: deny")
        assert denied_anyway(policy, a_tool(), unknown) is anyway
    assert not denied_anyway(a_policy(f"match: {{requester: {GROUP}}}, decide: deny"), a_tool(), unknown)


def test_in_read_only_mode_what_is_not_known_to_read_is_denied_anyway() -> None:
    around = facts(mode=Mode.READ_ONLY)
    for rules in ([], ["match: {}, decide: allow"], ["match: {args: {a: 1}}, decide: allow"]):
        policy = a_policy(*rules)
        assert denied_anyway(policy, a_tool(says=WRITES), around)
        assert not denied_anyway(policy, a_tool(says=READS), around)
        assert not denied_anyway(policy, COMMAND, around)  # commands may read
    says_so = a_policy("match: {tool: create_event}, decide: ask, reads: true")
    assert not denied_anyway(says_so, a_tool(says=WRITES), around)


def test_in_safe_write_mode_a_caller_who_said_nothing_can_have_nothing_changed() -> None:
    policy = a_policy("match: {tool: create_event}, decide: ask")
    silent = facts(mode=Mode.SAFE_WRITE)
    assert denied_anyway(policy, a_tool(), silent)
    assert not denied_anyway(policy, a_tool(), replace(silent, said=("do it now please",)))
    assert denied_anyway(policy, a_tool("other"), replace(silent, said=("do it now please",)))
    assert not denied_anyway(policy, a_tool("other", says=READS), silent)
