"""Rule 13: a schema that a tool server wrote does not hold the event loop, whether a call is checked against it, or an
edit, or an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.sessions import complaint_about
from bot.forms.editing import edit_fields, read_elicited, read_form
from bot.forms.inputs import MOST_INPUTS
from bot.forms.values import FormErrors
from bot.schemas.measuring import MOST_SUBSCHEMAS, problem_of
from bot.schemas.validating import TooMuchError, UncheckableError, errors_in
from graph.interrupts import FieldType, FormField
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples

SECONDS = 0.5
"""Of CPU, ten times of what the limit is: a busy machine is no mistake, and what is hostile takes for ever."""

BOMB = {
    "type": "object",
    "$defs": {
        "d0": {"type": "integer"},
        **{f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2} for level in range(1, 29)},
    },
    "properties": {"a": {"$ref": "#/$defs/d28"}},
}
"""2²⁹ subschemas in two kilobytes."""


def members(count: int, what: Any) -> dict[str, Any]:
    return {f"m{number}": what for number in range(count)}


def nested(depth: int, inner: Any = 1) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


HOSTILE: list[tuple[str, dict[str, Any], Any]] = [
    ("a pattern that backtracks", {"pattern": "^([a-z]+)+$"}, "a" * 40 + "!"),
    ("a pattern over a long text", {"pattern": "(x+x+)+y"}, "x" * 100_000),
    ("a pattern that is large in RE2", {"items": {"pattern": "(.*a.{200})"}}, ["ab" * 50] * 20_000),
    ("a pattern in a dialect of its own", {"allOf": [{"$schema": jsonschema.Draft7Validator.META_SCHEMA["$id"]}, {}],
     "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^([a-z]+)+$"}}},
     {"a": "a" * 40 + "!"}),
    ("patterns that are too large", {"allOf": [{"pattern": rf"\pL{{50}}|{each}"} for each in range(1_100)]}, "a"),
    ("patterns of many classes", {"allOf": [{"pattern": r"\pL" * 300 + f"{each}"} for each in range(60)]}, "a"),
    ("patterns that RE2 does not know",
     {"allOf": [{"pattern": rf"(?i)[\x{{0}}-\x{{10ffff}}](?={each})"} for each in range(1_100)]}, "a"),
    ("patterns of names", {"patternProperties": {"^([a-z]+)+$": {}}}, {"a" * 40 + "!": 1}),
    ("patterns of other names", {"patternProperties": {"^([a-z]+)+$": {}}, "additionalProperties": False},
     {"a" * 40 + "!": 1}),
    ("references that double", BOMB["$defs"] and {"$defs": BOMB["$defs"], "$ref": "#/$defs/d28"}, 1),
    ("references that double at each level of the value",
     {"$defs": {"d0": {}, **{f"d{n}": {"allOf": [{"properties": {"a": {"$ref": f"#/$defs/d{n - 1}"}}}] * 2}
                             for n in range(1, 30)}}, "$ref": "#/$defs/d29"},
     json.loads('{"a":' * 28 + "1" + "}" * 28)),
    ("a reference to itself", {"$ref": "#"}, 1),
    ("alternatives that repeat the value", {"anyOf": [{"type": "string"}] * 3_000}, list(range(100_000))),
    ("a choice of one", {"oneOf": [{}] * 3_000}, list(range(100_000))),
    ("not, again and again", {"not": {"not": {"not": {"type": "array"}}}}, list(range(100_000))),
    ("unique objects", {"uniqueItems": True}, [{"a": number} for number in range(20_000)]),
    ("unique lists", {"uniqueItems": True}, [[number, "a"] for number in range(20_000)]),
    ("many options", {"items": {"enum": list(range(10_000))}}, [-1] * 10_000),
    ("long options", {"items": {"enum": [[*([1] * 1_000), option] for option in range(15)]}}, [[1] * 1_001] * 300),
    ("something contained", {"contains": {"type": "string"}, "minContains": 2}, list(range(500_000))),
    ("items of any kind", {"items": {}}, list(range(2_000_000))),
    ("many members", {"items": {"properties": members(5_000, {})}}, [{}] * 10_000),
    ("many needed members", {"items": {"required": [f"m{n}" for n in range(5_000)]}}, [{}] * 10_000),
    ("keywords that nobody knows", {"items": members(5_000, 1)}, [1] * 20_000),
    ("long identifiers", {"$id": "http://a/", "items": {"$id": "x" * 60_000, "type": "integer"}}, [1] * 10_000),
    ("unevaluated members", {"allOf": [{"patternProperties": {"^(a|b|ab)*c$": {}}}] * 50,
                             "unevaluatedProperties": False}, {"ab" * 16 + "!": 1}),
    ("anchors", {"$defs": members(3_000, {"$anchor": "x"}), "items": {"$ref": "#nowhere"}}, [1] * 3_000),
    ("a dynamic reference", {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}, nested(200)),
    ("large numbers", {"items": {"multipleOf": 7**4_000, "minimum": 10**4_200}}, [10**4_200 - 1] * 250),
    ("small divisors", {"items": {"multipleOf": 1e-300}}, [10**4_000] * 250),
    ("a deep value", {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, nested(900)),
]  # fmt: skip


@pytest.fixture(params=HOSTILE, ids=[name for name, _, _ in HOSTILE])
def hostile(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any]:
    _, schema, value = request.param
    about = {key: part for key, part in schema.items() if key in ("$defs", "$id")}
    return {"type": "object", **about, "properties": {"it": schema | {"$id": ""}, "other": {}}}, value


def quick(work: Callable[[], Any]) -> Any:
    """What the work gives, within a bounded time."""
    with at_most_cpu(SECONDS):
        return work()


@pytest.mark.timeout(30)
def test_a_call_is_checked_within_a_bounded_time(hostile: tuple[dict[str, Any], Any]) -> None:
    """Rule 13."""
    schema, value = hostile
    said = quick(lambda: complaint_about({"it": value}, schema))
    assert said is None or len(said) < 2_000


@pytest.mark.timeout(30)
def test_an_edit_is_drawn_and_checked_within_a_bounded_time(hostile: tuple[dict[str, Any], Any]) -> None:
    """Rule 13, also for a call that was asked about before its server's schemas were measured."""
    schema, value = hostile
    quick(lambda: edit_fields(schema, {"it": value, "other": "a"}, None))
    quick(lambda: read_form(schema, {"it": value, "other": "a"}, None, {"other": "b"}))


@pytest.mark.timeout(30)
def test_an_answer_is_checked_within_a_bounded_time(hostile: tuple[dict[str, Any], Any]) -> None:
    """Rule 13, also for a question that was kept from before a restart."""
    schema, _ = hostile
    fields = [FormField(name="it", type=FieldType.TEXT)]
    quick(lambda: read_elicited(fields, schema, {"it": "a" * 40 + "!"}))


def test_what_is_too_large_to_be_checked_is_not_called() -> None:
    """Rule 13: nothing goes unchecked because it is large."""
    said = complaint_about({"it": [{"a": 1}] * 20_000}, {"properties": {"it": {"items": {"required": ["a"]}}}})
    assert said == "they are too large to be checked against it; do it in smaller parts"


def test_an_edit_that_is_too_large_to_be_checked_is_refused() -> None:
    schema = {"properties": {"it": {"items": {"required": ["a"]}}, "other": {}}}
    read = read_form(schema, {"it": [{"a": 1}] * 3_500, "other": "a"}, None, {"other": "b"})
    assert isinstance(read, FormErrors)
    assert "too large to check" in read.errors[""]


def test_steps_are_counted_and_not_time() -> None:
    schema = {"items": {"type": "integer"}}
    assert errors_in(schema, [1] * 10, formats={}, most=1, steps=20) == []
    with pytest.raises(TooMuchError):
        errors_in(schema, [1] * 30, formats={}, most=1, steps=20)


def test_dozens_of_patterns_can_be_checked() -> None:
    """Of each, compiling counts once."""
    kinds = (r"^[a-z]{{1,20}}{}$", r"^\d{{4}}-\d{{2}}-\d{{2}}{}$", r"^[\w+=,.@-]{{1,64}}{}$", r"^(?=.)x{}", r"^\pL+{}$")
    patterns = [kind.format(number) for number in range(7) for kind in kinds]
    schema = {"items": {"anyOf": [{"pattern": pattern} for pattern in patterns]}}
    assert errors_in(schema, ["x0"] * 50, formats={}, most=1) == []


def test_hundreds_of_rows_can_be_checked() -> None:
    row = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
    assert errors_in({"items": row}, [{"a": "x", "b": 1}] * 700, formats={}, most=1) == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
        r"^(a)\1$",
        "(",
        "a{1000}{1000}",
    ],
)
def test_a_pattern_that_re2_does_not_know_is_left_to_the_server(pattern: str) -> None:
    """zod writes the first one for every e-mail address: it must not withhold the tool."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    assert problem_of(schema) is None
    assert complaint_about({"a": "x"}, schema) is None
    assert read_form(schema, {"a": "x"}, None, {"a": "y"}) == {"a": "y"}
    assert complaint_about({"a": 1}, schema) == "\"a\": 1 is not of type 'string'"


@pytest.mark.parametrize(
    "dialect", ["", "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#"]
)
def test_a_pattern_is_searched_for_as_json_schema_says(dialect: str) -> None:
    schema = {"properties": {"a": {"pattern": "b+"}}} | ({"$schema": dialect} if dialect else {})
    assert complaint_about({"a": "abba"}, schema) is None
    assert complaint_about({"a": "aa"}, schema) == "\"a\": 'aa' does not match 'b+'"


def test_names_beside_a_pattern_that_cannot_be_told_are_not_too_many() -> None:
    schema = {"patternProperties": {"^(?=x)": {}, "^y": {"type": "string"}}, "additionalProperties": False}
    assert complaint_about({"anything": 1}, schema) is None
    assert complaint_about({"y": 1}, schema) == "\"y\": 1 is not of type 'string'"


def test_a_schema_that_comes_to_very_much_has_its_figure_told() -> None:
    """Rule 13: what its references come to is counted, however small it is written."""
    problem = problem_of(BOMB)
    assert problem is not None
    assert "comes to" in problem or "levels deep" in problem
    wide = {"$defs": {"a": {"properties": members(200, {})}}, "properties": members(60, {"$ref": "#/$defs/a"})}
    assert (
        problem_of(wide)
        == f"comes to 12,121 subschemas when its references are followed, more than {MOST_SUBSCHEMAS:,}"
    )


def test_a_schema_that_refers_to_itself_without_end_has_a_problem() -> None:
    within = {"$defs": {"a": {"anyOf": [{"properties": {"x": {"$ref": "#/$defs/a"}}}, {"$ref": "#/$defs/b"}]},
                        "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}  # fmt: skip
    assert "without end" in str(problem_of(within))
    assert "without end" in str(problem_of({"properties": {"a": {"$ref": "#/properties/a"}}}))


def test_a_tree_may_be_described_by_what_refers_to_itself() -> None:
    tree = {
        "type": "object",
        "$defs": {
            "block": {
                "anyOf": [{"$ref": "#/$defs/text"}, {"$ref": "#/$defs/group"}],
            },
            "text": {"properties": {"text": {"type": "string"}}, "required": ["text"]},
            "group": {"properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/block"}}}},
        },
        "properties": {"page": {"$ref": "#/$defs/block"}},
    }
    assert problem_of(tree) is None
    assert complaint_about({"page": {"children": [{"text": "a"}, {"children": [{"text": "b"}]}]}}, tree) is None
    assert complaint_about({"page": {"text": 1, "children": [{"children": 1}]}}, tree) is not None


@pytest.mark.parametrize("depth", [70, 2_000, 100_000])
def test_a_schema_may_be_nested_only_so_deep(depth: int) -> None:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    assert problem_of(schema) == "is nested more than 64 levels deep"


def test_a_chain_of_references_may_be_only_so_long() -> None:
    chain = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(3_000)}
    assert problem_of({"$defs": chain, "$ref": "#/$defs/d0"}) == "is nested more than 64 levels deep"


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/schema", "#/$defs/none", "#anchor", "other.json#/a", "#/" + "a/" * 30_000]
)
def test_what_is_referred_to_elsewhere_is_not_looked_up(reference: str) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": reference}}}
    assert problem_of(schema) is None
    with pytest.raises(UncheckableError):
        errors_in(schema, {"a": 1}, formats={}, most=1)


def test_a_number_that_cannot_be_divided_by_is_left_to_the_server() -> None:
    """Rule 10: it ended the turn in an error of ours, and each try of it anew."""
    schema = {"type": "object", "properties": {"a": {"multipleOf": 10**400}}}
    assert problem_of(schema) is None
    assert complaint_about({"a": 1.5}, schema) is None


def test_a_form_has_a_bounded_number_of_inputs_and_what_the_call_has_comes_first() -> None:
    """Rule 13."""
    schema = {"properties": members(5_000, {"type": "string"}), "required": ["m4998"]}
    fields, _ = edit_fields(schema, {"m4999": "a"}, None)
    assert len(fields) == MOST_INPUTS
    assert [field.name for field in fields[-2:]] == ["m4998", "m4999"]


SHARED = {
    "keywords": {**members(5_000, 1), "type": "string"},
    "options": {"enum": [f"o{number}" for number in range(5_000)]},
    "alternatives": {"anyOf": [{"const": number} for number in range(3_000)]},
    "a description": {"type": "string", "description": "x " * 30_000},
    "a default": {"type": "array", "default": list(range(9_000))},
    "a chain": {"$ref": "#/$defs/shared"},
}


@pytest.mark.parametrize("shared", SHARED.values(), ids=SHARED)
def test_what_many_inputs_share_is_not_read_again_for_each(shared: dict[str, Any]) -> None:
    """Rule 13."""
    schema = {"$defs": {"shared": shared}, "properties": members(400, {"$ref": "#/$defs/shared"})}
    quick(lambda: edit_fields(schema, {}, None))
    quick(lambda: read_form(schema, {}, None, members(MOST_INPUTS, "x")))


def test_a_long_list_is_not_written_out_to_find_that_it_is_too_long() -> None:
    """Rule 13."""
    assert quick(lambda: edit_fields({}, {"rows": [1] * 1_000_000, "more": ["a" * 100] * 4_000}, None))[0] == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "$ref", "type"]), inner),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    [
        *("$ref", "$defs", "$schema", "additionalProperties", "allOf", "anyOf", "const", "contains", "dependencies"),
        *("enum", "exclusiveMinimum", "format", "if", "items", "maxLength", "minItems", "multipleOf", "not", "oneOf"),
        *("pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required", "then", "type"),
        "uniqueItems",
    ]
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.booleans()
    | JSON
    | st.fixed_dictionaries({"$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/x"])}),
    lambda inner: st.dictionaries(
        KEYWORDS, inner | st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=examples(50))
@given(SCHEMAS, JSON)
def test_any_schema_and_any_value_get_an_answer(schema: Any, value: Any) -> None:
    """Rule 13: whatever comes, nothing but what is documented is raised."""
    problem = problem_of(schema)
    assert problem is None or problem.isprintable()
    if isinstance(schema, dict):
        complaint_about({"a": value}, schema)
        edit_fields(schema, {"a": value}, None)


PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([{}, True, {"type": "integer"}, {"type": "string"}, {"enum": [1, "a", None]}, {"const": {"a": 1}}])
    | st.sampled_from(
        [{"minimum": 2}, {"multipleOf": 2}, {"uniqueItems": True}, {"pattern": "^a"}, {"required": ["a"]}]
    ),
    lambda inner: (
        st.dictionaries(st.sampled_from(["items", "additionalProperties", "not", "contains", "if", "then"]), inner)
        | st.dictionaries(st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3))
        | st.dictionaries(
            st.sampled_from(["properties", "patternProperties"]), st.dictionaries(st.sampled_from("ab"), inner)
        )
    ),
    max_leaves=10,
)


@settings(max_examples=examples(100))
@given(PLAIN.filter(lambda schema: isinstance(schema, dict)), JSON)
def test_the_verdict_is_that_of_the_library(schema: dict[str, Any], value: Any) -> None:
    """Counting changes no verdict."""
    assert problem_of(schema) is None
    ours = not errors_in(schema, value, formats={}, most=1)
    assert ours == jsonschema.Draft202012Validator(schema).is_valid(value)
