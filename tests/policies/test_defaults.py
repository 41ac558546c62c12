"""Rule 9 and rule 13: what a call leaves out has the default of its schema, at a cost that is bounded; beyond it, it is
not known what the tool will take."""

from __future__ import annotations

import time
from typing import Any

import pytest

from policies.defaults import MOST_ENTRIES, with_defaults
from policies.judging import judge
from policies.model import Allow, Ask, Deny
from tests.policies.builders import a_call, a_policy, a_tool, facts

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
    began = time.process_time()
    judge(rules, a_call(a_tool(schema=schema), items=items), facts())
    assert time.process_time() - began < 0.5  # it took minutes; 50 ms on a machine of its own


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
