"""Rule 9: mistakes in a match, and what could never fit, are refused with their line and a reason."""

from __future__ import annotations

import pytest

from policies.conditions import AllConditions, AllOf, AnyOf, Between, Equals, Glob, Not, OneOf, Present, Regex
from policies.judging import PolicyError
from policies.model import Argument, Ask
from policies.policy_file import parse_policy

HEAD = "version: 1\nrules:\n  - name: r\n    decide: deny\n    match:\n"  # five lines; what follows begins on line 6


def refused(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "policy.yaml")
    return caught.value


FIELDS = [
    ("servr: calendar", "did you mean “server”"),
    ("server: [calendar]", "server must be text, not a list"),
    ("server: 'cal*'", "must be the name of one server in mcp.json, not “cal*”"),
    ("server: 'calendar '", "must be the name of one server"),
    ("server: calendar, tasks", "must be the name of one server"),
    ("server: a__b", "must be the name of one server"),
    ("tool: 5", "tool must be text"),
    ("tool: '{create,delete}_*'", "fits no tool: names have letters, digits"),
    ("tool: 'create_*|delete_*'", "fits no tool"),
    ("tool: 'create_*, delete_*'", "fits no tool"),
    ("tool: '^delete'", "fits no tool"),
    ('tool: "delete\\u200b"', "fits no tool"),
    ("{server: bank, tool: bank__pay}", "write “pay”"),
    ("command: 'git push --force*'", "which never hold “--force*”"),
    ("command: 'kubectl * -n prod'", "which never hold “-n”"),
    ("command: '* –force'", "which never hold “–force”"),
    ("command: 'net use /delete'", "which never hold “/delete”"),
    ("command: '* remove* | * delete*'", "which never hold “|”"),
    ("command: '* {remove,delete}'", "which never hold “{”"),
    ("command: 5", "command must be text"),
    ("command: ''", "command is empty"),
    ("args: {}", "args is empty"),
    ("args: primary", "args must be a mapping"),
    ("annotations: {}", "annotations is empty"),
    ("annotations: {readOnly: true}", "did you mean “readOnlyHint”"),
    ("annotations: {readOnlyHint: maybe}", "readOnlyHint must be true or false"),
    ("mode: readonly", "mode must be one of readOnly, default, safeWrite"),
    ("platform: slak", "platform must be one of slack, teams, web, api, mcp, not “slak”"),
    ("channel: C1", "channel must be a channel as platforms name it"),
    ("channel: 'slack:'", "channel must be a channel"),
    ("channel: 'discord:1'", "channel must be a channel"),
    ("channel: 'slack:C1'", "channel must be a channel"),
    ("channel: 'slack:T1:general'", "channel must be a channel"),
    ("channel: 'slack:t1:c1'", "channel must be a channel"),
    ("channel: 'slack:T1:C1 '", "channel must be a channel"),
    ("channel: 'slack:T1:* '", "channel must be a channel"),
    ("channel: 'slack:*:general'", "channel must be a channel"),
    ("channel: 'slack:T1:general*'", "channel must be a channel"),
    ("channel: 'slack:t1:*'", "channel must be a channel"),
    ("channel: 'slack:T1:#*'", "channel must be a channel"),
    ("channel: 'slack:T1:C1:*'", "channel must be a channel"),
    ("channel: null", "channel must be text, not nothing"),
    ("{platform: mcp, channel: 'slack:T1:C1'}", "channel: programs (client, and platform: mcp) call from no channel"),
    ("{client: a, channel: 'slack:T1:C1'}", "call from no channel"),
    ("{client: a, platform: slack}", "only calls on platform mcp have one, and this rule is about slack"),
    ("client: 5", "client must be text, not the number 5"),
    ("agent: 5", "agent must be text, not the number 5"),
    ("agent: []", "agent is empty"),
    ("agent: [finance, finance]", "twice"),
    ("agent: Finance", "“Finance” fits no agent"),
    ("{agent: finance, client: a}", "are no agent's of ours"),
    ("{platform: mcp, agent: finance}", "are no agent's of ours"),
    ("client: ''", "client is empty"),
    ("client: []", "client is empty"),
    ("client: [a, 5]", "each of client must be text"),
    ("client: [a, a]", "twice"),
    ("client: 'cursor '", "“cursor ” fits no client"),
    (f"client: {'c' * 101}", "names of programs have at most 100 characters"),
    ('client: "cur\\nsor"', "names of programs have one line, and U+000A"),
    ("requester: ana", "requester must be a person"),
    ("requester: requester", "requester must be a person"),
    ("requester: 'slack:U2'", "slack:T1:U2, teams:{tenant}:{object id}, web:ana"),
    ("requester: 'slack:t1:u2'", "requester must be a person"),
    ("requester: 'slack:T1:U2:3'", "requester must be a person"),
    ("requester: 'discord:T1:U2'", "requester must be a person"),
    ("requester: 'teams:somebody'", "requester must be a person"),
    ("requester: 'web:ana ben'", "requester must be a person"),
    ("requester: 'entra-group:7'", "entra-group:{tenant}:{object id}"),
    ("requester: 'slack-group:S1'", "slack-group:T1:S1"),
    ("requester: 'web-group:x'", "requester must be a person"),
    ("requester: []", "requester is empty"),
    ("requester: ['web:ana', ben]", "each requester must be a person"),
    ("requester: ['web:ana', 'web:ana']", "twice"),
    ("time: {}", "time is empty"),
    ("time: morning", "time must be a mapping"),
    ("time: {zone: UTC}", "names a zone only"),
    ("time: {days: [mon]}", "“zone” is missing"),
    ("time: {days: [mon], zone: Berlin/Europe}", "no time zone “Berlin/Europe”"),
    ("time: {days: [mon], zone: Europe}", "no time zone “Europe”"),
    ("time: {days: [mon], zone: ../../etc/passwd}", "no time zone"),
    ("time: {days: [], zone: UTC}", "days is empty"),
    ("time: {days: [monday], zone: UTC}", "“monday” is no day"),
    ("time: {days: [mon-funday], zone: UTC}", "“mon-funday” is no day"),
    ("time: {days: [mon-], zone: UTC}", "is no day"),
    ("time: {from: '8:00', zone: UTC}", "from must be a time such as “08:00”"),
    ("time: {from: '24:00', zone: UTC}", "from must be a time"),
    ("time: {until: '24:01', zone: UTC}", "until must be a time"),
    ("time: {from: 800, zone: UTC}", "from must be text"),
    ("time: {from: '08:00', until: '08:00', zone: UTC}", "begins and ends at the same minute"),
    ("time: {until: '00:00', zone: UTC}", "begins and ends at the same minute"),
    ("time: {hours: 8, zone: UTC}", "time has no key “hours”"),
    ("args: {a: {}}", "the condition on a is empty"),
    ("args: {a: {b: 1}}", "to compare it with this very mapping write equals"),
    ("args: {a: {globb: x}}", "write equals"),
    ("args: {a: {glob: x, regx: y}}", "did you mean “regex”"),
    ("args: {a: {glob: 5}}", "glob must be text"),
    ("args: {a: {regex: '('}}", "not a regular expression that RE2 knows: missing )"),
    ("args: {a: {regex: '(?=x)'}}", "not a regular expression"),
    ("args: {a: {regex: '(x{1000}){1000}'}}", "not a regular expression"),
    ("args: {a: {in: []}}", "in must be a list of values"),
    ("args: {a: {in: x}}", "in must be a list of values"),
    ("args: {a:x}", "“a:x” is read as the name of an argument"),
    ("args: {a:5, b: x}", "“a:5” is read as the name of an argument"),
    ("args: {a=x}", "“a=x” is read as the name of an argument"),
    ("args: {a > 5}", "“a > 5” is read as the name of an argument"),
    ('args: {a: {regex: ".*\\bDROP.*"}}', "U+0008 is among what it is compared with"),
    ('args: {a: "C:\\temp"}', "U+0009 is among"),
    ('args: {a: {equals: "x\\n"}}', "write |- or >-"),
    ('args: {a: {in: [y, "x\\P"]}}', "U+2029 is among"),
    ('args: {a: {not: {glob: "x\\a"}}}', "U+0007 is among"),
    ('args: {"$.a[*]": {any: {equals: {b: ["x\\n"]}}}}', "U+000A is among"),
    ("args: {a: &b x}", "anchors (&name) are not supported"),
    ("args: {a: {min: many}}", "min must be a number"),
    ("args: {a: {max: true}}", "max must be a number"),
    ("args: {a: {min: 3, max: 2}}", "max (2) is below min (3)"),
    ("args: {a: {present: maybe}}", "present of a must be true or false"),
    ("args: {a: {any: x}}", "any is for paths that yield several values, such as “$.a[*]”"),
    ("args: {a: {not: {all: x}}}", "all is for paths"),
    (
        "args: {options.force: true}",
        "write “$.options.force”, or “$['options.force']” for an argument of that very name",
    ),
    ("args: {'attendees[*].email': '*@x'}", "paths begin with $"),
    ("args: {'$.a[': x}", "args: “$.a[”: not a JSON path"),
    ("args: {'$.a[?@.b == 1]': {any: x}}", "filters (?) are not supported"),
    ("args: {'$..a..b': {any: x}}", "“..” may be used once"),
    ("args: {'$.a[*]': x}", "$.a[*] can yield several values: write “any: …” or “all: …”"),
    ("args: {'$.a[*]': {glob: x}}", "can yield several values"),
    ("args: {'$.a[*]': {not: x}}", "can yield several values"),
    ("args: {'$.a[*]': {any: x, glob: y}}", "the condition on $.a[*] has no key “glob”"),
    ("args: {'$.a[*]': {any: {present: true}}}", "$.a[*] must be"),
    ("args: {'$.a[*]': {any: {any: x}}}", "any is for paths"),
]


@pytest.mark.parametrize(("written", "says"), FIELDS)
def test_a_mistake_in_a_match_is_refused_with_its_line(written: str, says: str) -> None:
    error = refused(f"{HEAD}      {written}\n")
    assert (error.line, says in error.reason) == (6, True), error.reason


@pytest.mark.parametrize("block", ["|", ">", "|+"])
@pytest.mark.parametrize("condition", ["regex: ", "glob: ", "equals: ", "in:\n          - "])
def test_a_block_that_ends_in_a_line_break_is_refused(condition: str, block: str) -> None:
    """Nothing would ever fit it, and a rule that denies would protect nothing."""
    written = f"      args:\n        sql:\n          {condition}{block}\n            DROP .*\n"
    assert "write |- or >-" in refused(HEAD + written).reason
    assert parse_policy(HEAD + written.replace(block, f"{block[0]}-", 1), "policy.yaml").rules


FITTING = [
    "server: cal-endar_2",
    "tool: 'ns/get_[a-z]*.v?'",
    "tool: bank__pay",
    "{server: bank, tool: pay__bank}",
    "command: 'az * *-list'",
    "command: '[!a]* remove'",
    "args: {\"$['options.force']\": true}",
    "args: {$filter: x, calendar-id: y}",
    "args: {'odata:type': {equals: null}, a: null, b: }",
    "args: {a: {regex: '.*\\bDROP\\n.*'}}",
    "channel: 'slack:*:C1'",
    "channel: 'slack:*'",
    "channel: 'slack:T1*'",
    "channel: 'slack:T?:[!D]*'",
    "channel: 'teams:0a:19:x@thread.tacv2'",
]


@pytest.mark.parametrize("written", FITTING)
def test_what_may_fit_is_read(written: str) -> None:
    assert parse_policy(f"{HEAD}      {written}\n", "policy.yaml").rules


def test_a_mistake_deep_in_a_condition_names_its_own_line() -> None:
    written = "      args:\n        a: x\n        '$.b[*]':\n          any:\n            regex: '['\n"
    assert refused(HEAD + written).line == 10
    written = "      args:\n        a: x\n        b:\n          min: 3\n          max: 1\n"
    assert refused(HEAD + written).line == 10
    assert refused(HEAD + "      args:\n        a: x\n        '$.b[': y\n").line == 8


CONDITIONS = [
    ("a", "x*", Glob("x*")),
    ("a", "7", Equals(7)),
    ("a", "null", Equals(None)),
    ("a", "[1, b]", Equals([1, "b"])),
    ("a", "{equals: {b: [1]}}", Equals({"b": [1]})),
    ("a", "{glob: x}", Glob("x")),
    ("a", "{regex: 'x+'}", Regex("x+")),
    ("a", "{in: [a, 1]}", OneOf(("a", 1))),
    ("a", "{min: 1}", Between(1, None)),
    ("a", "{max: 1.5}", Between(None, 1.5)),
    ("a", "{min: 1, max: 2}", Between(1, 2)),
    ("a", "{present: false}", Present(wanted=False)),
    ("a", "{not: {in: [a]}}", Not(OneOf(("a",)))),
    ("a", "{present: true, not: x}", AllConditions((Present(wanted=True), Not(Glob("x"))))),
    ("$.a", "x", Glob("x")),
    ("$.a[*]", "{any: x}", AnyOf(Glob("x"))),
    ("$.a[*]", "{all: {min: 1, not: 5}}", AllOf(AllConditions((Between(1, None), Not(Equals(5)))))),
    ("$.a[*]", "{not: {any: {not: x}}}", Not(AnyOf(Not(Glob("x"))))),
    ("$.a[0]", "{present: true}", Present(wanted=True)),
    ("$filter", "x", Glob("x")),
]


@pytest.mark.parametrize(("key", "written", "condition"), CONDITIONS)
def test_a_condition_is_read(key: str, written: str, condition: object) -> None:
    [rule] = parse_policy(f"{HEAD}      args: {{'{key}': {written}}}\n", "p").rules
    [argument] = rule.match.args
    assert (argument.key, argument.condition) == (key, condition)
    assert argument == Argument.of(key, argument.condition)


DOUBTFUL = ["a: {not: x}", "a: {not: {min: 3}}", "'$.a[*]': {not: {any: x}}", "a: {not: {present: true}}"]


@pytest.mark.parametrize("condition", DOUBTFUL)
def test_an_allow_that_would_fit_what_is_left_out_has_to_say_so(condition: str) -> None:
    text = f"version: 1\nrules:\n- name: r\n  match:\n    args:\n      {condition}\n  decide: allow"
    error = refused(text)
    assert error.line == 6
    assert "present: true beside it" in error.reason
    assert parse_policy(text.replace("allow", "deny"), "p").rules
    assert parse_policy(text.replace("{not", "{present: true, not"), "p").rules


def test_an_allow_may_be_about_what_is_left_out_where_it_says_so() -> None:
    assert parse_policy(
        "version: 1\nrules: [{name: r, match: {args: {a: {present: false}}}, decide: allow}]", "p"
    ).rules


ASKS = [
    ("an escalation to nobody", ["escalateAfter: 1h"], 6, "escalateAfter needs escalateTo beside it"),
    ("an escalation at no time", ["escalateTo: ['web:b']"], 6, "escalateTo needs escalateAfter beside it"),
    ("an escalation to an empty list", ["escalateAfter: 1h", "escalateTo: []"], 7, "escalateTo is empty"),
    ("an escalation to a group", ["escalateAfter: 1h", "escalateTo: ['entra-group:t1:1']"], 7, "must be a person"),
    ("an escalation to anybody", ["escalateAfter: 1h", "escalateTo: [any]"], 7, "must be a person"),
    (
        "an escalation after the end",
        ["escalateTo: ['web:b']", "expiresIn: 1h", "escalateAfter: 60m"],
        8,
        "escalateAfter (1h) comes too late: it expires after 1h",
    ),
    (
        "a reminder after the default end",
        ["remindAfter: 2d"],
        6,
        "remindAfter (2d) comes too late: it expires after 1d (the default)",
    ),
    ("a reminder without a unit", ["remindAfter: 30"], 6, "remindAfter needs a unit"),
    ("a reminder that never comes", ["remindAfter: never"], 6, "remindAfter: “never” is not a duration"),
    ("rejections of nobody", ["rejections: 0"], 6, "rejections must be at least 1"),
    ("rejections that cannot be reached", ["rejections: 2"], 6, "rejections is 2, but at most 1"),
    (
        "a quorum that even the escalation does not make",
        ["escalateAfter: 1h", "escalateTo: ['web:b']", "quorum: 3"],
        8,
        "quorum is 3, but at most 2",
    ),
    ("a perhaps for always", ["alwaysAllow: perhaps"], 6, "alwaysAllow must be true or false"),
    (
        "always allow under four eyes",
        ["approvers: [any]", "selfApproval: fourEyes", "alwaysAllow: true"],
        8,
        "fourEyes and a quorum forbid",
    ),
    ("always allow for several", ["approvers: [any]", "quorum: 2", "alwaysAllow: true"], 8, "a quorum forbid"),
    ("reading by a rule about nothing", ["reads: true"], 6, "name a server, a tool or a command"),
    ("reading, maybe", ["reads: maybe"], 6, "reads must be true or false"),
]


@pytest.mark.parametrize(("keys", "line", "says"), [a[1:] for a in ASKS], ids=[a[0] for a in ASKS])
def test_an_impossible_ask_is_refused_with_its_line(keys: list[str], line: int, says: str) -> None:
    head = "version: 1\nrules:\n  - name: r\n    match: {}\n    decide: ask\n"
    error = refused(head + "".join(f"    {key}\n" for key in keys))
    assert (error.line, says in error.reason) == (line, True), error.reason


POSSIBLE = [
    "remindAfter: 2d, expiresIn: never",
    "remindAfter: 2h, escalateAfter: 1h, escalateTo: ['web:b']",
    "quorum: 2, rejections: 2, escalateAfter: 1h, escalateTo: ['web:b']",
    "selfApproval: fourEyes, escalateAfter: 1h, escalateTo: ['web:b']",
    "approvers: ['slack-group:T1:S1'], rejections: 4",
    "alwaysAllow: true",
    "approvers: [any], quorum: 2, alwaysAllow: false",
]


@pytest.mark.parametrize("keys", POSSIBLE)
def test_a_possible_ask_is_read(keys: str) -> None:
    assert parse_policy(f"version: 1\nrules: [{{name: r, match: {{}}, decide: ask, {keys}}}]", "p").rules


def test_a_denying_rule_does_not_say_that_it_reads() -> None:
    error = refused("version: 1\nrules: [{name: r, match: {tool: x}, decide: deny, reads: true}]")
    assert "reads belongs to “decide: allow”" in error.reason


GUIDS = "0A0A0A0A-1B1B-2C2C-3D3D-4E4E4E4E4E4E", "FFFFFFFF-1B1B-2C2C-3D3D-4E4E4E4E4E4E"


def test_guids_are_compared_in_lower_case() -> None:
    """As platforms write them, whichever tool an operator has copied them from."""
    tenant, name = GUIDS
    person, group = f"teams:{tenant}:{name}", f"entra-group:{tenant}:{name}"
    chat = f"teams:{tenant}:19:Abc@thread.v2"
    [rule] = parse_policy(
        f"version: 1\nrules: [{{name: r, match: {{channel: '{chat}', requester: ['{person}', '{group}']}}, "
        f"decide: ask, approvers: ['{person}', '{group}'], escalateAfter: 1h, escalateTo: ['{person}'], "
        f"routeTo: ['{chat}', '{person}']}}]",
        "p",
    ).rules
    ask = rule.verdict
    assert isinstance(ask, Ask)
    assert rule.match.channel == f"teams:{tenant.lower()}:19:Abc@thread.v2"
    assert rule.match.requester == ask.approvers == (person.lower(), group.lower())
    assert ask.escalate_to == (person.lower(),)
    assert ask.route_to == (f"teams:{tenant.lower()}:19:Abc@thread.v2", person.lower())


def test_a_file_beyond_all_measure_is_refused_before_it_is_read() -> None:
    error = refused("version: 1\nrules: []\n" + "# more\n" * 200_000)
    assert "too large" in error.reason
    assert error.line is not None
    assert error.line > 100_000


@pytest.mark.parametrize("match", ["{tool: '%s'}", "{args: {a: '%s'}}"])
def test_a_pattern_beyond_all_measure_is_refused_as_a_mistake(match: str) -> None:
    error = refused(f"version: 1\nrules:\n  - {{name: r, match: {match % ('*a' * 90_000)}, decide: allow}}\n")
    assert "too large" in error.reason
