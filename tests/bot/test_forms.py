from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest

from bot.forms.editing import edit_fields, emptied, read_answers, read_form
from bot.forms.values import LONGEST_TEXT, FormErrors
from graph.interrupts import MOST_OFFERED, FieldType, FormField
from policies.values import same_json


def schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
UNSEEN = "é\u200b"


def only_field(property_schema: Any, *value: Any, required: bool = False) -> tuple[FormField, Any]:
    needed = ("it",) if required else ()
    arguments = {"it": value[0]} if value else {}
    [field], values = edit_fields(schema(needed, it=property_schema), arguments, None)
    return field, values.get("it")


def typed(property_schema: Any, entry: Any, *before: Any) -> Any:
    """What becomes of the one argument `it` when `entry` is typed into its input."""
    arguments = {"it": before[0]} if before else {}
    return read_form(schema(it=property_schema), arguments, None, {"it": entry})


# ------------------------------------------------------------------------------------------------ drawing

DRAWN = [
    (TEXT, "hi", FieldType.TEXT, "hi"),
    ({"type": "string", "format": "date"}, "2026-11-21", FieldType.DATE, "2026-11-21"),
    ({"type": "string", "format": "time"}, "09:30:00", FieldType.TIME, "09:30"),
    ({"type": "string", "format": "date-time"}, "2026-11-21T09:30", FieldType.DATE_TIME, "2026-11-21T09:30"),
    ({"type": "string", "format": "date-time"}, "2026-11-21T09:30:00+01:00", FieldType.DATE_TIME, "2026-11-21T09:30"),
    ({"type": "string", "format": "date-time"}, "2026-11-21 09:30:15Z", FieldType.DATE_TIME, "2026-11-21T09:30:15"),
    ({"type": "integer"}, 5, FieldType.INTEGER, 5),
    ({"type": "number"}, 1.5, FieldType.NUMBER, 1.5),
    ({"type": "boolean"}, False, FieldType.YES_NO, False),
    ({"enum": ["a", "b"]}, "b", FieldType.CHOICE, "b"),
    ({"enum": [1, 2, None]}, 2, FieldType.CHOICE, "2"),
    ({"const": "a"}, "a", FieldType.CHOICE, "a"),
    ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "a", FieldType.CHOICE, "a"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 5, FieldType.INTEGER, 5),
    ({"type": ["integer", "null"]}, 5, FieldType.INTEGER, 5),
    (
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "2026-11-21",
        FieldType.DATE,
        "2026-11-21",
    ),
    ({"allOf": [{"$ref": "#/$defs/Colour"}], "default": "red"}, "blue", FieldType.CHOICE, "blue"),
    ({"type": "array", "items": TEXT}, ["a"], FieldType.JSON, '[\n  "a"\n]'),
    ({"type": "object"}, {"ü": 1}, FieldType.JSON, '{\n  "ü": 1\n}'),
    ({"anyOf": [TEXT, {"type": "integer"}]}, "a", FieldType.TEXT, "a"),
    ({"anyOf": [TEXT, {"type": "integer"}]}, 5, FieldType.INTEGER, 5),
    ({}, True, FieldType.YES_NO, True),
    ({}, 1.5, FieldType.NUMBER, 1.5),
    # what is there is not what should be there: it is shown as it is
    ({"type": "string", "format": "date"}, "tomorrow", FieldType.TEXT, "tomorrow"),
    ({"type": "string", "format": "date"}, "2026-02-30", FieldType.TEXT, "2026-02-30"),
    ({"type": "string", "format": "date-time"}, "2026-11-21T25:00", FieldType.TEXT, "2026-11-21T25:00"),
    ({"type": "integer"}, "five", FieldType.TEXT, "five"),
    ({"type": "integer"}, 5.5, FieldType.JSON, "5.5"),
    ({"type": "integer"}, True, FieldType.JSON, "true"),
    ({"enum": ["a"]}, "z", FieldType.TEXT, "z"),
    (TEXT, 5, FieldType.JSON, "5"),
    (TEXT, ["a"], FieldType.JSON, '[\n  "a"\n]'),
]


@pytest.mark.parametrize(("property_schema", "value", "kind", "shown"), DRAWN)
def test_an_argument_is_drawn_as_its_schema_says(property_schema: Any, value: Any, kind: FieldType, shown: Any) -> None:
    whole = schema(it=property_schema) | {"$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}}}
    [field], values = edit_fields(whole, {"it": value}, None)
    assert (field.type, values["it"]) == (kind, shown)


def test_fields_come_in_the_order_of_the_schema_with_readable_labels_and_help() -> None:
    fields, values = edit_fields(
        schema(("title",), title=TEXT, calendar_id={"type": "string", "description": "Which\ncalendar."}),
        {"calendar_id": "primary", "title": "Lunch", "extra": 3},
        None,
    )
    assert [(field.name, field.label, field.help, field.required) for field in fields] == [
        ("title", "Title", "", True),
        ("calendar_id", "Calendar id", "Which calendar.", False),
        ("extra", "Extra", "", False),
    ]
    assert values == {"calendar_id": "primary", "title": "Lunch", "extra": 3}


def test_only_what_may_be_edited_is_in_the_form() -> None:
    fields, values = edit_fields(schema(a=TEXT, b=TEXT), {"a": "1", "b": "2"}, ("b", "unknown"))
    assert [field.name for field in fields] == ["b"]
    assert values == {"b": "2"}
    assert edit_fields(schema(a=TEXT), {"a": "1"}, ()) == ((), {})


def test_what_may_be_null_is_not_required() -> None:
    field, _ = only_field({"anyOf": [TEXT, {"type": "null"}]}, required=True)
    assert not field.required


def test_the_schemas_default_is_shown_where_the_call_says_nothing() -> None:
    field, shown = only_field({"type": "integer", "default": 60})
    assert (field.default, shown) == (60, 60)


def test_the_offset_that_a_time_picker_cannot_show_is_in_the_help() -> None:
    assert only_field({"type": "string", "format": "date-time"}, "2026-11-21T09:00+01:00")[0].help == (
        "UTC offset +01:00."
    )
    assert only_field({"type": "string", "format": "date-time"}, "2026-11-21T09:00Z")[0].help == "In UTC."


def test_what_a_schema_says_and_what_a_form_adds_are_sentences_of_their_own() -> None:
    names = {"type": "array", "items": TEXT}
    assert only_field({**names, "description": "Names or addresses"}, [])[0].help == "Names or addresses. As JSON."
    assert only_field({**names, "description": "Who comes?"}, [])[0].help == "Who comes? As JSON."


@pytest.mark.parametrize("value", ["two\nlines", "x" * 200])
def test_long_text_gets_room(value: str) -> None:
    assert only_field(TEXT, value)[0].multiline
    assert not only_field(TEXT, "short")[0].multiline
    assert only_field({"type": "string", "maxLength": 5000})[0].multiline


def test_an_optional_yes_or_no_can_be_left_open() -> None:
    field, shown = only_field({"type": "boolean"})
    assert (field.type, field.options, shown) == (FieldType.CHOICE, ("yes", "no"), None)
    assert typed({"type": "boolean"}, None) == {}
    assert typed({"type": "boolean"}, "no") == {"it": False}


def test_what_no_input_can_hold_is_left_out_of_the_form_and_kept() -> None:
    arguments = {"long": "x" * (LONGEST_TEXT + 1), "": "nameless", "n" * 101: "named at length", "a": "b"}
    fields, _ = edit_fields(schema(long=TEXT, a=TEXT), arguments, None)
    assert [field.name for field in fields] == ["a"]
    assert read_form(schema(long=TEXT, a=TEXT), arguments, None, {"a": "c"}) == {**arguments, "a": "c"}


def test_a_reference_that_goes_round_in_circles_is_drawn_too() -> None:
    whole = schema(it={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"$ref": "#/$defs/A"}}}
    [field], _ = edit_fields(whole, {"it": "x"}, None)
    assert field.type is FieldType.TEXT


def test_of_very_many_options_no_more_are_offered_than_can_be_drawn_and_the_others_are_typed() -> None:
    """Rule 13: a schema of 57 kB that offered one list in each of its hundred properties made forms of 10,000 options,
    which held the event loop for 0.8 s on each platform."""
    options = [f"{UNSEEN * 44}{number:02}" for number in range(100)]
    names = [f"a{number}" for number in range(100)]
    colour = {"type": "string", "enum": ["red", "blue"]}
    properties: dict[str, Any] = {name: {"$ref": "#/$defs/long"} for name in names}
    whole = schema(**properties, colour=colour) | {"$defs": {"long": {"type": "string", "enum": options}}}
    fields, _ = edit_fields(whole, {"colour": "red"}, None)
    assert len(fields) == 100
    assert {field.type for field in fields} == {FieldType.CHOICE}
    assert sum(len(option) for field in fields for option in field.options) <= MOST_OFFERED
    assert fields[0].options, "the first of them is a list as ever"
    assert not fields[-2].options
    assert fields[-1].options == ("red", "blue"), "what still fits is offered"
    name = fields[-2].name
    assert read_form(whole, {"colour": "red"}, None, {name: options[7]}) == {"colour": "red", name: options[7]}
    refused = read_form(whole, {"colour": "red"}, None, {name: "anything"})
    assert isinstance(refused, FormErrors)
    assert refused.errors[name].startswith("Choose one of: ")


# ------------------------------------------------------------------------------------------------ reading

READ = [
    (TEXT, "hi", "hi"),
    (TEXT, "  hi ", "  hi "),
    ({"type": "integer"}, " 5 ", 5),
    ({"type": "integer"}, "5.0", 5),
    ({"type": "integer"}, 5, 5),
    ({"type": "integer"}, 5.0, 5),
    ({"type": "number"}, "1.50", 1.5),
    ({"type": "number"}, "-1e3", -1000.0),
    ({"type": "number"}, "7", 7),
    ({"type": "boolean"}, "yes", True),
    ({"type": "boolean"}, "no", False),
    ({"enum": [1, 2]}, "2", 2),
    ({"enum": [True, "x"]}, "true", True),
    ({"type": "string", "format": "date"}, "2026-11-21", "2026-11-21"),
    ({"type": "string", "format": "time"}, "09:30", "09:30:00"),
    ({"type": "string", "format": "date-time"}, "2026-11-21T09:30", "2026-11-21T09:30:00"),
    ({"type": "string", "format": "date-time"}, "2026-11-21T09:30Z", "2026-11-21T09:30:00Z"),
    ({"type": "array", "items": TEXT}, '["a", "b"]', ["a", "b"]),
    ({"type": "array", "items": TEXT}, ["a", "b"], ["a", "b"]),
    ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}),
]


@pytest.mark.parametrize(("property_schema", "entry", "value"), READ)
def test_what_is_typed_becomes_a_value_of_the_schemas_type(property_schema: Any, entry: Any, value: Any) -> None:
    read = typed(property_schema, entry)
    assert read == {"it": value}
    assert isinstance(read, dict)
    assert type(read["it"]) is type(value)


WRONG = [
    ({"type": "integer"}, "five", "whole number"),
    ({"type": "integer"}, "5.5", "whole number"),
    ({"type": "integer"}, "1.000", "whole number"),
    ({"type": "integer"}, "9" * 41, "whole number"),
    ({"type": "integer"}, "٣", "whole number"),
    ({"type": "integer"}, True, "whole number"),
    ({"type": "number"}, "1,5", "such as 1.5"),
    ({"type": "number"}, "nan", "such as 1.5"),
    ({"type": "number"}, "1e999", "such as 1.5"),
    ({"type": "number"}, float("inf"), "such as 1.5"),
    ({"type": "boolean"}, "perhaps", "one of: yes, no"),
    ({"enum": ["a", "b"]}, "c", "one of: a, b"),
    ({"type": "string", "format": "date"}, "21.11.2026", "such as 2026-11-21"),
    ({"type": "string", "format": "date"}, "2026-02-30", "such as 2026-11-21"),
    ({"type": "string", "format": "time"}, "24:30", "such as 09:30"),
    ({"type": "string", "format": "date-time"}, "tomorrow", "such as 2026-11-21T09:30"),
    ({"type": "array"}, "[1,", "line 1, column 4"),
    ({"type": "array"}, "NaN", "JSON"),
    ({"type": "array"}, "1e999", "JSON"),
    ({"type": "array"}, "[" * 5000 + "]" * 5000, "deep"),
    ({"type": "array"}, "9" * 5000, "integer beyond"),
    ({"type": "array"}, "[9007199254740993]", "integer beyond"),
    ({"type": "array"}, "[-Infinity]", "JSON cannot carry"),
    ({"type": "array"}, '[{"a": 1, "a": 2}]', "twice"),
    ({"type": "array"}, "[" * 70 + "]" * 70, "nested deeper than 64"),
    ({"type": "integer"}, "9007199254740993", "at most 9007199254740991"),
    ({"type": "integer"}, -(2**60), "at most 9007199254740991"),
    ({"type": "integer"}, 1e300, "at most 9007199254740991"),
    ({"type": "array"}, '["\\u0000"]', "not text"),
    ({"type": "array"}, '["\\ud800"]', "not text"),
    (TEXT, "a\0", "not text"),
    (TEXT, "\ud800", "not text"),
    (TEXT, 5, "Enter text"),
    (TEXT, "x" * (LONGEST_TEXT + 1), "10,000 characters"),
    ({"type": "array"}, "5", "type array"),
    ({"type": "array", "items": TEXT}, "[5]", "0: Must be of type string"),
    ({"type": "integer", "minimum": 1}, "0", "at least 1"),
    ({"type": "integer", "maximum": 9}, "10", "at most 9"),
    ({"type": "string", "minLength": 3}, "ab", "at least 3 characters"),
    ({"type": "string", "maxLength": 3}, "abcd", "At most 3 characters"),
    ({"type": "string", "pattern": "^x"}, "y", "pattern ^x"),
    ({"type": "string", "format": "email"}, "nobody", "Not a valid email"),
    ({"type": "string", "format": "uuid"}, "1", "Not a valid uuid"),
    ({"type": "object", "required": ["b"]}, "{}", "b: Required"),
    ({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]}, "1", "at least 5"),
]


@pytest.mark.parametrize(("property_schema", "entry", "says"), WRONG)
def test_what_does_not_fit_is_told_beside_its_field(property_schema: Any, entry: Any, says: str) -> None:
    read = typed(property_schema, entry)
    assert isinstance(read, FormErrors)
    assert list(read.errors) == ["it"]
    assert says in read.errors["it"]
    assert len(read.errors["it"]) <= 300


def test_every_field_with_a_mistake_is_told_at_once() -> None:
    read = read_form(schema(a={"type": "integer"}, b={"type": "integer"}, c=TEXT), {}, None, {"a": "x", "b": "y"})
    assert isinstance(read, FormErrors)
    assert set(read.errors) == {"a", "b"}


@pytest.mark.parametrize(
    ("property_schema", "before"),
    [
        ({"type": "string", "format": "date-time"}, "2026-11-21 09:00:00.000+01:00"),
        ({"type": "string", "format": "date-time"}, "2026-11-21T09:00:00Z"),
        ({"type": "string", "format": "time"}, "09:00"),
        (TEXT, "two\r\nlines"),
        (TEXT, ""),
        (TEXT, " "),
        ({"type": "number"}, 5.0),
        ({"type": "array"}, [1, {"a": None}]),
        ({"type": ["string", "null"]}, None),
        ({"type": "boolean"}, False),
        ({"enum": [1, 2]}, 1),
    ],
)
def test_a_field_that_was_not_touched_keeps_its_argument_exactly(property_schema: Any, before: Any) -> None:
    _, shown = only_field(property_schema, before)
    for entry in (shown, shown.replace("\r\n", "\n") if isinstance(shown, str) else shown):
        read = typed(property_schema, entry, before)
        assert isinstance(read, dict)
        assert same_json(read["it"], before)
        assert type(read["it"]) is type(before)
    untouched = read_form(schema(it=property_schema), {"it": before}, None, {})
    assert untouched == {"it": before}


def test_a_default_that_was_only_shown_does_not_become_an_argument() -> None:
    assert typed({"type": "integer", "default": 60}, "60") == {}
    assert typed({"type": "integer", "default": 60}, "30") == {"it": 30}


@pytest.mark.parametrize(
    ("before", "entry", "after"),
    [
        ("2026-11-21T09:00:00+01:00", "2026-11-21T10:00", "2026-11-21T10:00:00+01:00"),
        ("2026-11-21T09:00Z", "2026-11-21T10:00", "2026-11-21T10:00Z"),
        ("2026-11-21T09:00", "2026-11-21T10:00", "2026-11-21T10:00"),
        ("2026-11-21T09:00:00", "2026-11-21T10:00", "2026-11-21T10:00:00"),
        ("2026-11-21T09:00:00+01:00", "2026-11-21T10:00:30-05:00", "2026-11-21T10:00:30-05:00"),
        ("tomorrow", "2026-11-21T10:00", "2026-11-21T10:00:00"),
    ],
)
def test_an_edited_time_keeps_the_offset_and_style_it_had(before: str, entry: str, after: str) -> None:
    assert typed({"type": "string", "format": "date-time"}, entry, before) == {"it": after}


def test_an_optional_argument_that_was_emptied_is_left_out() -> None:
    assert typed(TEXT, "", "hi") == {}
    assert typed({"type": "integer"}, None, 5) == {}


@pytest.mark.parametrize(
    ("of", "before", "becomes"),
    [
        ({"type": "string"}, "eve@corp.example", ""),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "eve@corp.example", ""),
        ({"type": ["integer", "null"]}, 5, None),
        ({"type": "array", "items": {"type": "string"}}, ["eve@corp.example"], emptied()),
        ({"type": "integer"}, 5, emptied()),
        ({"enum": ["a", "b"]}, "a", emptied()),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_what_was_emptied_is_never_the_default_of_the_tool(of: Any, before: Any, becomes: Any, *, given: bool) -> None:
    """Rule 12: the tool would take its default for an argument that is left out, and the field is empty."""
    wanted = schema(it={**of, "default": before})
    read = read_form(wanted, {"it": before} if given else {}, None, {"it": ""})
    assert read == (FormErrors({"it": emptied()}) if becomes == emptied() else {"it": becomes})


def test_an_empty_text_that_the_schema_does_not_take_is_refused() -> None:
    wanted = schema(it={"type": "string", "default": "hi", "minLength": 1})
    assert isinstance(read_form(wanted, {"it": "hello"}, None, {"it": ""}), FormErrors)


def test_a_required_argument_that_was_emptied_is_asked_for() -> None:
    read = read_form(schema(("it",), it=TEXT), {"it": "hi"}, None, {"it": " "})
    assert read == FormErrors({"it": "Required"})


def test_a_required_argument_that_was_never_given_is_asked_for() -> None:
    assert read_form(schema(("it",), it=TEXT), {}, None, {"it": ""}) == FormErrors({"it": "Required"})


def test_a_required_argument_that_may_be_null_becomes_null_when_emptied() -> None:
    nullable = schema(("it",), it={"anyOf": [TEXT, {"type": "null"}]})
    assert read_form(nullable, {"it": "hi"}, None, {"it": ""}) == {"it": None}


def test_a_default_of_a_required_argument_that_was_never_given_is_taken_as_shown() -> None:
    wanted = schema(("it",), it={"type": "integer", "default": 60})
    assert read_form(wanted, {}, None, {"it": 60}) == {"it": 60}


def test_what_may_not_be_edited_cannot_be_changed_by_sending_it_anyway() -> None:
    read = read_form(schema(a=TEXT, b=TEXT), {"a": "1", "b": "2"}, ("b",), {"a": "9", "b": "3"})
    assert read == FormErrors({"": "This can’t be changed here: a."})
    assert read_form(schema(a=TEXT, b=TEXT), {"a": "1", "b": "2"}, ("b",), {"b": "3"}) == {"a": "1", "b": "3"}


def test_a_mistake_outside_the_form_is_told_about_the_form_as_a_whole() -> None:
    read = read_form(schema(("c",), a={"type": "integer"}, b=TEXT), {"a": "five"}, ("b",), {"b": "x"})
    assert isinstance(read, FormErrors)
    assert set(read.errors) == {""}
    assert "a: Must be of type integer." in read.errors[""]
    assert "c: Required" in read.errors[""]


def test_the_call_that_was_asked_for_is_not_changed_by_reading_a_form() -> None:
    before = {"it": "hi"}
    read_form(schema(it=TEXT), before, None, {"it": "ho"})
    assert before == {"it": "hi"}


@pytest.mark.parametrize(
    "broken",
    [
        {"properties": {"it": {"type": "nonsense"}}},
        {"properties": {"it": {"$ref": "#/nowhere"}}},
        {"$ref": "#"},
        {"$schema": 5},
    ],
)
def test_a_schema_that_cannot_check_accepts_no_edit(broken: dict[str, Any]) -> None:
    read = read_form(broken, {"it": "a"}, None, {"it": "b"})
    assert isinstance(read, FormErrors)
    assert "can’t be checked" in read.errors[""]


def test_nothing_is_fetched_for_a_schema_that_refers_to_another_place() -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
        read = read_form({"properties": {"it": {"$ref": f"http://127.0.0.1:{port}/"}}}, {"it": "a"}, None, {"it": "b"})
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has connected
            elsewhere.accept()
    assert isinstance(read, FormErrors)
    assert "can’t be checked" in read.errors[""]


@pytest.mark.imports
def test_the_slow_schema_library_is_loaded_only_when_a_form_is_read() -> None:
    program = (
        "import sys, bot.forms.editing as f; f.edit_fields({}, {'a': 1}, None); print('jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


# ------------------------------------------------------------------------------------------------ clarifications


def answer(kind: FieldType, entry: Any, **more: Any) -> Any:
    return read_answers([FormField(name="it", type=kind, **more)], {"it": entry})


ANSWERS = [
    (FieldType.TEXT, "hi", "hi"),
    (FieldType.DATE, "2026-11-21", "2026-11-21"),
    (FieldType.TIME, "09:30", "09:30"),
    (FieldType.DATE_TIME, "2026-11-21T09:30", "2026-11-21T09:30"),
    (FieldType.NUMBER, "1.5", 1.5),
    (FieldType.INTEGER, "3", 3),
    (FieldType.YES_NO, True, True),
    (FieldType.YES_NO, "No", False),
    (FieldType.JSON, "[1]", [1]),
    (FieldType.CHOICE, "free text where there are no options", "free text where there are no options"),
]


@pytest.mark.parametrize(("kind", "entry", "value"), ANSWERS)
def test_an_answer_has_the_type_that_was_asked_for(kind: FieldType, entry: Any, value: Any) -> None:
    assert answer(kind, entry) == {"it": value}


def test_an_answer_outside_the_options_is_refused() -> None:
    assert answer(FieldType.CHOICE, "b", options=("a", "b")) == {"it": "b"}
    assert answer(FieldType.CHOICE, "c", options=("a", "b")) == FormErrors({"it": "Choose one of: a, b."})


def test_only_optional_answers_may_be_left_empty() -> None:
    assert answer(FieldType.TEXT, "", required=False) == {}
    assert answer(FieldType.YES_NO, None) == FormErrors({"it": "Required"})
    assert read_answers([FormField(name="it")], {}) == FormErrors({"it": "Required"})


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [
        (FormField(name="it", required=False, default="all"), ""),
        (FormField(name="it", type=FieldType.JSON, required=False, options=("a", "b"), default=["a"]), []),
        (FormField(name="it", type=FieldType.INTEGER, required=False, default=5), None),
    ],
)
def test_a_default_that_was_taken_out_is_no_answer_left_out(asked: FormField, becomes: Any) -> None:
    """Rule 12: who asks would take its default for an answer that is left out."""
    assert read_answers([asked], {"it": None}) == {"it": becomes}
    assert read_answers([asked], {}) == {}


def test_an_answer_to_what_was_not_asked_is_refused() -> None:
    assert read_answers([], {"other": 1}) == FormErrors({"": "This was not asked for: other."})


def test_a_person_or_channel_of_the_platform_keeps_its_picker_when_it_has_a_value() -> None:
    formats = {"who": "slack-user-id", "where": "slack-channel-id"}
    schema = {"properties": {name: {"type": "string", "format": format_} for name, format_ in formats.items()}}
    fields, shown = edit_fields(schema, {"who": "U1", "where": "C1"}, None)
    assert [field.type for field in fields] == [FieldType.PERSON, FieldType.CHANNEL]
    assert shown == {"who": "U1", "where": "C1"}
    assert read_form(schema, {"who": "U1"}, None, {"who": "U2"}) == {"who": "U2"}


@pytest.mark.parametrize("name", ["\ud800", "a\0b"])
def test_an_argument_whose_name_is_no_text_stays_as_it_is(name: str) -> None:
    fields, _ = edit_fields({}, {name: 1, "count": 2}, None)
    assert [field.name for field in fields] == ["count"]


MOMENT = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({"start": "2026-11-22T14:30"}, {"end": "The end must be after the start."}),
        ({"end": "2026-11-22T08:00"}, {"end": "The end must be after the start."}),
        ({"start": "2026-11-22T14:30", "end": "2026-11-22T15:30"}, None),
        ({"title": "Retro"}, None),
    ],
)
def test_a_start_that_is_moved_beyond_its_end_is_refused_before_it_is_approved(
    values: dict[str, str], refused: dict[str, str] | None
) -> None:
    arguments = {"start": "2026-11-22T09:00:00+01:00", "end": "2026-11-22T10:00:00+01:00", "title": "Standup"}
    read = read_form(schema(start=MOMENT, end=MOMENT, title=TEXT), arguments, None, values)
    assert (read.errors if isinstance(read, FormErrors) else None) == refused


def test_what_was_the_wrong_way_round_before_may_be_edited_elsewhere() -> None:
    arguments = {"start": "2026-11-22T09:00:00+01:00", "end": "2026-11-22T08:00:00+01:00", "title": "Standup"}
    read = read_form(schema(start=MOMENT, end=MOMENT, title=TEXT), arguments, None, {"title": "Retro"})
    assert read == {**arguments, "title": "Retro"}
