from __future__ import annotations

from typing import Any

import pytest

from policies.judging import Tried, explain
from policies.matching import Fit
from policies.model import Allow, Ask, Deny, Mode
from tests.policies.builders import a_call, a_command, a_policy, a_tool, facts

GROUP = "slack-group:T1:S1"


def test_each_rule_is_tried_in_order_down_to_the_one_that_decides() -> None:
    policy = a_policy(
        "match: {server: tasks, tool: 'delete*'}, decide: deny",
        "match: {args: {count: {min: 10}}}, decide: deny",
        "match: {tool: 'create*'}, decide: ask, approvers: ['web:ben', any], selfApproval: fourEyes",
        "match: {}, decide: allow",
    )
    explained = explain(policy, a_call(count=3), facts())
    assert explained.tried == (
        Tried(
            "r1",
            "test:3",
            Fit.NO,
            ("server is calendar; wanted: tasks", "tool is create_event; wanted: delete*"),
        ),
        Tried("r2", "test:4", Fit.NO, ("args.count is 3; wanted: at least 10",)),
        Tried("r3", "test:5", Fit.YES),
    )
    assert (explained.decided_by, explained.server_requirement, explained.ceiling) == ("r3", "", "")
    assert explained.approvers == "someone other than web:ana"
    assert isinstance(explained.verdict, Ask)


def test_a_rule_that_could_not_be_found_out_says_what_was_missing() -> None:
    explained = explain(a_policy(f"match: {{requester: '{GROUP}'}}, decide: deny"), a_call(), facts())
    [tried] = explained.tried
    assert tried.fit is Fit.UNKNOWN
    assert tried.because == (f"requester is web:ana, perhaps in {GROUP}; wanted: {GROUP}",)
    assert isinstance(explained.verdict, Deny)
    assert explained.approvers == ""


def test_without_a_rule_the_requester_is_asked() -> None:
    explained = explain(a_policy("match: {tool: other}, decide: deny"), a_call(), facts())
    assert (explained.decided_by, explained.approvers) == ("", "web:ana")


def test_what_the_server_requires_is_named() -> None:
    policy = a_policy("match: {}, decide: allow")
    explained = explain(policy, a_call(a_tool(requires_approval=True)), facts())
    assert explained.server_requirement == "calendar requires approval for create_event: allow became ask."
    assert explained.approvers == "web:ana"
    assert explain(policy, a_call(), facts()).server_requirement == ""


def test_the_ceiling_that_applied_is_named() -> None:
    explained = explain(a_policy("match: {}, decide: allow"), a_call(), facts(mode=Mode.READ_ONLY))
    assert explained.ceiling.startswith("Mode readOnly: In readOnly mode nothing may be changed")
    assert explained.decided_by == "r1"


def test_an_escalation_is_said_in_words() -> None:
    policy = a_policy("match: {}, decide: ask, approvers: ['web:ben'], escalateAfter: 90m, escalateTo: ['web:eve']")
    assert explain(policy, a_call(), facts()).approvers == "web:ben; after 90m also web:eve"


FOUND: list[tuple[str, Any, str]] = [
    ("{platform: slack}", a_call(), "platform is web; wanted: slack"),
    ("{mode: safeWrite}", a_call(), "mode is default; wanted: safeWrite"),
    ("{channel: 'slack:T1:C*'}", a_call(), "channel is a direct chat; wanted: slack:T1:C*"),
    ("{requester: ['web:ben', 'web:eve']}", a_call(), "requester is web:ana; wanted: web:ben or web:eve"),
    ("{annotations: {readOnlyHint: true}}", a_call(), "annotations.readOnlyHint is false; wanted: true"),
    (
        "{annotations: {readOnlyHint: true}}",
        a_call(a_tool(trusted=False)),
        "annotations.readOnlyHint is not trusted on this server; wanted: true",
    ),
    (
        "{time: {days: [mon-fri], from: '08:00', zone: Europe/Berlin}}",
        a_call(),
        "time is sat 01:00; wanted: mon, tue, wed, thu, fri 08:00 to 24:00 (Europe/Berlin)",
    ),
    ("{command: '* list'}", a_call(), "command is not what this tool takes; wanted: * list"),
    ("{command: '* list'}", a_command("m365 get"), "command is “m365 get”; wanted: * list"),
    ("{command: '* list'}", a_command("m365 list; x"), "command is not readable; wanted: * list"),
    ("{args: {a: x}}", a_call(), "args.a is left out; wanted: “x”"),
    ("{args: {a: x}}", a_call(a="y" * 99), f"args.a is “{'y' * 60}…”; wanted: “x”"),
    ("{args: {a: {equals: null}}}", a_call(a=[1]), "args.a is a list of 1; wanted: exactly null"),
    ("{args: {a: {in: [x, true]}}}", a_call(a={}), "args.a is a mapping of 0; wanted: one of “x”, true"),
    ("{args: {a: {regex: 'x+'}}}", a_call(a=1.5), "args.a is 1.5; wanted: text like /x+/"),
    ("{args: {a: {min: 1, max: 2}}}", a_call(a=3), "args.a is 3; wanted: 1 to 2"),
    ("{args: {a: {max: 2}}}", a_call(a=10**5000), "args.a is a number beyond all measure; wanted: at most 2"),
    ("{args: {a: {present: false}}}", a_call(a=False), "args.a is false; wanted: left out"),
    ("{args: {a: {present: true, not: x}}}", a_call(), "args.a is left out; wanted: present and not “x”"),
    (
        "{args: {'$.a[*]': {all: {min: 1}}}}",
        a_call(a=[0, 1, 2, 3, 4, 5, 6]),
        "args.$.a[*] is 0, 1, 2, 3, 4 and 2 more; wanted: all at least 1",
    ),
    ("{args: {'$.a[*]': {any: x}}}", a_call(a=[]), "args.$.a[*] is left out; wanted: any “x”"),
    ("{args: {a: x}}", a_call(a={1}), "args.a is something that is not JSON; wanted: “x”"),
]


@pytest.mark.parametrize(("match", "call", "words"), FOUND)
def test_each_field_says_what_it_found_and_what_it_wanted(match: str, call: Any, words: str) -> None:
    [tried] = explain(a_policy(f"match: {match}, decide: deny"), call, facts()).tried
    assert tried.because == (words,)


def test_what_fits_needs_no_words() -> None:
    explained = explain(a_policy("match: {tool: create_event}, decide: allow"), a_call(), facts())
    assert explained.tried == (Tried("r1", "test:3", Fit.YES),)
    assert isinstance(explained.verdict, Allow)
