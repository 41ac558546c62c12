"""Forms for any schema, arguments and entries: nothing is raised, and what was not touched is not changed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.forms.editing import edit_fields, read_answers, read_form
from bot.forms.values import FormErrors, parse_date_time
from graph.interrupts import FieldType, FormField

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["a", "b", "it", "", "x" * 101])
formats = st.sampled_from(["date", "time", "date-time", "email", "regex", "uri", "nonsense"])
keywords = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", 5, ["string"]]),
        "format": formats,
        "enum": st.lists(json_values, max_size=3),
        "const": json_values,
        "default": json_values,
        "maxLength": st.integers() | st.text(max_size=2),
        "description": json_values,
        "$ref": st.sampled_from(["#/$defs/A", "#", "#/properties/a", "http://127.0.0.1:9/x", "%"]),
        "pattern": st.sampled_from(["^a", "("]),
    },
)
properties = st.recursive(
    keywords | st.booleans() | json_values,
    lambda inner: st.builds(
        lambda base, key, parts: {**base, key: parts},
        keywords,
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=4,
)
schemas = st.one_of(
    st.builds(
        lambda props, needed, a: {"type": "object", "properties": props, "required": needed, "$defs": {"A": a}},
        st.dictionaries(names, properties, max_size=3),
        st.lists(names, max_size=2),
        properties,
    ),
    st.dictionaries(st.sampled_from(["properties", "required", "type", "$ref", "$schema"]), json_values, max_size=3),
)
entries = json_values | st.sampled_from(
    ["2026-11-21", "2026-11-21T09:00", "09:00", "5", "1.5", "yes", '["a"]', "[" * 3000]
)
editables = st.none() | st.lists(names, max_size=3)


@given(schemas, st.dictionaries(names, json_values, max_size=3), editables)
def test_any_schema_can_be_drawn(of: Any, arguments: dict[str, Any], editable: list[str] | None) -> None:
    fields, values = edit_fields(of, arguments, editable)
    assert {field.name for field in fields} >= set(values)


@given(schemas, st.dictionaries(names, json_values, max_size=3), editables, st.dictionaries(names, entries, max_size=3))
def test_any_form_can_be_read(of: Any, arguments: Any, editable: list[str] | None, values: dict[str, Any]) -> None:
    read = read_form(of, arguments, editable, values)
    assert isinstance(read, dict | FormErrors)
    if isinstance(read, dict) and editable is not None:
        kept = {name: value for name, value in arguments.items() if name not in editable}
        assert all(name in read and (read[name] is value) for name, value in kept.items())


@given(schemas, st.dictionaries(names, json_values, max_size=3), editables)
def test_a_form_sent_back_as_it_was_changes_nothing(of: Any, arguments: Any, editable: list[str] | None) -> None:
    _, shown = edit_fields(of, arguments, editable)
    read = read_form(of, arguments, editable, shown)
    if isinstance(read, dict):
        assert {name: read[name] for name in arguments} == arguments
        assert set(read) - set(arguments) <= set(shown)


asked = st.builds(
    FormField,
    name=st.sampled_from(["a", "b", "it"]),
    type=st.sampled_from(FieldType),
    required=st.booleans(),
    options=st.lists(st.text(max_size=3), max_size=2).map(tuple),
)


@given(st.lists(asked, max_size=3), st.dictionaries(names, entries, max_size=3))
def test_any_answer_can_be_read(fields: list[FormField], values: dict[str, Any]) -> None:
    assert isinstance(read_answers(fields, values), dict | FormErrors)


@given(st.datetimes())
def test_every_date_and_time_is_read_as_it_was_written(moment: Any) -> None:
    assert str(parse_date_time(moment.isoformat())) == moment.isoformat()
