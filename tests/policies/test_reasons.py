"""Why a call is allowed, asked about or denied, in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import translations
from policies.judging import judge_with_reasons
from policies.model import Annotations, Call, Facts, Mode, Tool
from policies.policy_file import load_policy
from policies.reasons import MOST_CONDITIONS, Reasons, why
from tests.policies.builders import READS, SILENT, a_call, a_command, a_policy, a_tool, facts
from tests.policies.strategies import any_facts, any_policy, calls
from tests.support.forks import ROOT

DESTROYS = Annotations(read_only=False, destructive=True, open_world=True)
GROUP = "slack-group:T1:S1"


def told(rule: str, call: Call | None = None, around: Facts | None = None, **arguments: Any) -> str:
    """Why a call is judged as it is by a policy of one rule."""
    _verdict, reasons = judge_with_reasons(a_policy(rule), call or a_call(**arguments), around or facts())
    return why(Reasons.model_validate(reasons.model_dump(mode="json")))  # as it crosses a restart


@pytest.mark.parametrize(
    ("match", "what"),
    [
        ("{}", "every tool"),
        ("{server: calendar}", "every tool on calendar"),
        ("{tool: 'create_*'}", "create_* on every server"),
        ("{server: calendar, tool: 'create_*'}", "create_* on calendar"),
    ],
)
@pytest.mark.parametrize(
    ("decide", "word"),
    [("decide: allow", "Allowed"), ("decide: ask", "Asked"), ("decide: deny, reason: No.", "Denied")],
)
def test_the_rule_is_named_with_the_tools_that_it_covers(match: str, what: str, decide: str, word: str) -> None:
    assert told(f"match: {match}, {decide}") == f"{word} because rule “r1” covers {what}."


@pytest.mark.parametrize(
    ("match", "call", "around", "clause"),
    [
        ("annotations: {readOnlyHint: true}", a_call(a_tool(says=READS)), {}, "its server says that it only reads"),
        ("annotations: {readOnlyHint: false}", a_call(), {}, "its server does not say that it only reads"),
        ("annotations: {destructiveHint: true}", a_call(a_tool(says=DESTROYS)), {}, "it may delete data"),
        ("annotations: {destructiveHint: false}", a_call(), {}, "its server says that it deletes nothing"),
        (
            "annotations: {openWorldHint: true}",
            a_call(a_tool(says=DESTROYS)),
            {},
            "it may reach people or services outside",
        ),
        ("annotations: {openWorldHint: false}", a_call(), {}, "its server says that it reaches nothing outside"),
        (
            "annotations: {idempotentHint: false}",
            a_call(),
            {},
            "its server does not say that repeating it changes nothing",
        ),
        ("reads: true", a_call(a_tool(says=READS)), {}, "it is known to only read"),
        ("reads: false", a_call(), {}, "it is not known to only read"),
        ("args: {calendar_id: primary}", a_call(calendar_id="primary"), {}, "“calendar_id” is “primary”"),
        ("args: {amount: {min: 500}}", a_call(amount=700), {}, "“amount” is at least 500"),
        ("args: {amount: {max: 500}}", a_call(amount=7), {}, "“amount” is at most 500"),
        ("args: {amount: {min: 1, max: 5}}", a_call(amount=3), {}, "“amount” is 1 to 5"),
        ("args: {title: 'Test*'}", a_call(title="Test 1"), {}, "“title” is text like “Test*”"),
        ("args: {title: {regex: '[a-z]+'}}", a_call(title="abc"), {}, "“title” is text like /[a-z]+/"),
        ("args: {size: {in: [s, 3]}}", a_call(size="s"), {}, "“size” is one of “s”, 3"),
        ("args: {size: {not: s}}", a_call(size="m"), {}, "“size” is not “s”"),
        ("args: {end: {present: true}}", a_call(end=1), {}, "“end” is present"),
        ("args: {end: {present: false}}", a_call(), {}, "“end” is left out"),
        ("args: {'$.to[*]': {any: 'x*'}}", a_call(to=["xy"]), {}, "“$.to[*]” is any text like “x*”"),
        ("args: {'$.to[*]': {all: 'x*'}}", a_call(to=["xy"]), {}, "“$.to[*]” is all text like “x*”"),
        ("command: 'list *'", a_command("list users"), {}, "its command is like “list *”"),
        ("mode: default", a_call(), {}, "the mode is default"),
        ("platform: slack", a_call(), {"platform": "slack"}, "it comes from slack"),
        ("channel: 'slack:T1:*'", a_call(), {"place": "slack:T1:C2"}, "its channel is like slack:T1:*"),
        ("client: 'Code*'", a_call(), {"client": "codex", "platform": "mcp"}, "its program is like Code*"),
        ("agent: finance", a_call(), {"agent": "finance"}, "its agent is like finance"),
        (f"requester: '{GROUP}'", a_call(), {"groups": {GROUP: True}}, "the rule names its requester"),
        ("time: {from: '00:00', until: '23:59', zone: UTC}", a_call(), {}, "the time is 00:00 to 23:59 (UTC)"),
    ],
)
def test_what_it_matched_on_is_said(match: str, call: Call, around: dict[str, Any], clause: str) -> None:
    asked = told(f"match: {{{match}}}, decide: ask", call, facts(**around))
    assert asked == f"Asked because {clause}, and rule “r1” covers every tool."


def test_several_conditions_are_a_list_and_the_rest_is_counted() -> None:
    both = told("match: {server: calendar, platform: web, args: {a: {present: true}}}, decide: ask", a=1)
    assert both == "Asked because it comes from web and “a” is present, and rule “r1” covers every tool on calendar."
    names = [f"a{number}" for number in range(MOST_CONDITIONS + 3)]
    many = told(
        f"match: {{args: {{{', '.join(f'{name}: 1' for name in names)}}}}}, decide: ask", **dict.fromkeys(names, 1)
    )
    assert "3 more conditions hold" in many
    one_more = told(
        f"match: {{args: {{{', '.join(f'{name}: 1' for name in names[:-2])}}}}}, decide: ask", **dict.fromkeys(names, 1)
    )
    assert "and 1 more condition holds, and rule" in one_more
    assert "a6" not in many


def test_values_of_the_call_are_not_repeated() -> None:
    assert "hunter2" not in told("match: {args: {password: {present: true}}}, decide: ask", password="hunter2")


def test_a_rule_that_wants_very_much_is_cut() -> None:
    asked = told(f"match: {{args: {{text: {{not: {'x' * 5_000}}}}}}}, decide: ask", text="y")
    assert len(asked) < 300


@pytest.mark.parametrize(
    ("rules", "call", "around", "sentence"),
    [
        ((), a_call(), {}, "Asked because no rule covers create_event on calendar."),
        (
            ("match: {}, decide: allow",),
            a_call(a_tool(requires_approval=True)),
            {},
            "Asked because calendar requires approval for create_event, whatever the rules allow.",
        ),
        (
            (f"match: {{requester: '{GROUP}'}}, decide: deny, reason: No.",),
            a_call(),
            {"groups": {GROUP: None}},
            "Denied because it could not be found out whether rule “r1” covers it.",
        ),
        (
            ("match: {}, decide: allow",),
            a_call(a_tool(says=SILENT, trusted=False)),
            {"mode": Mode.READ_ONLY},
            "Denied because nothing may be changed in readOnly mode.",
        ),
        (
            ("match: {}, decide: ask",),
            a_call(),
            {"mode": Mode.SAFE_WRITE},
            "Denied because in safeWrite mode a rule must name the tool, and the requester’s words must ask for it.",
        ),
    ],
)
def test_what_decides_beside_the_rules_is_said(
    rules: tuple[str, ...], call: Call, around: dict[str, Any], sentence: str
) -> None:
    assert why(judge_with_reasons(a_policy(*rules), call, facts(**around))[1]) == sentence


def test_an_agent_that_has_it_asked_is_named() -> None:
    around = facts(agent="finance")
    asks = Facts(**{name: getattr(around, name) for name in around.__slots__} | {"agent_asks": True})
    _verdict, reasons = judge_with_reasons(a_policy("match: {}, decide: allow"), a_call(), asks)
    assert why(reasons) == (
        "Asked because the finance agent requires approval for create_event, whatever the rules allow."
    )


def test_a_standing_approval_is_no_rule() -> None:
    _verdict, reasons = judge_with_reasons(a_policy("match: {}, decide: ask"), a_call(), facts())
    allowed = reasons.model_copy(update={"decided": "allow", "is_standing": True})
    assert why(allowed) == "Allowed by a standing approval of the requester."


def test_the_rules_that_come_with_it_explain_themselves() -> None:
    policy = load_policy(ROOT / "policies" / "default.yaml")
    deletes = Call(Tool("calendar", "delete_event", annotations=DESTROYS, annotations_trusted=True), {})
    assert why(judge_with_reasons(policy, deletes, facts())[1]) == (
        "Asked because rule “Deleting needs someone else” covers delete* on every server."
    )


def test_it_is_read_in_the_readers_language() -> None:
    _verdict, reasons = judge_with_reasons(a_policy("match: {server: calendar}, decide: ask"), a_call(), facts())
    with translations.in_language("de"):
        assert why(reasons).startswith("Gefragt, weil ")


@pytest.mark.parametrize(
    ("match", "call", "around", "clause"),
    [
        ("args: {amount: {min: 500}}", a_call(amount=700), {}, "„amount“ ist mindestens 500"),
        ("args: {amount: {max: 500}}", a_call(amount=7), {}, "„amount“ ist höchstens 500"),
        ("args: {amount: {min: 1, max: 5}}", a_call(amount=3), {}, "„amount“ ist 1 bis 5"),
        ("args: {title: {regex: '[a-z]+'}}", a_call(title="abc"), {}, "„title“ ist ein Text wie /[a-z]+/"),
        ("args: {size: {in: [s, 3]}}", a_call(size="s"), {}, "„size“ ist eines von “s”, 3"),
        ("args: {size: {not: 's*'}}", a_call(size="m"), {}, "„size“ ist nicht ein Text wie “s*”"),
        ("args: {on: true}", a_call(on=True), {}, "„on“ ist genau true"),
        ("args: {to: {equals: [a, b]}}", a_call(to=["a", "b"]), {}, "„to“ ist genau eine Liste von 2"),
        ("args: {to: {equals: {a: 1}}}", a_call(to={"a": 1}), {}, "„to“ ist genau eine Zuordnung von 1"),
        ("args: {end: {present: true}}", a_call(end=1), {}, "„end“ ist angegeben"),
        ("args: {end: {present: false}}", a_call(), {}, "„end“ ist nicht angegeben"),
        ("args: {'$.to[*]': {any: 'x*'}}", a_call(to=["xy"]), {}, "„$.to[*]“ ist mindestens einmal ein Text wie “x*”"),
        ("args: {'$.to[*]': {all: 'x*'}}", a_call(to=["xy"]), {}, "„$.to[*]“ ist jedes Mal ein Text wie “x*”"),
        ("args: {size: 'at least 3'}", a_call(size="at least 3"), {}, "„size“ ist “at least 3”"),
        ("agent: [finance, hr]", a_call(), {"agent": "finance"}, "sein Agent entspricht finance oder hr"),
        ("time: {from: '00:00', until: '23:59', zone: UTC}", a_call(), {}, "es ist 00:00 bis 23:59 (UTC)"),
    ],
)
def test_what_it_matched_on_is_said_in_the_readers_language(
    match: str, call: Call, around: dict[str, Any], clause: str
) -> None:
    with translations.in_language("de"):
        asked = told(f"match: {{{match}}}, decide: ask", call, facts(**around))
    assert asked == f"Gefragt, denn {clause}, und die Regel „r1“ gilt für jedes Tool."


@given(any_policy, calls, any_facts)
def test_every_judgement_has_a_sentence(policy: Any, call: Call, around: Facts) -> None:
    verdict, reasons = judge_with_reasons(policy, call, around)
    begins = {"allow": "Allowed ", "ask": "Asked ", "deny": "Denied "}[verdict.verdict]
    sentence = why(reasons)
    assert sentence.startswith(begins)
    assert sentence.endswith(".")
    assert len(sentence) < 2_000
