"""Every field of a match: when it fits, and when it does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.judging import judge
from policies.matching import Fit
from policies.model import Allow, Annotations, Ask, Call, Deny, Match
from policies.values import same_json
from tests.policies.builders import READS, a_call, a_command, a_policy, a_tool, facts, fit, judged

GROUP, OTHER_GROUP = "slack-group:T1:S1", "entra-group:t1:7"
Written = dict[str, Any]


def field(written: str, tool: Written | None = None, args: Written | None = None, **around: Any) -> tuple[Any, ...]:
    return written, tool or {}, args or {}, around


def arg(written: str, **arguments: Any) -> tuple[Any, ...]:
    return field(f"{{args: {{{written}}}}}", args=arguments)


def at(written: str, *when: int, zone: str = "UTC") -> tuple[Any, ...]:
    return field(f"{{time: {{{written}, zone: {zone}}}}}", at=datetime(*when, tzinfo=UTC))  # type: ignore[misc,arg-type]  # numbers


PEOPLE = {"attendees": [{"email": "ana@corp.example"}, {"email": "eve@other.example"}]}
COLLEAGUES = {"attendees": [{"email": "ana@corp.example"}, {"email": "ben@corp.example"}]}
ALL_OF_US = "'$.attendees[*].email': {all: '*@corp.example'}"
ANY_OF_US = "'$.attendees[*].email': {any: '*@corp.example'}"
ANY_OTHER = "'$.attendees[*].email': {any: {not: '*@corp.example'}}"

FITS = [
    field("{}"),
    field("{server: calendar}"),
    field("{tool: create_event}"),
    field("{tool: 'create_*'}"),
    field("{tool: '*'}"),
    arg("calendar_id: primary", calendar_id="primary", more=1),
    arg("title: 'Test*'", title="Test of\nlines"),
    arg("count: 3", count=3.0),
    arg("sure: true", sure=True),
    arg("end: null", end=None),
    arg("to: [a, {b: 1}]", to=["a", {"b": 1}]),
    arg("title: {equals: 'Test*'}", title="Test*"),
    arg("to: {equals: {a: 1}}", to={"a": 1}),
    arg("title: {glob: 'T?st'}", title="Test"),
    arg("title: {regex: '[A-Z]+-[0-9]{2,}'}", title="AB-123"),
    arg("title: {regex: '(?i)drop.*'}", title="DROP\ntable"),
    arg("size: {in: [small, 3, null]}", size="small"),
    arg("size: {in: [small, 3, null]}", size=3.0),
    arg("size: {in: [small, 3, null]}", size=None),
    arg("amount: {min: 10}", amount=10),
    arg("amount: {max: 10.5}", amount=10.5),
    arg("amount: {min: 1, max: 3}", amount=2),
    arg("amount: {min: 1}", amount=10**400),
    arg("end: {present: false}"),
    arg("title: {not: 'Test*'}", title="Talk"),
    arg("title: {not: 'Test*'}"),
    arg("title: {not: {in: [a, b]}}", title="c"),
    arg("title: {not: {not: a}}", title="a"),
    arg("title: {present: true, not: a}", title="b"),
    arg("title: {glob: 'a*', not: '*z'}", title="abc"),
    arg("a: 1, b: 2", a=1, b=2),
    arg("$filter: 'x*'", **{"$filter": "xyz"}),
    arg("'$.title': 'T*'", title="Test"),
    arg("'$[\"a b\"].c[0]': {min: 2}", **{"a b": {"c": [2]}}),
    arg("'$.to[-1]': b", to=["a", "b"]),
    arg("'$.x.y': {present: false}", x={}),
    arg(ANY_OF_US, **PEOPLE),
    arg(ALL_OF_US, **COLLEAGUES),
    arg(ANY_OTHER, **PEOPLE),
    arg("'$.attendees[*].email': {not: {any: 'x*'}}", **PEOPLE),
    arg("'$.attendees[*]': {present: false}", attendees=[]),
    arg("'$..id': {any: {in: [7]}}", a={"b": [{"id": 7}]}),
    field("{annotations: {readOnlyHint: false}}"),
    field("{annotations: {readOnlyHint: true, openWorldHint: false}}", {"says": READS}),
    field("{annotations: {destructiveHint: true, openWorldHint: true}}", {"says": Annotations()}),
    field("{annotations: {idempotentHint: true}}", {"says": Annotations(idempotent=True)}),
    field("{mode: default}"),
    field("{platform: slack}", platform="slack"),
    field("{platform: api}", platform="api"),
    field("{channel: 'slack:T1:C1'}", place="slack:T1:C1"),
    field("{channel: 'slack:*:C1'}", place="slack:T1:C1"),
    field("{channel: '*:C1'}", place="slack:T1:C1"),
    field("{requester: 'web:ana'}"),
    field("{requester: ['web:ben', 'web:ana']}"),
    field(f"{{requester: '{GROUP}'}}", groups={GROUP: True}),
    field(f"{{requester: ['{GROUP}', '{OTHER_GROUP}']}}", groups={GROUP: None, OTHER_GROUP: True}),
    field(f"{{requester: ['{GROUP}', 'web:ana']}}", groups={GROUP: None}),
    at("days: [mon-fri]", 2026, 11, 20),
    at("days: [sat]", 2026, 11, 21),
    at("days: [fri-mon]", 2026, 11, 22),
    at("from: '08:00', until: '18:00'", 2026, 11, 21, 8),
    at("from: '08:00', until: '18:00'", 2026, 11, 21, 17, 59, 59),
    at("from: '08:00'", 2026, 11, 21, 23, 59),
    at("until: '08:00'", 2026, 11, 21),
    at("until: '24:00', days: [sat]", 2026, 11, 21, 23, 59),
    at("from: '08:00', until: '09:00'", 2026, 11, 21, 7, 30, zone="Europe/Berlin"),
    at("from: '08:00', until: '09:00'", 2026, 7, 21, 6, 30, zone="Europe/Berlin"),
    at("days: [sun]", 2026, 11, 21, 23, 30, zone="Europe/Berlin"),
    at("days: [fri], from: '22:00', until: '06:00'", 2026, 11, 20, 22),
    at("days: [fri], from: '22:00', until: '06:00'", 2026, 11, 20, 23),
    at("days: [fri], from: '22:00', until: '06:00'", 2026, 11, 21, 5, 59),
    at("from: '22:00', until: '00:00'", 2026, 11, 21, 23),
]

MISFITS = [
    field("{server: tasks}"),
    field("{tool: delete_event}"),
    field("{tool: 'Create_*'}"),
    field("{tool: 'create'}"),
    field("{server: calendar, tool: 'delete_*'}"),
    arg("calendar_id: primary"),
    arg("calendar_id: '*'"),
    arg("end: null"),
    arg("to: [a]", to=["a", "b"]),
    arg("to: ['a*']", to=["abc"]),
    arg("title: {equals: 'Test*'}", title="Testing"),
    arg("title: {regex: 'AB'}", title="ABC"),
    arg("size: {in: [small, 'm*']}", size="mm"),
    arg("size: {in: [1]}"),
    arg("amount: {min: 10}", amount=9.99),
    arg("amount: {min: 0}"),
    arg("amount: {min: 1, max: 3}", amount=4),
    arg("end: {present: true}"),
    arg("title: {not: 'Test*'}", title="Testing"),
    arg("title: {present: true, not: a}"),
    arg("title: {glob: 'a*', not: '*z'}", title="abz"),
    arg("a: 1, b: 2", a=1, b=3),
    arg("'$.title': 'T*'", **{"$.title": "Test"}),
    arg("'$.to[0]': b", to=["a", "b"]),
    arg(ANY_OF_US, attendees=[{"email": "eve@other.example"}]),
    arg(ALL_OF_US, **PEOPLE),
    arg(ALL_OF_US, attendees=[]),
    arg(ALL_OF_US),
    arg(ANY_OTHER, **COLLEAGUES),
    arg("'$.attendees[*].email': {not: {any: 'eve*'}}", **PEOPLE),
    arg("'$.attendees[*].email': {present: true, not: {any: 'eve*'}}"),
    field("{annotations: {readOnlyHint: true}}", {"says": READS, "trusted": False}),
    field("{annotations: {readOnlyHint: false}}", {"trusted": False}),
    field("{annotations: {readOnlyHint: true}}", {"says": Annotations()}),
    field("{annotations: {readOnlyHint: true}}", {"says": Annotations(read_only=True, destructive=True)}),
    field("{annotations: {openWorldHint: false}}", {"says": Annotations(read_only=True)}),
    field("{mode: safeWrite}"),
    field("{platform: slack}"),
    field("{platform: web}", platform="api"),
    field("{channel: 'slack:T1:C1'}"),
    field("{channel: 'slack:T1:C1'}", place="slack:T1:C12"),
    field("{channel: '*'}"),
    field("{channel: '*:c1'}", place="slack:T1:C1"),
    field("{requester: 'web:ben'}"),
    field("{requester: ['web:ben', 'web:chloe']}"),
    field(f"{{requester: '{GROUP}'}}", groups={GROUP: False}),
    at("days: [mon-fri]", 2026, 11, 21),
    at("days: [fri-mon]", 2026, 11, 24),
    at("from: '08:00', until: '18:00'", 2026, 11, 21, 18),
    at("from: '08:00', until: '18:00'", 2026, 11, 21, 7, 59),
    at("from: '08:00', until: '09:00'", 2026, 11, 21, 8, 30, zone="Europe/Berlin"),
    at("days: [fri], from: '22:00', until: '06:00'", 2026, 11, 20, 5),
    at("days: [fri], from: '22:00', until: '06:00'", 2026, 11, 21, 6),
    at("days: [fri], from: '22:00', until: '06:00'", 2026, 11, 21, 23),
    at("from: '22:00', until: '00:00'", 2026, 11, 21, 0),
    field("{command: '* list*'}"),
]


@pytest.mark.parametrize(("match", "tool", "arguments", "around"), FITS, ids=[str(f[::2]) for f in FITS])
def test_a_rule_fits(match: str, tool: Written, arguments: Written, around: Written) -> None:
    policy = a_policy(f"match: {match}, decide: ask, approvers: [any]")
    assert judged(policy, Call(a_tool(**tool), arguments), facts(**around)) == Ask(rule="r1", approvers=("any",))


@pytest.mark.parametrize(("match", "tool", "arguments", "around"), MISFITS, ids=[str(m[::2]) for m in MISFITS])
def test_a_rule_does_not_fit(match: str, tool: Written, arguments: Written, around: Written) -> None:
    policy = a_policy(f"match: {match}, decide: ask, approvers: [any]")
    verdict = judged(policy, Call(a_tool(**tool), arguments), facts(**around))
    assert verdict == Ask(rule="no rule matched")


DOUBTS = [
    arg("end: null", end=False),
    arg("title: 'True'", title=True),
    arg("title: '1*'", title=10**400),
    arg("to: {equals: {a: 1}}", to={"a": 1, "b": 2}),
    arg("to: {equals: [a, b]}", to=["B", "a", "a"]),
    arg("id: {equals: 9007199254740993}", id=9007199254740992),
    arg("'$.to[0]': b", to="b"),
    arg("'$.to[0]': b", to={"0": "b"}),
    arg("'$.event.title': b", event='{"title": "b"}'),
    arg("'$.event.title': b", event=[{"title": "b"}]),
    arg("'$.event.title': b", event=None),
    arg("'$.event.title': b", event={"Title": "b"}),
    arg(ANY_OF_US, attendees="ana@corp.example"),
    arg(ANY_OF_US, attendees=["ana@corp.example"]),
    arg(ANY_OF_US, attendees={"email": "ana@corp.example"}),
    arg(ALL_OF_US, attendees=[{"email": "ana@corp.example"}, {"mail": "eve@other.example"}]),
    arg("calendar_id: primary", calendar_id=["primary"]),
    arg("count: 3", count="3"),
    arg("count: 1", count=True),
    arg("sure: true", sure=1),
    arg("title: {equals: a}", title=["a"]),
    arg("title: {regex: '[0-9]+'}", title=12),
    arg("title: {glob: '1*'}", title=12),
    arg("size: {in: [1]}", size=True),
    arg("amount: {min: 10}", amount="11"),
    arg("amount: {min: 0}", amount=True),
    arg("amount: {min: 0}", amount=float("nan")),
    arg("amount: {min: 0}", amount=[1]),
    arg("calendar_id: primary", calendar_id="Primary"),
    arg("calendar_id: primary", calendar_id=" primary\n"),
    arg("calendar_id: primary", calendar_id="ｐｒｉｍａｒｙ"),
    arg("calendar_id: primary", calendar_id=["other", "PRIMARY"]),
    arg("calendar_id: {equals: primary}", calendar_id="Primary"),
    arg("calendar_id: {equals: primary}", calendar_id=["other", "PRIMARY"]),
    arg("calendar_id: {in: [other, primary]}", calendar_id="PRIMARY"),
    arg("calendar_id: {regex: 'prim[a-z]+'}", calendar_id="PRIMARY"),
    arg("calendar_id: {not: primary}", calendar_id="Primary"),
    arg("calendar_id: {present: true, glob: primary}", calendar_id="Primary"),
    arg("year: '2026'", year=2026),
    arg("year: {equals: '2026'}", year=2026),
    arg("amount: {min: 1000}", amount="1,000"),
    arg("amount: {min: 1000}", amount=" 1e3 "),
    arg("amount: {min: 1000}", amount="1_000"),
    arg("amount: {min: 1000}", amount="٢٠٠٠"),
    arg("amount: {min: 1000}", amount="9" * 400),
    arg("amount: {max: 10}", amount="NaN"),
    arg("amount: {equals: 5}", amount="5.0"),
    arg("amount: {in: [5]}", amount=["5"]),
    arg("sure: true", sure="Yes"),
    arg("sure: true", sure=1.0),
    arg("sure: false", sure="0"),
    arg("sure: false", sure=[False]),
    arg("'$.a[*].b': {any: x}", a=[{"b": "y"}, {"b": "X"}]),
    arg("'$.a[*].b': {all: x}", a=[{"b": "x"}, {"b": "X"}]),
    arg("'$.a[*].b': {any: {not: x}}", a=[{"b": "X"}]),
]
"""A tool may well read them as what the rule is about."""


@pytest.mark.parametrize(("match", "tool", "arguments", "around"), DOUBTS, ids=[str(d[::2])[:70] for d in DOUBTS])
def test_writing_a_value_otherwise_gets_around_no_stricter_rule_and_into_no_allow(
    match: str, tool: Written, arguments: Written, around: Written
) -> None:
    call = Call(a_tool(**tool), arguments)
    for stricter in ("deny", "ask"):
        refused = judged(a_policy(f"match: {match}, decide: {stricter}", "match: {}, decide: allow"), call, facts())
        assert isinstance(refused, Deny)
        assert "not written as the rule compares it" in refused.reason
    condition = match.replace("{not:", "{present: true, not:")
    allowing = a_policy(f"match: {condition if '[*]' not in match else match}, decide: allow")
    assert isinstance(judged(allowing, call, facts()), Ask)


def test_among_several_values_a_sure_one_settles_what_another_leaves_open() -> None:
    """A yes for any, a no for all."""
    items = {"a": [{"b": "X"}, {"b": "x"}, {"b": "y"}]}
    for written, fitting in (("any: x", Fit.YES), ("all: x", Fit.NO), ("any: z", Fit.NO)):
        [rule] = a_policy(f"match: {{args: {{'$.a[*].b': {{{written}}}}}}}, decide: deny").rules
        assert fit(rule.match, Call(a_tool(), items), facts()) is fitting


LACKING = [
    ("$.a[*].b", {"a": [{"b": "x"}, {}]}),
    ("$.a[0,1].b", {"a": [{"b": "x"}, {}]}),
    ("$['a','c'].b", {"a": {"b": "x"}, "c": {}}),
    ("$..c.b", {"a": {"c": {"b": "x"}}, "c": {}}),
    ("$.a[*].b[0]", {"a": [{"b": ["x"]}, {"b": []}]}),
    ("$.a[*].b[-1]", {"a": [{"b": ["x"]}, {"b": []}]}),
    ("$.a[*][1]", {"a": [["y", "x"], ["y"]]}),
]


@pytest.mark.parametrize(("path", "arguments"), LACKING)
def test_of_several_things_of_which_one_does_not_go_on_all_are_in_doubt(path: str, arguments: Written) -> None:
    """Rule 9: however a path takes several."""
    call = Call(a_tool(), arguments)
    for condition, fitting in (("all: x", Fit.UNKNOWN), ("any: x", Fit.YES), ("any: y", Fit.NO)):
        [rule] = a_policy(f'match: {{args: {{"{path}": {{{condition}}}}}}}, decide: deny').rules
        assert fit(rule.match, call, facts()) is fitting, condition


COMMANDS = [
    ("* list*", "m365 teams team list", Fit.YES),
    ("* list", "M365  Teams team LIST --output json", Fit.YES),
    ("* LIST", "m365 teams team list", Fit.YES),
    ("m365 * remove", 'm365 teams "team remove" --id 1', Fit.YES),
    ("* team remove", 'm365 teams "team  remove" --id 1', Fit.YES),
    ("* list", "m365 teams team get --id list", Fit.UNKNOWN),
    ("* export", "m365 --debug team export", Fit.UNKNOWN),
    ("m365 team export*", "m365 --output json --debug team exports all", Fit.UNKNOWN),
    ("m365 team export", "m365 -a 1 -b 2 -c 3 -d 4 -e 5 -f 6 -g 7 team export", Fit.NO),
    ("m365 export", "m365 team export --id 7", Fit.NO),
    ("* remove", "m365 team get --method=DELETE", Fit.NO),
    ("* remove", "m365 teams team REMOVE --id 1", Fit.YES),
    ("* remove", "m365 teams ｔｅａｍ ｒｅｍｏｖｅ", Fit.YES),
    ("* remove", "m365 teams team rеmove", Fit.UNKNOWN),
    ("* ｒemove", "m365 team remove", Fit.YES),
    ("list*", "m365 teams team list", Fit.NO),
    ("* list", "m365 spo list --debug remove", Fit.UNKNOWN),
    ("* remove", "m365 spo list --debug remove", Fit.UNKNOWN),
    ("* list*", "m365 spo list --debug remove", Fit.YES),
    ("* list*", "m365 teams team list; rm -rf /", Fit.UNKNOWN),
    ("* list*", "m365 teams team 'list", Fit.UNKNOWN),
    ("* list*", "bash list", Fit.UNKNOWN),
    ("* list*", ["m365 list"], Fit.UNKNOWN),
]


@pytest.mark.parametrize(("pattern", "command", "fitting"), COMMANDS)
def test_a_command_is_matched_by_its_words(pattern: str, command: Any, fitting: Fit) -> None:
    assert fit(Match(command=pattern), a_command(command), facts()) is fitting


def test_a_command_that_cannot_be_read_gets_around_no_stricter_rule_and_is_no_subject_of_an_allowing_one() -> None:
    hidden = a_command("m365 team remove --id 1 && true")
    denies = "match: {command: '* remove*'}, decide: deny"
    refused = judged(a_policy(denies, "match: {}, decide: allow"), hidden, facts())
    assert isinstance(refused, Deny)
    assert "What the command does" in refused.reason
    assert isinstance(judged(a_policy("match: {command: '*'}, decide: allow"), hidden, facts()), Ask)


def test_a_group_that_could_not_be_found_out_never_allows() -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}'}}, decide: allow", "match: {}, decide: ask")
    for groups in ({}, {GROUP: None}):
        assert judged(policy, a_call(), facts(groups=groups)) == Ask(rule="r2")


@pytest.mark.parametrize("stricter", ["deny", "ask"])
def test_a_stricter_rule_that_hangs_on_an_unknown_group_refuses(stricter: str) -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}'}}, decide: {stricter}", "match: {}, decide: allow")
    verdict = judged(policy, a_call(), facts(groups={GROUP: None}))
    assert verdict == Deny(
        rule="r1",
        reason=f"Whether the requester is in {GROUP} could not be found out, and the rule “r1” depends on it.",
    )
    assert judged(policy, a_call(), facts(groups={GROUP: False})) == Allow(rule="r2")


def test_an_unknown_group_does_not_matter_where_the_rule_is_about_something_else() -> None:
    policy = a_policy(f"match: {{requester: '{GROUP}', tool: other}}, decide: deny", "match: {}, decide: allow")
    assert judged(policy, a_call(), facts()) == Allow(rule="r2")


def test_arguments_nested_beyond_all_measure_are_judged_too() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    shallow = a_policy("match: {args: {a: [[1]]}}, decide: allow")
    assert isinstance(judged(shallow, a_call(a=deep), facts()), Ask)
    anywhere = a_policy("match: {args: {'$..id': {any: 7}}}, decide: deny", "match: {}, decide: allow")
    refused = judged(anywhere, a_call(a=deep), facts())
    assert isinstance(refused, Deny)
    assert "What $..id holds" in refused.reason


DEFAULTS = {
    "type": "object",
    "properties": {
        "calendar_id": {"type": "string", "default": "primary"},
        "event": {"$ref": "#/$defs/Event"},
        "guests": {"type": "array", "items": {"properties": {"role": {"default": "organizer"}}}},
    },
    "$defs": {
        "Event": {"properties": {"public": {"type": "boolean", "default": True}, "next": {"$ref": "#/$defs/Event"}}}
    },
}


@pytest.mark.parametrize(
    ("written", "leaving_it_out", "saying_otherwise"),
    [
        ("calendar_id: primary", {}, {"calendar_id": "team"}),
        ("'$.event.public': true", {"event": {}}, {"event": {"public": False}}),
        ("'$.event.next.public': true", {"event": {"next": {}}}, {"event": {"next": {"public": False}}}),
        ("'$.guests[*].role': {any: organizer}", {"guests": [{}]}, {"guests": [{"role": "guest"}]}),
    ],
)
def test_leaving_out_what_has_a_default_does_not_get_a_call_around_a_rule(
    written: str, leaving_it_out: Written, saying_otherwise: Written
) -> None:
    tool = replace(a_tool(), input_schema=DEFAULTS)
    policy = a_policy(f"match: {{args: {{{written}}}}}, decide: deny, reason: No.")
    assert isinstance(judged(policy, Call(tool, leaving_it_out), facts()), Deny)
    assert isinstance(judged(policy, Call(tool, saying_otherwise), facts()), Ask)


OPTIONAL = {
    "type": "object",
    "properties": {
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5000},
        "event": {"anyOf": [{"$ref": "#/$defs/Event"}, {"type": "null"}], "default": None},
        "both": {"allOf": [{"$ref": "#/$defs/Event"}, {"properties": {"loud": {"default": True}}}]},
        "either": {"oneOf": [{"$ref": "#/$defs/Event"}, {"properties": {"public": {"default": False}}}]},
        "inner": {"anyOf": [{"type": "boolean", "default": True}, {"type": "null"}]},
        "pair": {"type": "array", "prefixItems": [{}, {"$ref": "#/$defs/Event"}]},
        "named": {"additionalProperties": {"$ref": "#/$defs/Event"}},
        "escaped": {"$ref": "#/$defs/a~1b%20c"},
        "model": {"$ref": "#/$defs/Event", "default": {}},
    },
    "$defs": {
        "Event": {"type": "object", "properties": {"public": {"type": "boolean", "default": True}}},
        "a/b c": {"properties": {"public": {"default": True}}},
    },
}
"""What FastMCP makes of `Optional[Model]`, and other ways to say the same."""


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("limit: {min: 1000}", {}),
        ("limit: {min: 1000}", {"limit": None}),
        ("limit: 5000", {"limit": None}),
        ("limit: null", {"limit": None}),
        ("'$.event.public': true", {"event": {}}),
        ("'$.event.public': true", {"event": {"public": None}}),
        ("event: null", {}),
        ("event: null", {"event": None}),
        ("event: {present: false}", {}),
        ("event: {present: false}", {"event": None}),
        ("'$.both.public': true", {"both": {}}),
        ("'$.both.loud': true", {"both": {}}),
        ("'$.either.public': true", {"either": {}}),
        ("'$.either.public': false", {"either": {}}),
        ("inner: true", {}),
        ("'$.pair[1].public': true", {"pair": [1, {}]}),
        ("'$.named.x.public': true", {"named": {"x": {}}}),
        ("'$.escaped.public': true", {"escaped": {}}),
        ("'$.model.public': true", {}),
        ("'$..public': {any: true}", {"event": {}}),
    ],
)
def test_a_default_counts_wherever_a_schema_says_it_and_where_null_is_given(written: str, arguments: Written) -> None:
    """Rule 9: what a tool fills in is what a rule is about, whether the model leaves it out or says `null`."""
    call = Call(a_tool(schema=OPTIONAL), arguments)
    policy = a_policy(f"match: {{args: {{{written}}}}}, decide: deny, reason: No.", "match: {}, decide: allow")
    assert isinstance(judged(policy, call, facts()), Deny)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("limit: {min: 1000}", {"limit": 5}),
        ("event: {present: true}", {}),
        ("event: {present: true}", {"event": None}),
        ("'$.event.public': true", {}),
        ("'$.event.public': true", {"event": None}),
        ("'$.event.public': true", {"event": {"public": False}}),
        ("'$.both.public': true", {"both": {"public": False}}),
        ("inner: true", {"inner": False}),
    ],
)
def test_what_is_said_goes_before_a_default_and_null_as_a_default_is_nothing(written: str, arguments: Written) -> None:
    call = Call(a_tool(schema=OPTIONAL), arguments)
    policy = a_policy(f"match: {{args: {{{written}}}}}, decide: deny, reason: No.", "match: {}, decide: allow")
    assert isinstance(judged(policy, call, facts()), Allow)


def test_filling_in_ends_whatever_the_schema() -> None:
    """Rule 13: forty levels that each name the next one twice are a million million schemas, or forty. Of a schema that
    is too large to look at, nothing is known."""
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    deep = {
        "properties": {"a": {"$ref": "#/$defs/l0"}},
        "$defs": {**levels, "l40": {"properties": {"b": {"default": 1}}}},
    }
    rules = a_policy("match: {args: {'$.a.b': 1}}, decide: deny, reason: No.", "match: {}, decide: allow")
    assert judged(rules, a_call(a_tool(schema=deep), a={}), facts()) == Deny(rule="r1", reason="No.")
    wide = {"properties": {"a": {"anyOf": [{"properties": {"c": {"default": n}}} for n in range(9_000)]}}}
    assert isinstance(judged(rules, a_call(a_tool(schema=wide), a={}), facts()), Deny)


@pytest.mark.parametrize("reference", ["#/$defs/Loop", "https://elsewhere.example/schema", "#/nowhere/at/all", 7])
def test_what_a_schema_that_leads_nowhere_fills_in_is_not_known(reference: Any) -> None:
    """Rule 9: a default that was not found may be the very value that a rule is about."""
    schema = {"properties": {"a": {"$ref": reference}}, "$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}
    tool = replace(a_tool(), input_schema=schema)
    [rule] = a_policy("match: {args: {'$.a.b': 1}}, decide: deny").rules
    assert fit(rule.match, a_call(tool, a={}), facts()) is (Fit.NO if reference == "#/$defs/Loop" else Fit.UNKNOWN)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_a_json_value_equals_itself_unless_it_is_not_a_number(value: Any) -> None:
    assert same_json(value, value) or "nan" in repr(value)


NAMED = "teams:t1:ana"


def test_a_rule_about_somebody_is_about_each_account_of_theirs() -> None:
    """Rule 9: what could not be found out permits nothing."""
    for others in (0, 4):  # so many rules are looked up in an index
        rules = [f"match: {{requester: '{NAMED}{number}'}}, decide: deny" for number in range(others)]
        policy = a_policy(*rules, f"match: {{requester: '{NAMED}'}}, decide: deny", "match: {}, decide: allow")
        for groups, verdict in (
            ({}, Allow),
            ({NAMED: False}, Allow),
            ({NAMED: True}, Deny),
            ({NAMED: None}, Deny),
        ):
            assert isinstance(judge(policy, a_call(), facts(groups=groups)), verdict), groups
    allowing = a_policy(f"match: {{requester: '{NAMED}'}}, decide: allow")
    assert isinstance(judge(allowing, a_call(), facts(groups={NAMED: None})), Ask)
    refused = judge(a_policy(f"match: {{requester: '{NAMED}'}}, decide: deny"), a_call(), facts(groups={NAMED: None}))
    assert f"Whether the requester is {NAMED} could not be found out" in getattr(refused, "reason", "")
