"""Rule 9 and rule 13: what a call leaves out has the default of its schema, at a cost that is bounded; beyond it, it is
not known what the tool will take."""

from __future__ import annotations

from typing import Any

import pytest

from policies.defaults import MOST_ENTRIES, with_defaults
from policies.judging import judge
from policies.model import Allow, Ask, Deny
from tests.policies.builders import a_call, a_policy, a_tool, facts
from tests.support.cpu import at_most_cpu

Json = dict[str, Any]

MANY = {"type": "object", "properties": {f"p{n}": {"type": "integer", "default": n} for n in range(2_500)}}
BRANCHED = {"properties": {f"p{n}": {"anyOf": [{"default": n}, {"properties": {"a": {}}}]} for n in range(1_500)}}
PATTERNS = {"patternProperties": {f"p{n}": {"properties": {"x": {"default": 1}}} for n in range(2_500)}}
JOINED = {"allOf": [{"properties": {f"p{n}": {"default": n} for n in range(50)}} for _ in range(1_000)]}
TREE = {"properties": {name: {"$ref": "#/properties/items/items", "default": {}} for name in "ab"}}


@pytest.mark.parametrize("item", [MANY, BRANCHED, PATTERNS, JOINED, TREE])
@pytest.mark.parametrize("items", [[{} for _ in range(4_000)], [{f"k{n}": {} for n in range(4_000)}]])
def test_filling_in_is_bounded(item: Json, items: list[Json]) -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": item}}}
    rules = a_policy('match: {args: {"$.items[*].force": {any: true}}}, decide: deny', "match: {}, decide: allow")
    with at_most_cpu(0.5):  # minutes before, now 40 ms at most
        judge(rules, a_call(a_tool(schema=schema), items=items), facts())


def test_as_many_values_as_a_model_may_send_are_filled_in() -> None:
    schema = {"properties": {"items": {"items": {"properties": {"x": {}, "force": {"default": True}}}}}}
    items = with_defaults(schema, {"items": [{"x": 1} for _ in range(5_000)]})["items"]
    assert items[-1] == {"x": 1, "force": True}


def test_beyond_the_budget_a_stricter_rule_refuses_and_an_allow_is_passed_over() -> None:
    schema = {"properties": {"items": {"items": MANY}}}
    rules = a_policy('match: {args: {"$.items[*].p1": {any: 1}}}, decide: allow')
    few, many = ({"items": [{} for _ in range(n)]} for n in (2, MOST_ENTRIES // 2_500 + 1))
    assert isinstance(judge(rules, a_call(a_tool(schema=schema), **few), facts()), Allow)
    assert isinstance(judge(rules, a_call(a_tool(schema=schema), **many), facts()), Ask)
    stricter = a_policy('match: {args: {"$.items[*].force": {any: true}}}, decide: deny', "match: {}, decide: allow")
    assert isinstance(judge(stricter, a_call(a_tool(schema=schema), **few), facts()), Allow)
    assert isinstance(judge(stricter, a_call(a_tool(schema=schema), **many), facts()), Deny)


OPTIONS = {"type": "object", "properties": {"force": {"type": "boolean", "default": True}, "note": {"type": "string"}}}
LEFT_OUT: list[Json] = [
    OPTIONS,
    {"$ref": "#/$defs/Options"},
    {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}]},
    {"allOf": [{"$ref": "#/$defs/Options"}], "description": "x"},
]


@pytest.mark.parametrize("options", LEFT_OUT)
def test_an_object_that_is_left_out_may_be_made_with_the_defaults_within_it(options: Json) -> None:
    """Rule 9: Pydantic's `default_factory` makes it, and is in no schema."""
    tool = a_tool(schema={"$defs": {"Options": OPTIONS}, "properties": {"options": options}})
    call = a_call(tool)
    for path, condition in (("$.options.force", "true"), ("$..force", "{any: true}"), ("$.options.*", "{any: true}")):
        rules = a_policy(f'match: {{args: {{"{path}": {condition}}}}}, decide: deny', "match: {}, decide: allow")
        assert isinstance(judge(rules, call, facts()), Deny), path
        allowing = a_policy(f'match: {{args: {{"{path}": {condition}}}}}, decide: allow')
        assert isinstance(judge(allowing, call, facts()), Ask), path


def test_so_may_one_in_an_object_that_is_given() -> None:
    spec = {"type": "object", "properties": {"options": OPTIONS}}
    tool = a_tool(schema={"properties": {"spec": spec, "specs": {"type": "array", "items": spec}}})
    one, several = (
        a_policy(f'match: {{args: {{"{path}": {condition}}}}}, decide: deny', "match: {}, decide: allow")
        for path, condition in (("$.spec.options.force", "true"), ("$.specs[*].options.force", "{any: true}"))
    )
    assert isinstance(judge(one, a_call(tool, spec={}), facts()), Deny)
    assert isinstance(judge(one, a_call(tool, spec={"options": {"force": False}}), facts()), Allow)
    assert isinstance(judge(several, a_call(tool, specs=[{"options": {"force": False}}, {}]), facts()), Deny)
    assert isinstance(judge(several, a_call(tool, specs=[]), facts()), Allow)


@pytest.mark.parametrize(
    "condition",
    [
        '"$.options.force": false',
        '"$.options.note": x',
        '"$..amount": {any: {min: 1}}',
        '"$..note": {any: x}',
        "options: {present: true}",
        '"$.options": {present: true}',
    ],
)
def test_of_what_the_defaults_do_not_say_nothing_is_in_doubt(condition: str) -> None:
    tool = a_tool(schema={"properties": {"options": OPTIONS, "amount": {"type": "integer"}}})
    rules = a_policy(f"match: {{args: {{{condition}}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(tool), facts()), Allow)


def test_an_object_whose_default_is_null_is_not_made() -> None:
    optional = {"anyOf": [OPTIONS, {"type": "null"}], "default": None}
    rules = a_policy('match: {args: {"$.options.force": true}}, decide: deny', "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(a_tool(schema={"properties": {"options": optional}})), facts()), Allow)


def test_what_holds_itself_is_made_once() -> None:
    node = {
        "type": "object",
        "properties": {"op": {"default": "and"}, **{name: {"$ref": "#/$defs/N"} for name in "abcd"}},
    }
    tool = a_tool(schema={"$defs": {"N": node}, "properties": {"filter": {"$ref": "#/$defs/N"}, "x": {}}})
    rules = a_policy('match: {args: {"$..x": {any: 1}}}, decide: deny', "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(tool), facts()), Allow)
    assert isinstance(judge(rules, a_call(tool, filter={"a": {"b": {}}}), facts()), Allow)


FILTERS: list[Json] = [
    OPTIONS,
    {"type": "object", "properties": {"name": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}},
    {"anyOf": [OPTIONS, {"type": "object", "additionalProperties": {"type": "string"}}]},
    {"type": "object", "properties": {"options": OPTIONS}},
]


@pytest.mark.parametrize(
    "condition", ["{equals: {}}", "{in: [{}, {all: true}]}", "null", "{equals: {}, present: true}"]
)
@pytest.mark.parametrize("schema", FILTERS)
def test_an_object_that_is_given_empty_is_the_empty_one_whatever_defaults_it_gets(schema: Json, condition: str) -> None:
    """Rule 9: what deletes everything is often an empty filter, and a rule about it must not be passed because the
    filter has defaults."""
    tool = a_tool(schema={"properties": {"filter": schema}})
    denying = a_policy(f"match: {{args: {{filter: {condition}}}}}, decide: deny", "match: {}, decide: allow")
    allowing = a_policy(f"match: {{args: {{filter: {{present: true, not: {condition}}}}}}}, decide: allow")
    assert isinstance(judge(denying, a_call(tool, filter={}), facts()), Deny)
    assert isinstance(judge(allowing, a_call(tool, filter={}), facts()), Ask)
    assert isinstance(judge(denying, a_call(tool, filter={"note": "x"}), facts()), Allow)


@pytest.mark.parametrize("given", [{"force": True}, {"note": None}, {"force": None, "note": None}, {"inner": {}}])
def test_so_may_one_be_that_gives_nothing_but_defaults_and_null(given: Json) -> None:
    schema = {**OPTIONS, "properties": {**OPTIONS["properties"], "inner": OPTIONS}}
    tool = a_tool(schema={"properties": {"filter": schema, "filters": {"type": "array", "items": schema}}})
    for arguments, condition in (
        ({"filter": given}, "filter: {equals: {}}"),
        ({"filters": [given]}, "filters: {equals: [{}]}"),
        ({"filters": [given]}, '"$.filters[*]": {any: {equals: {}}}'),
        ({"filters": [given]}, '"$.filters[0]": {equals: {}}'),
    ):
        rules = a_policy(f"match: {{args: {{{condition}}}}}, decide: deny", "match: {}, decide: allow")
        assert isinstance(judge(rules, a_call(tool, **arguments), facts()), Deny), condition


UNION = {"anyOf": [OPTIONS, {"type": "object", "properties": {"name": {"type": "string"}}}]}
NESTED = {"type": "object", "properties": {"inner": OPTIONS}}


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (UNION, {"force": True}),
        (NESTED, {"inner": {"force": None}}),
        (NESTED, {"inner": {"force": True}}),
        ({}, {"where": {}}),
        ({}, {"where": {"name": None}}),
    ],
)
def test_so_may_one_be_that_gives_perhaps_a_default_or_something_empty(schema: Json, given: Json) -> None:
    tool = a_tool(schema={"properties": {"filter": schema}})
    rules = a_policy("match: {args: {filter: {equals: {}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(tool, filter=given), facts()), Deny)
    assert isinstance(judge(rules, a_call(tool, filter={**given, "name": "x"}), facts()), Allow)
    deep: Json = {}
    for _ in range(5_000):
        deep = {"a": deep}
    assert isinstance(judge(rules, a_call(tool, filter={**given, "deep": deep}), facts()), Deny)
