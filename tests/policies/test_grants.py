from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.approvers import DURATIONS, Decider, StandingApproval, covered, digest_of, grant_offered, under_grants
from policies.judging import judge
from policies.model import Allow, Annotations, Ask, Call, Deny, Mode, Risk, Tool
from tests.policies.builders import WRITES, a_call, a_policy, a_tool, facts

TOOL = replace(a_tool(says=WRITES), fingerprint="f1", input_schema={"type": "object"})
CALL = Call(TOOL, {"title": "Board", "count": 1})
GRANT = StandingApproval(
    "web:ana",
    "calendar",
    "create_event",
    digest_of(CALL.tool, CALL.arguments),
    until=1000.0,
    risks=(Risk.WRITES, Risk.DESTROYS, Risk.REACHES_OUTSIDE),
)
ANA = Decider("web:ana", ("web:ana",))
ASKED = Ask(rule="r1", source="p:3", version="abc")


def test_a_grant_can_be_given_for_three_lengths() -> None:
    assert list(DURATIONS.values()) == [3600, 28800, 604800]


OFFERS: list[tuple[dict[str, Any], tuple[Risk, ...], bool]] = [
    ({}, (Risk.WRITES,), True),
    ({}, (Risk.WRITES, Risk.DESTROYS), False),
    ({"always_allow": True}, (Risk.WRITES, Risk.DESTROYS), True),
    ({"always_allow": False}, (Risk.READS,), False),
    ({"self_approval": "fourEyes"}, (Risk.READS,), False),
    ({"self_approval": "fourEyes", "always_allow": True}, (Risk.READS,), False),
    ({"quorum": 2}, (Risk.READS,), False),
]


@pytest.mark.parametrize(("asked", "risks", "offered"), OFFERS)
def test_whether_it_is_offered(asked: dict[str, Any], risks: tuple[Risk, ...], *, offered: bool) -> None:
    assert grant_offered(Ask(rule="r", **asked), risks) is offered


def test_it_covers_exactly_this_call_of_this_person_until_it_ends() -> None:
    assert covered([GRANT], CALL, "web:ana", now=999.9) == GRANT
    assert covered([GRANT], CALL, "web:ana", now=1000.0) is None
    assert covered([GRANT], CALL, "web:ben", now=0.0) is None
    assert covered([], CALL, "web:ana", now=0.0) is None


@pytest.mark.parametrize(("given", "asked"), [("cursor", ""), ("", "cursor"), ("cursor", "claude-code")])
def test_it_covers_calls_through_the_program_alone_on_whose_card_it_was_given(given: str, asked: str) -> None:
    grant = replace(GRANT, client=given)
    assert covered([grant], CALL, "web:ana", now=0.0, client=given) == grant
    assert covered([grant], CALL, "web:ana", now=0.0, client=asked) is None
    assert isinstance(under_grants(ASKED, CALL, [grant], ANA, now=0.0, client=given), Allow)
    assert under_grants(ASKED, CALL, [grant], ANA, now=0.0, client=asked) is ASKED


OTHERS = [
    replace(CALL, arguments={"title": "Board", "count": 2}),
    replace(CALL, arguments={"title": "Board"}),
    replace(CALL, tool=replace(TOOL, name="delete_event")),
    replace(CALL, tool=replace(TOOL, server="tasks")),
    replace(CALL, tool=replace(TOOL, fingerprint="f2")),
    replace(CALL, tool=replace(TOOL, input_schema={"type": "object", "properties": {}})),
    replace(CALL, arguments={"title": {"Board"}}),
]


@pytest.mark.parametrize("other", OTHERS)
def test_it_covers_nothing_else(other: Call) -> None:
    assert covered([GRANT], other, "web:ana", now=0.0) is None


def test_arguments_in_another_order_are_the_same_call() -> None:
    assert covered([GRANT], replace(CALL, arguments={"count": 1, "title": "Board"}), "web:ana", now=0.0) == GRANT


def test_arguments_that_have_no_digest_are_covered_by_nothing() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert covered([GRANT], replace(CALL, arguments={"a": deep}), "web:ana", now=0.0) is None


def test_of_several_the_longest_counts() -> None:
    longer = replace(GRANT, until=2000.0)
    assert covered([GRANT, longer, replace(GRANT, until=1500.0)], CALL, "web:ana", now=0.0) == longer


def test_a_covered_call_is_allowed_and_says_by_whom() -> None:
    assert under_grants(ASKED, CALL, [GRANT], ANA, now=0.0) == Allow(
        rule="always allow by web:ana until 1970-01-01 00:16 UTC", source="p:3", version="abc"
    )


DESTROYS = replace(TOOL, annotations=Annotations())
STAYS: list[tuple[str, Ask | Deny, Call, Decider]] = [
    ("a deny", Deny(rule="d", reason="no"), CALL, ANA),
    ("four eyes", Ask(rule="r", approvers=("any",), self_approval="fourEyes"), CALL, ANA),
    ("a quorum", Ask(rule="r", approvers=("any",), quorum=2), CALL, ANA),
    ("what the policy no longer offers", Ask(rule="r", always_allow=False), CALL, ANA),
    ("what destroys", ASKED, replace(CALL, tool=DESTROYS), ANA),
    ("other approvers now", Ask(rule="r", approvers=("web:ben",)), CALL, ANA),
    ("a group they may have left", Ask(rule="r", approvers=("entra-group:1",)), CALL, ANA),
    ("another requester", ASKED, CALL, Decider("web:ben", ("web:ben",))),
    ("another call", ASKED, replace(CALL, arguments={}), ANA),
]


@pytest.mark.parametrize(("verdict", "call", "requester"), [s[1:] for s in STAYS], ids=[s[0] for s in STAYS])
def test_what_a_grant_does_not_change(verdict: Ask | Deny, call: Call, requester: Decider) -> None:
    grant = replace(GRANT, digest=digest_of(call.tool, call.arguments)) if call.tool is DESTROYS else GRANT
    assert under_grants(verdict, call, [grant], requester, now=0.0) is verdict


def test_a_destroying_call_is_covered_where_the_policy_says_so() -> None:
    call = replace(CALL, tool=DESTROYS)
    verdict = judge(a_policy("match: {}, decide: ask, alwaysAllow: true"), call, facts())
    assert isinstance(
        under_grants(verdict, call, [replace(GRANT, digest=digest_of(call.tool, call.arguments))], ANA, now=0.0), Allow
    )


@pytest.mark.parametrize(
    ("warned", "tool"),
    [((), TOOL), ((Risk.READS,), TOOL), ((Risk.WRITES,), DESTROYS), ((Risk.READS, Risk.DESTROYS), DESTROYS)],
)
def test_a_call_that_may_do_more_than_its_card_warned_of_is_not_covered(warned: tuple[Risk, ...], tool: Tool) -> None:
    """Rule 12: the annotations of a trusted server's tool are in no digest."""
    call, asked = replace(CALL, tool=tool), Ask(rule="r", always_allow=True)
    given = replace(GRANT, digest=digest_of(call.tool, call.arguments))
    assert isinstance(under_grants(asked, call, [given], ANA, now=0.0), Allow)
    assert under_grants(asked, call, [replace(given, risks=warned)], ANA, now=0.0) is asked


def test_a_group_that_is_known_suffices() -> None:
    asked = Ask(rule="r", approvers=("entra-group:1",))
    member = replace(ANA, groups={"entra-group:1": True})
    assert isinstance(under_grants(asked, CALL, [GRANT], member, now=0.0), Allow)


def test_a_grant_does_not_lift_the_ceiling() -> None:
    verdict = judge(a_policy("match: {}, decide: ask"), CALL, facts(mode=Mode.READ_ONLY))
    assert isinstance(under_grants(verdict, CALL, [GRANT], ANA, now=0.0), Deny)


def test_a_call_without_arguments_can_be_granted_too() -> None:
    call = a_call(TOOL)
    assert covered([replace(GRANT, digest=digest_of(call.tool, call.arguments))], call, "web:ana", now=0.0) is not None
