"""How rules, requirements of servers and ceilings of modes make a verdict."""

from __future__ import annotations

import hashlib
from itertools import product

import pytest

from policies.judging import judge
from policies.model import Allow, Ask, Deny
from tests.policies.builders import a_call, a_policy, a_tool, facts, judged

GROUP = "slack-group:T1:S1"


def test_a_call_that_no_rule_matches_asks_the_requester_to_confirm() -> None:
    assert judged(a_policy(), a_call(), facts()) == Ask(
        rule="no rule matched", approvers=("requester",), self_approval="confirm"
    )


OUTCOMES = {"allow": Allow, "ask": Ask, "deny": Deny}
FIRST: dict[str, dict[str, bool | None]] = {
    "fits": {GROUP: True},
    "does not fit": {GROUP: False},
    "is not known to fit": {GROUP: None},
}


@pytest.mark.parametrize(("first", "second", "fitting"), list(product(OUTCOMES, OUTCOMES, FIRST)))
def test_every_pair_of_outcomes(first: str, second: str, fitting: str) -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}'}}, decide: {first}", f"match: {{}}, decide: {second}")
    verdict = judge(policy, a_call(), facts(groups=FIRST[fitting]))
    if fitting == "fits":
        assert (type(verdict), verdict.rule) == (OUTCOMES[first], "r1")
    elif fitting == "does not fit" or first == "allow":
        assert (type(verdict), verdict.rule) == (OUTCOMES[second], "r2")
    else:
        assert (type(verdict), verdict.rule) == (Deny, "r1")


def test_a_verdict_says_where_its_rule_stands_and_in_which_version_of_the_policy() -> None:
    policy = a_policy("match: {tool: other}, decide: allow", "match: {tool: create_event}, decide: deny")
    text = (
        "version: 1\nrules:\n  - {name: r1, match: {tool: other}, decide: allow}\n"
        "  - {name: r2, match: {tool: create_event}, decide: deny}"
    )
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    by_rule, by_none = judge(policy, a_call(), facts()), judge(policy, a_call(a_tool("third")), facts())
    assert (by_rule.source, by_rule.version) == ("test:4", version)
    assert (by_none.source, by_none.version) == ("", version)
    unknown = a_policy(f"match: {{requester: '{GROUP}'}}, decide: deny")
    assert judge(unknown, a_call(), facts()).source == "test:3"


def test_a_server_that_requires_approval_turns_an_allow_into_an_ask() -> None:
    tool = a_tool(requires_approval=True)
    verdict = judge(a_policy("match: {server: calendar}, decide: allow, reads: true"), a_call(tool), facts())
    assert isinstance(verdict, Ask)
    assert verdict.rule == "r1; calendar requires approval for create_event"
    assert (verdict.source, verdict.reads, verdict.approvers) == ("test:3", True, ("requester",))


def test_a_server_that_requires_approval_softens_neither_an_ask_nor_a_deny() -> None:
    tool = a_tool(requires_approval=True)
    ask = "match: {}, decide: ask, approvers: [any], selfApproval: fourEyes"
    assert judge(a_policy(ask), a_call(tool), facts()) == judge(a_policy(ask), a_call(), facts())
    assert isinstance(judge(a_policy("match: {}, decide: deny"), a_call(tool), facts()), Deny)


def test_only_rules_that_can_be_about_a_tool_are_tried_for_it() -> None:
    policy = a_policy(
        "match: {server: tasks}, decide: deny",
        "match: {tool: 'delete*'}, decide: deny",
        "match: {server: calendar, tool: 'create*', args: {a: 1}}, decide: deny",
        "match: {}, decide: allow",
    )
    assert [rule.name for rule in policy.candidates("calendar", "create_event")] == ["r3", "r4"]
    assert [rule.name for rule in policy.candidates("tasks", "delete_task")] == ["r1", "r2", "r4"]


def test_a_policy_that_is_asked_about_ever_new_tools_forgets_the_old_ones() -> None:
    policy = a_policy("match: {tool: '*1'}, decide: deny", "match: {}, decide: allow")
    for number in range(5_000):
        verdict = judge(policy, a_call(a_tool(f"tool_{number}")), facts())
        assert verdict.rule == ("r1" if number % 10 == 1 else "r2")
    assert len(policy._tools) < 5_000
