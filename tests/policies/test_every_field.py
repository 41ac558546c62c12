"""Every field of a rule, and every pair of outcomes, in every mode: a field without a line here fails a test."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from policies import policy_file
from policies.judging import judge
from policies.model import Allow, Ask, Call, Deny, Facts, Match, Mode
from policies.policy_file import ASK_KEYS
from tests.policies.builders import READS, WRITES, a_call, a_command, a_policy, a_tool, facts, judged

GROUP = "slack-group:T1:S1"
NIGHT, DAY = datetime(2026, 11, 20, 23, tzinfo=UTC), datetime(2026, 11, 20, 9, tzinfo=UTC)
CALL = a_call()

MATCH: dict[str, tuple[str, tuple[Call, Facts], tuple[Call, Facts]]] = {
    "server": ("calendar", (CALL, facts()), (a_call(a_tool(server="tasks")), facts())),
    "tool": ("'create_*'", (CALL, facts()), (a_call(a_tool("delete_event")), facts())),
    "command": ("'* list'", (a_command("m365 list"), facts()), (a_command("m365 get"), facts())),
    "args": ("{a: x}", (a_call(a="x"), facts()), (a_call(a="y"), facts())),
    "reads": ("true", (a_command("m365 teams team list"), facts()), (a_command("m365 teams"), facts())),
    "annotations": ("{readOnlyHint: true}", (a_call(a_tool(says=READS)), facts()), (CALL, facts())),
    "mode": ("default", (CALL, facts()), (a_call(a_tool(says=READS)), facts(mode=Mode.READ_ONLY))),
    "platform": ("slack", (CALL, facts(platform="slack")), (CALL, facts())),
    "channel": ("'slack:T1:C*'", (CALL, facts(place="slack:T1:C1")), (CALL, facts(place="slack:T2:C1"))),
    "client": ("'CURSOR*'", (CALL, facts(client="cursor-vscode")), (CALL, facts(client="claude-code"))),
    "agent": ("'finance*'", (CALL, facts(agent="finance-de")), (CALL, facts(agent="default"))),
    "requester": (GROUP, (CALL, facts(groups={GROUP: True})), (CALL, facts(groups={GROUP: False}))),
    "time": ("{from: '22:00', zone: UTC}", (CALL, facts(at=NIGHT)), (CALL, facts(at=DAY))),
}


def test_every_field_of_a_match_is_in_the_table() -> None:
    assert set(MATCH) == {field.name for field in fields(Match)} == set(policy_file._MATCH_KEYS)


@pytest.mark.parametrize("decide", ["allow", "ask", "deny"])
@pytest.mark.parametrize("field", MATCH)
def test_a_field_decides_for_what_it_fits_and_for_nothing_else(field: str, decide: str) -> None:
    written, fitting, misfitting = MATCH[field]
    policy = a_policy(f"match: {{{field}: {written}}}, decide: {decide}", "match: {}, decide: ask")
    found = judge(policy, *fitting)
    assert (found.verdict, found.rule) == (decide, "r1")
    assert judge(policy, *misfitting).rule == "r2"


def test_no_pattern_over_clients_fits_our_own_agent() -> None:
    assert judge(a_policy("match: {client: '*'}, decide: allow"), CALL, facts()).rule == "no rule matched"


def test_no_pattern_over_agents_fits_a_program() -> None:
    assert judge(a_policy("match: {agent: '*'}, decide: allow"), CALL, facts(client="x")).rule == "no rule matched"


CONDITIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "equals": ("a: {equals: 1}", {"a": 1}, {"a": 2}),
    "glob": ("a: {glob: 'x*'}", {"a": "xy"}, {"a": "y"}),
    "regex": ("a: {regex: 'x+'}", {"a": "xx"}, {"a": "y"}),
    "in": ("a: {in: [1, 2]}", {"a": 2}, {"a": 3}),
    "min": ("a: {min: 2}", {"a": 2}, {"a": 1}),
    "max": ("a: {max: 2}", {"a": 2}, {"a": 3}),
    "present": ("a: {present: true}", {"a": 0}, {}),
    "not": ("a: {present: true, not: x}", {"a": "y"}, {"a": "x"}),
    "any": ("'$.a[*]': {any: x}", {"a": ["y", "x"]}, {"a": ["y"]}),
    "all": ("'$.a[*]': {all: x}", {"a": ["x", "x"]}, {"a": ["y", "x"]}),
}


def test_every_condition_is_in_the_table() -> None:
    assert set(CONDITIONS) == policy_file._OF_ONE | policy_file._OF_SEVERAL


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_decides_for_what_it_fits_and_for_nothing_else(condition: str) -> None:
    written, fitting, misfitting = CONDITIONS[condition]
    for decide, verdict in (("allow", Allow), ("ask", Ask), ("deny", Deny)):
        policy = a_policy(f"match: {{args: {{{written}}}}}, decide: {decide}", "match: {}, decide: ask")
        found = judge(policy, a_call(**fitting), facts())
        assert (type(found), found.rule) == (verdict, "r1")
        assert judge(policy, a_call(**misfitting), facts()).rule == "r2"


TIMES = {"days": "[sat]", "from": "'08:00'", "until": "'08:00'", "zone": "Europe/Berlin"}


def test_every_key_of_a_time_is_in_the_table() -> None:
    assert set(TIMES) == policy_file._TIME_KEYS


@pytest.mark.parametrize(
    ("written", "fitting", "misfitting"),
    [
        ("days: [sat], zone: UTC", (2026, 11, 21, 0), (2026, 11, 20, 23)),
        ("from: '08:00', zone: UTC", (2026, 11, 20, 8), (2026, 11, 20, 7)),
        ("until: '08:00', zone: UTC", (2026, 11, 20, 7), (2026, 11, 20, 8)),
        ("from: '08:00', until: '09:00', zone: Europe/Berlin", (2026, 11, 20, 7), (2026, 11, 20, 8)),
        # The clocks of Berlin went from 2 to 3 on 29 March and from 3 back to 2 on 25 October.
        ("from: '03:00', until: '04:00', zone: Europe/Berlin", (2026, 3, 29, 1), (2026, 3, 29, 0)),
        ("from: '02:00', until: '03:00', zone: Europe/Berlin", (2026, 10, 25, 0), (2026, 10, 25, 2)),
        ("from: '02:00', until: '03:00', zone: Europe/Berlin", (2026, 10, 25, 1), (2026, 10, 24, 23)),
        ("days: [sun], from: '22:00', until: '06:00', zone: America/Lima", (2026, 11, 23, 10), (2026, 11, 23, 11)),
    ],
)
def test_times_are_those_of_the_clock_on_the_wall(
    written: str, fitting: tuple[int, int, int, int], misfitting: tuple[int, int, int, int]
) -> None:
    policy = a_policy(f"match: {{time: {{{written}}}}}, decide: deny")
    assert isinstance(judge(policy, CALL, facts(at=datetime(*fitting, tzinfo=UTC))), Deny)
    assert isinstance(judge(policy, CALL, facts(at=datetime(*misfitting, tzinfo=UTC))), Ask)


DEMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "approvers": ("['web:ben', any]", {"approvers": ("web:ben", "any")}),
    "selfApproval": ("fourEyes, approvers: [any]", {"self_approval": "fourEyes", "approvers": ("any",)}),
    "quorum": ("3, approvers: [any]", {"quorum": 3, "approvers": ("any",)}),
    "rejections": ("2, approvers: [any]", {"rejections": 2, "approvers": ("any",)}),
    "expiresIn": ("never", {"expires_in": None}),
    "remindAfter": ("90s", {"remind_after": 90.0}),
    "escalateAfter": ("2h, escalateTo: ['web:eve']", {"escalate_after": 7200.0, "escalate_to": ("web:eve",)}),
    "escalateTo": ("['web:eve'], escalateAfter: 2h", {"escalate_after": 7200.0, "escalate_to": ("web:eve",)}),
    "reasonRequired": ("true", {"reason_required": True}),
    "editable": ("[]", {"editable": ()}),
    "routeTo": ("['slack:T1:C2']", {"route_to": ("slack:T1:C2",)}),
    "alwaysAllow": ("true", {"always_allow": True}),
    "reads": ("true", {"reads": True}),
}


def test_every_key_of_an_ask_is_in_the_table() -> None:
    assert set(DEMANDS) == ASK_KEYS.keys() | {policy_file._READS}
    told = {key for _, demands in DEMANDS.values() for key in demands}
    assert told == set(Ask.model_fields) - {"rule", "source", "version", "verdict"}


@pytest.mark.parametrize("key", DEMANDS)
def test_what_a_rule_demands_is_what_is_asked(key: str) -> None:
    written, demands = DEMANDS[key]
    policy = a_policy(f"match: {{tool: create_event}}, decide: ask, {key}: {written}")
    assert judged(policy, CALL, facts()) == Ask(rule="r1", **demands)


OUTCOMES = ("allow", "ask", "deny")
AFTER_MODE = {
    Mode.DEFAULT: {"allow": "allow", "ask": "ask", "deny": "deny"},
    Mode.READ_ONLY: {"allow": "deny", "ask": "deny", "deny": "deny"},
    Mode.SAFE_WRITE: {"allow": "deny", "ask": "deny", "deny": "deny"},
}
"""What a mode leaves of an outcome for a write that nobody has asked for."""


@pytest.mark.parametrize(("first", "second", "mode"), list(product(OUTCOMES, OUTCOMES, Mode)))
def test_of_every_pair_of_outcomes_the_first_that_fits_wins_under_every_mode(
    first: str, second: str, mode: Mode
) -> None:
    policy = a_policy(f"match: {{tool: create_event}}, decide: {first}", f"match: {{}}, decide: {second}")
    named, other = a_tool(says=WRITES), a_tool("other", says=WRITES)
    for tool, outcome in ((named, first), (other, second)):
        for requires_approval in (False, True):
            raised = "ask" if requires_approval and outcome == "allow" else outcome
            call = a_call(a_tool(tool.name, says=WRITES, requires_approval=requires_approval))
            assert judge(policy, call, facts(mode=mode)).verdict == AFTER_MODE[mode][raised]
            reading_call = a_call(a_tool(tool.name, says=READS, requires_approval=requires_approval))
            assert judge(policy, reading_call, facts(mode=mode)).verdict == raised
