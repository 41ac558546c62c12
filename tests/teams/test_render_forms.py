"""Inputs that show what is there, give it back unchanged, and name what they cannot show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.teams.render.dialogs import answer_dialog, edit_dialog
from adapters.teams.render.inputs import entries
from bot.domain import Form
from bot.forms.editing import edit_fields, read_answers, read_form
from bot.forms.values import FormErrors
from graph.interrupts import FieldType, FormField
from tests.support.examples import examples
from tests.teams.strategies import hostile

Json = Mapping[str, Any]


def inputs_of(element: Any) -> Iterator[Json]:
    """Every input of a card, wherever it stands."""
    match element:
        case Mapping():
            if str(element.get("type", "")).startswith("Input."):
                yield element
            for value in element.values():
                yield from inputs_of(value)
        case list() | tuple():
            for value in element:
                yield from inputs_of(value)


def input_of(field: FormField, value: Any = None) -> Json:
    [made] = inputs_of(edit_dialog("a1", Form("Edit", (field,), {field.name: value})).card)
    return made


def untouched(card: Any) -> dict[str, Any]:
    """What Teams submits of a form as it was opened: nothing for what is empty, and numbers as text."""
    return {each["id"]: str(each["value"]) for each in inputs_of(card) if each.get("value") not in (None, "")}


def form_of(field: FormField, value: Any) -> Form:
    return Form("Edit", (field,), {field.name: value})


# ------------------------------------------------------------------------------------------------ inputs


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (FieldType.TEXT, "hi", {"type": "Input.Text", "value": "hi", "isMultiline": False}),
        (FieldType.TEXT, "a\nb", {"type": "Input.Text", "value": "a\nb", "isMultiline": True}),
        (FieldType.TEXT, None, {"type": "Input.Text", "value": None}),
        (FieldType.INTEGER, 5, {"type": "Input.Number", "value": 5}),
        (FieldType.INTEGER, "5", {"type": "Input.Number", "value": 5}),
        (FieldType.INTEGER, "05", {"type": "Input.Text", "value": "05"}),
        (FieldType.INTEGER, "five", {"type": "Input.Text", "value": "five"}),
        (FieldType.NUMBER, 1.5, {"type": "Input.Number", "value": 1.5}),
        (FieldType.NUMBER, 1e300, {"type": "Input.Text", "value": "1e+300"}),
        (FieldType.DATE, "2026-11-21", {"type": "Input.Date", "value": "2026-11-21"}),
        (FieldType.DATE, "2026-02-30", {"type": "Input.Text", "value": "2026-02-30"}),
        (FieldType.TIME, "09:30", {"type": "Input.Time", "value": "09:30"}),
        (FieldType.TIME, "09:30:15", {"type": "Input.Text", "value": "09:30:15"}),
        (FieldType.DATE_TIME, "2026-11-21T09:00:30", {"type": "Input.Text"}),
        (FieldType.DATE_TIME, "2026-11-21T09:00+01:00", {"type": "Input.Text"}),
        (FieldType.YES_NO, True, {"type": "Input.Toggle", "value": "true", "isRequired": None}),
        (FieldType.YES_NO, None, {"type": "Input.Toggle", "value": "false"}),
        (FieldType.PERSON, "ana@a.example", {"type": "Input.Text", "value": "ana@a.example"}),
        (FieldType.CHANNEL, "General", {"type": "Input.Text", "value": "General"}),
        (FieldType.JSON, [1], {"type": "Input.Text", "value": "[\n  1\n]", "isMultiline": True}),
    ],
)
def test_every_kind_of_field_has_its_input(kind: FieldType, value: Any, expected: dict[str, Any]) -> None:
    made = input_of(FormField(name="x", type=kind), value)
    assert {name: made.get(name) for name in expected} == expected
    assert made["id"] == "field:x"
    assert made["label"] == "x"


def test_a_date_and_time_are_two_inputs_side_by_side() -> None:
    form = form_of(FormField(name="x", label="Start", type=FieldType.DATE_TIME), "2026-11-21T09:00")
    card = edit_dialog("a1", form).card
    day, clock = inputs_of(card)
    assert (day["type"], day["id"], day["value"], day["label"]) == ("Input.Date", "field:x", "2026-11-21", "Start")
    assert (clock["type"], clock["id"], clock["value"], clock["label"]) == ("Input.Time", "time:x", "09:00", "Time")
    assert entries(untouched(card), form) == {"x": "2026-11-21T09:00"}


def test_half_of_a_date_and_time_is_told_to_be_half() -> None:
    field = FormField(name="x", type=FieldType.DATE_TIME)
    form = Form("Edit", (field,), {})
    typed = entries({"field:x": "2026-11-21"}, form)
    assert read_answers((field,), typed) == FormErrors({"x": "Enter a date and time, such as 2026-11-21T09:30."})
    day, clock = inputs_of(edit_dialog("a1", form, {"x": "Half."}, typed).card)
    assert (day["value"], clock.get("value")) == ("2026-11-21", None)


def test_what_is_needed_says_so_and_a_switch_can_say_no() -> None:
    assert input_of(FormField(name="x"))["isRequired"] is True
    assert input_of(FormField(name="x"))["errorMessage"] == "Required"
    assert "isRequired" not in input_of(FormField(name="x", required=False))
    field = FormField(name="x", type=FieldType.YES_NO)
    form = form_of(field, False)
    assert entries(untouched(edit_dialog("a1", form).card), form) == {"x": False}


def test_a_cleared_input_is_nothing_and_one_that_was_not_there_is_left_alone() -> None:
    fields = (FormField(name="a", required=False), FormField(name="long"))
    form = Form("Edit", fields, {"a": "x", "long": "y" * 10_001})
    assert entries({}, form) == {"a": None}


def test_options_that_would_read_alike_stay_apart() -> None:
    options = ("a" * 200, "a" * 201, "b")
    made = input_of(FormField(name="x", type=FieldType.CHOICE, options=options), "a" * 201)
    assert made["type"] == "Input.ChoiceSet"
    assert len({choice["title"] for choice in made["choices"]}) == 3
    assert [choice["value"] for choice in made["choices"]] == list(options)
    assert made["value"] == "a" * 201


INSTRUMENTS = ("Guitar", "Piano", "Drums")


@pytest.mark.parametrize("value", [["Piano", "Drums"], '["Piano", "Drums"]'])
def test_a_list_of_options_is_chosen_from(value: Any) -> None:
    field = FormField(name="x", type=FieldType.JSON, options=INSTRUMENTS)
    made = input_of(field, value)
    assert (made["type"], made["isMultiSelect"], made["value"]) == ("Input.ChoiceSet", True, "Piano,Drums")
    form = Form("Which?", (field,), {})
    assert read_answers((field,), entries({"field:x": "Guitar,Drums"}, form)) == {"x": ["Guitar", "Drums"]}
    assert entries({}, form) == {"x": None}


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (("a, b", "c"), []),
        (INSTRUMENTS, ["Violin"]),
        (INSTRUMENTS, ["Piano", "Piano"]),
        (INSTRUMENTS, "no JSON"),
        (INSTRUMENTS, 3),
        ((), ["Piano"]),
    ],
)
def test_a_list_that_could_not_be_chosen_from_is_typed(options: tuple[str, ...], value: Any) -> None:
    made = input_of(FormField(name="x", type=FieldType.JSON, options=options), value)
    assert made["type"] == "Input.Text"


@pytest.mark.parametrize("options", [tuple(map(str, range(101))), ("", "7"), (" a", "7"), ("\x00", "7")])
def test_options_that_a_menu_cannot_hold_are_typed(options: tuple[str, ...]) -> None:
    made = input_of(FormField(name="x", type=FieldType.CHOICE, options=options), "7")
    assert (made["type"], made["value"]) == ("Input.Text", "7")


def test_what_teams_cannot_hold_is_no_input_but_named() -> None:
    fields = (
        FormField(name="long", label="Long one"),
        FormField(name="odd", label="Odd one"),
        FormField(name="line\nbreak", label="Broken one"),
        FormField(name="fine", label="Fine one"),
    )
    form = Form("Edit", fields, {"long": "x" * 10_001, "odd": "a\x00b", "fine": "y"})
    card = edit_dialog("a1", form).card
    assert [each["id"] for each in inputs_of(card)] == ["field:fine"]
    assert "Not editable here: Long one, Odd one, Broken one" in json.dumps(card)
    assert entries(untouched(card), form) == {"fine": "y"}


def test_a_form_of_very_many_fields_has_as_many_inputs_as_fit_and_names_the_rest() -> None:
    form = Form("Edit", tuple(FormField(name=f"f{n}", label=f"Field {n}") for n in range(200)), {})
    card = edit_dialog("a1", form).card
    shown = [each["id"] for each in inputs_of(card)]
    assert 50 < len(shown) < 200
    assert set(entries({}, form)) == {name.removeprefix("field:") for name in shown}
    assert f"Field {len(shown)}, Field {len(shown) + 1}" in json.dumps(card)


def test_two_fields_of_one_name_are_one_input() -> None:
    fields = (FormField(name="x", label="A"), FormField(name="x", label="B"))
    assert [each["label"] for each in inputs_of(edit_dialog("a1", Form("Edit", fields, {})).card)] == ["A"]


def test_invisible_characters_in_a_value_are_told_under_its_input() -> None:
    card = edit_dialog("a1", form_of(FormField(name="x"), "a\u200bb")).card
    assert next(inputs_of(card))["value"] == "a\u200bb"
    assert "Holds invisible characters: a⟨U+200B⟩b" in json.dumps(card, ensure_ascii=False)


def test_a_label_is_neither_a_link_nor_a_function_whatever_reads_it() -> None:
    label = input_of(FormField(name="x", label="[x](https://evil.example) {{DATE(2017-02-14T06:08:00Z)}}"))["label"]
    assert label == "[x] (https://evil.example) { {DATE(2017-02-14T06:08:00Z)}}"


# ------------------------------------------------------------------------------------------------ again, with mistakes


def test_mistakes_stand_above_the_inputs_and_what_was_typed_is_kept() -> None:
    fields = (FormField(name="n", label="Number", type=FieldType.INTEGER), FormField(name="t", label="Text"))
    card = answer_dialog(
        "q1", Form("Which?", fields, {}), {"n": "No number.", "": "All wrong."}, {"n": "x", "t": "y"}
    ).card
    box = card["body"][1]
    assert box["style"] == "attention"
    assert ["".join(run["text"] for run in told["inlines"]) for told in box["items"]] == [
        "Number: No number.",
        "All wrong.",
    ]
    assert [each["value"] for each in inputs_of(card)] == ["x", "y"]


@pytest.mark.parametrize(
    ("field", "value", "typed"),
    [
        (FormField(name="at", label="At", type=FieldType.DATE_TIME), "next Friday", "2026-11-21T09:30"),
        (FormField(name="at", label="At", type=FieldType.DATE), "next Friday", "2026-11-21"),
        (FormField(name="n", label="Number", type=FieldType.INTEGER), 10**20, "5"),
        (FormField(name="which", label="Which", type=FieldType.CHOICE, options=("a", "b")), "c", "a"),
        (FormField(name="which", label="Which", type=FieldType.JSON, options=("a", "b")), "[1]", '["a", "b"]'),
    ],
)
def test_what_is_shown_again_comes_back_as_what_was_typed(field: FormField, value: Any, typed: str) -> None:
    """Rule 12: what comes back is read as the inputs that the form had first, so those with mistakes are the same."""
    form = form_of(field, value)
    assert input_of(field, value)["type"] == "Input.Text"
    again = edit_dialog("a1", form, {"": "Something else is wrong."}, {field.name: typed}).card
    assert entries(untouched(again), form) == {field.name: typed}


def test_what_is_too_long_to_be_shown_again_is_said_to_be_lost() -> None:
    fields = (FormField(name="a", label="First"), FormField(name="b", label="Second"))
    typed = {"a": "Ω" * 4_000, "b": "short"}
    card = answer_dialog("q1", Form("Which?", fields, {}), {"b": "Too short."}, typed).card
    assert [each.get("value") for each in inputs_of(card)] == [None, "short"]
    assert "Too long to show again; type it once more: First" in json.dumps(card)


# ------------------------------------------------------------------------------------------------ there and back

FORMATS: list[dict[str, Any]] = [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {}]
FORMATS += [{"type": "string", "format": name} for name in ("date", "time", "date-time", "slack-user-id")]
FORMATS += [{"enum": ["a", "b", 3]}, {"type": ["string", "null"]}, {"type": "array"}, {"type": "object"}]
TIMES = st.datetimes().map(lambda moment: moment.isoformat(timespec="minutes"))
VALUES: st.SearchStrategy[Any] = (
    TIMES | TIMES.map(lambda t: f"{t}:00Z") | TIMES.map(lambda t: t[:10]) | st.sampled_from(["a", 3, True, 1.5, None])
)
VALUES |= st.text(max_size=9) | st.integers() | st.floats(allow_nan=False) | st.lists(st.integers(), max_size=3)


@settings(max_examples=examples(85))
@given(schema=st.sampled_from(FORMATS), value=VALUES, is_required=st.booleans())
def test_an_untouched_form_changes_nothing(schema: dict[str, Any], value: Any, *, is_required: bool) -> None:
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"] if is_required else []}
    fields, values = edit_fields(whole, {"x": value}, None)
    form = Form("Edit", fields, values)
    typed = entries(untouched(edit_dialog("a1", form).card), form)
    if isinstance(read_form(whole, {"x": value}, None, {}), FormErrors):
        return  # it was no valid call before either, and an input may have mended it
    assert read_form(whole, {"x": value}, None, typed) == {"x": value}


@pytest.mark.parametrize(
    ("kind", "typed", "answer"),
    [
        (FieldType.TEXT, {"field:x": "hello"}, "hello"),
        (FieldType.CHOICE, {"field:x": "b"}, "b"),
        (FieldType.DATE, {"field:x": "2026-11-21"}, "2026-11-21"),
        (FieldType.TIME, {"field:x": "09:30"}, "09:30"),
        (FieldType.DATE_TIME, {"field:x": "2026-11-21", "time:x": "09:30"}, "2026-11-21T09:30"),
        (FieldType.NUMBER, {"field:x": "1.5"}, 1.5),
        (FieldType.NUMBER, {"field:x": 1.5}, 1.5),
        (FieldType.INTEGER, {"field:x": "3"}, 3),
        (FieldType.YES_NO, {"field:x": "true"}, True),
        (FieldType.YES_NO, {"field:x": "false"}, False),
        (FieldType.PERSON, {"field:x": "ana@a.example"}, "ana@a.example"),
        (FieldType.CHANNEL, {"field:x": "General"}, "General"),
        (FieldType.JSON, {"field:x": '{"a": [1]}'}, {"a": [1]}),
    ],
)
def test_every_kind_of_answer_is_read(kind: FieldType, typed: dict[str, Any], answer: Any) -> None:
    fields = (FormField(name="x", type=kind, options=("a", "b") if kind is FieldType.CHOICE else ()),)
    assert read_answers(fields, entries(typed, Form("Which?", fields, {}))) == {"x": answer}


def test_every_kind_of_field_is_among_them() -> None:
    mark = test_every_kind_of_answer_is_read.pytestmark[0]
    assert {kind for kind, _, _ in mark.args[1]} == set(FieldType)


@settings(max_examples=examples(20))
@given(hostile.forms)
def test_no_value_of_a_form_is_changed_by_showing_it(form: Form) -> None:
    card = edit_dialog("a1", form).card
    shown = {field.name: form.values.get(field.name, field.default) for field in reversed(form.fields)}
    for name, entry in entries(untouched(card), form).items():
        if isinstance(shown[name], str) and entry is not None:
            assert entry == shown[name] or isinstance(entry, bool)
