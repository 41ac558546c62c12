"""Modals: inputs that show what is there, give it back unchanged, and name what they cannot show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.actions import Origin, load_origin
from adapters.slack.render.blocks import Block
from adapters.slack.render.forms import (
    always_modal,
    answer_modal,
    approve_all_modal,
    arguments_modal,
    ask_modal,
    edit_modal,
    note_modal,
    reject_modal,
)
from adapters.slack.render.inputs import entries, error_blocks
from bot.domain import Form, Person, Together
from bot.forms.editing import edit_fields, read_form
from bot.forms.values import FormErrors
from graph.interrupts import FieldType, FormField
from graph.presentation import CallPresentation, Preview
from tests.fakes.slack.block_rules import view_mistakes
from tests.slack.shown import ANA, an_approval
from tests.support.examples import examples

ORIGIN = Origin("call-1.1", "C1", "1700000000.000100")
NEW_YORK = Person("slack:T1:U2", "Ben", "America/New_York")


def element_of(field: FormField, value: Any = None, person: Person = ANA) -> dict[str, Any]:
    [block] = inputs_of(edit_modal(Form("Edit", (field,), {field.name: value}), an_approval(), ORIGIN, person))
    return dict(block["element"])


def inputs_of(view: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in view["blocks"] if block["type"] == "input"]


def untouched(view: dict[str, Any]) -> dict[str, Any]:
    """`view.state.values` of a modal that was submitted as it was opened."""
    return {block["block_id"]: {"value": state_of(block["element"])} for block in inputs_of(view)}


def state_of(element: dict[str, Any]) -> dict[str, Any]:
    kind = element["type"]
    initial = {
        "plain_text_input": {"value": element.get("initial_value")},
        "number_input": {"value": element.get("initial_value")},
        "datepicker": {"selected_date": element.get("initial_date")},
        "timepicker": {"selected_time": element.get("initial_time")},
        "datetimepicker": {"selected_date_time": element.get("initial_date_time")},
        "static_select": {"selected_option": element.get("initial_option")},
        "checkboxes": {"selected_options": element.get("initial_options", [])},
        "multi_static_select": {"selected_options": element.get("initial_options", [])},
        "users_select": {"selected_user": element.get("initial_user")},
        "conversations_select": {"selected_conversation": element.get("initial_conversation")},
    }
    return {"type": kind, **initial[kind]}


def text_of(view: dict[str, Any]) -> str:
    return json.dumps(view["blocks"], ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ inputs


@pytest.mark.parametrize(
    ("kind", "value", "element"),
    [
        (FieldType.TEXT, "hi", {"type": "plain_text_input", "initial_value": "hi", "multiline": False}),
        (FieldType.TEXT, "a\nb", {"type": "plain_text_input", "initial_value": "a\nb", "multiline": True}),
        (FieldType.TEXT, None, {"type": "plain_text_input"}),
        (FieldType.INTEGER, 5, {"type": "number_input", "is_decimal_allowed": False, "initial_value": "5"}),
        (FieldType.NUMBER, 1.5, {"type": "number_input", "is_decimal_allowed": True, "initial_value": "1.5"}),
        (FieldType.NUMBER, 1e300, {"type": "plain_text_input", "initial_value": "1e+300"}),
        (FieldType.INTEGER, "five", {"type": "plain_text_input", "initial_value": "five"}),
        (FieldType.DATE, "2026-11-21", {"type": "datepicker", "initial_date": "2026-11-21"}),
        (FieldType.DATE, "2026-02-30", {"type": "plain_text_input", "initial_value": "2026-02-30"}),
        (FieldType.TIME, "09:30", {"type": "timepicker", "initial_time": "09:30"}),
        (FieldType.TIME, "09:30:15", {"type": "plain_text_input", "initial_value": "09:30:15"}),
        (FieldType.DATE_TIME, "2026-11-21T09:00", {"type": "datetimepicker", "initial_date_time": 1_795_248_000}),
        (FieldType.YES_NO, True, {"type": "checkboxes"}),
        (FieldType.PERSON, "U1", {"type": "users_select", "initial_user": "U1"}),
        (FieldType.PERSON, "ana@a.example", {"type": "plain_text_input", "initial_value": "ana@a.example"}),
        (FieldType.CHANNEL, "C1", {"type": "conversations_select", "initial_conversation": "C1"}),
        (FieldType.JSON, [1], {"type": "plain_text_input", "initial_value": "[\n  1\n]", "multiline": True}),
    ],
)
def test_every_kind_of_field_has_its_input(kind: FieldType, value: Any, element: dict[str, Any]) -> None:
    made = element_of(FormField(name="x", type=kind), value)
    assert {name: made.get(name) for name in element} == element


@pytest.mark.parametrize(
    ("value", "zone"),
    [
        ("2026-11-21T09:00:30", "Europe/Berlin"),
        ("2026-11-21T09:00+01:00", "Europe/Berlin"),
        ("2026-03-29T02:30", "Europe/Berlin"),  # the clocks go from 2 to 3
        ("1999-01-01T00:00", "Europe/Berlin"),
        ("2400-01-01T00:00", "UTC"),
        ("2026-11-21T09:00", "No/Where"),
        ("2026-11-21T09:00", "../../etc/passwd"),
    ],
)
def test_a_time_that_the_picker_would_change_is_text(value: str, zone: str) -> None:
    person = Person("slack:T1:U1", "Ana", zone)
    assert element_of(FormField(name="x", type=FieldType.DATE_TIME), value, person)["initial_value"] == value


@pytest.mark.parametrize("value", ["2026-11-21T09:00", "2026-10-25T02:30", "2026-07-01T00:00"])
@pytest.mark.parametrize("person", [ANA, NEW_YORK])
def test_a_picked_time_is_the_persons_own_wall_clock(value: str, person: Person) -> None:
    field = FormField(name="x", type=FieldType.DATE_TIME)
    view = edit_modal(Form("Edit", (field,), {"x": value}), an_approval(), ORIGIN, person)
    assert inputs_of(view)[0]["element"]["type"] == "datetimepicker"
    assert entries(untouched(view), [field], person) == {"x": value}


def test_the_clock_differs_by_where_the_person_is() -> None:
    field = FormField(name="x", type=FieldType.DATE_TIME)
    state = {"input:x": {"value": {"type": "datetimepicker", "selected_date_time": 1_795_248_000}}}
    assert [entries(state, [field], person)["x"] for person in (ANA, NEW_YORK)] == [
        "2026-11-21T09:00",
        "2026-11-21T03:00",
    ]


def test_options_that_would_read_alike_stay_apart() -> None:
    field = FormField(name="x", type=FieldType.CHOICE, options=("a" * 100, "a" * 101, "", "1. b", "b"))
    options = element_of(field, "a" * 101)["options"]
    assert len({option["text"]["text"] for option in options}) == 5
    assert max(len(option["text"]["text"]) for option in options) <= 75
    view = edit_modal(Form("Edit", (field,), {"x": "a" * 101}), an_approval(), ORIGIN, ANA)
    assert entries(untouched(view), [field], ANA) == {"x": "a" * 101}


def test_more_options_than_a_menu_holds_are_typed() -> None:
    field = FormField(name="x", type=FieldType.CHOICE, options=tuple(map(str, range(101))))
    assert element_of(field, "7")["initial_value"] == "7"


def test_a_needed_yes_or_no_can_be_answered_with_no() -> None:
    field = FormField(name="x", type=FieldType.YES_NO, required=True)
    view = edit_modal(Form("Edit", (field,), {"x": False}), an_approval(), ORIGIN, ANA)
    assert inputs_of(view)[0]["optional"] is True
    assert entries(untouched(view), [field], ANA) == {"x": False}


def test_what_slack_cannot_hold_is_no_input_but_named() -> None:
    fields = (
        FormField(name="long", label="Long one"),
        FormField(name="odd", label="Odd one"),
        FormField(name="line\nbreak", label="Broken one"),
        FormField(name="fine", label="Fine one"),
    )
    values = {"long": "x" * 3_001, "odd": "a\x00b", "fine": "y"}
    view = edit_modal(Form("Edit", fields, values), an_approval(), ORIGIN, ANA)
    assert [block["block_id"] for block in inputs_of(view)] == ["input:fine"]
    assert "Not editable here: Long one, Odd one, Broken one" in text_of(view)
    assert entries(untouched(view), fields, ANA) == {"fine": "y"}


def test_a_form_of_very_many_fields_has_95_inputs_and_names_the_rest() -> None:
    fields = tuple(FormField(name=f"f{n}", label=f"Field {n}") for n in range(97))
    view = edit_modal(Form("Edit", fields, {}), an_approval(), ORIGIN, ANA)
    assert len(inputs_of(view)) == 95
    assert "Field 95, Field 96" in text_of(view)
    assert view_mistakes(view) == []


def test_a_form_of_very_long_values_stays_within_a_views_size() -> None:
    fields = tuple(FormField(name=f"f{n}") for n in range(90))
    view = edit_modal(Form("Edit", fields, {field.name: "👩" * 3_000 for field in fields}), an_approval(), ORIGIN, ANA)
    assert 0 < len(inputs_of(view)) < 90
    assert view_mistakes(view) == []


def test_two_fields_of_one_name_are_one_input() -> None:
    view = edit_modal(
        Form("Edit", (FormField(name="x", label="A"), FormField(name="x", label="B")), {}), an_approval(), ORIGIN, ANA
    )
    assert [block["label"]["text"] for block in inputs_of(view)] == ["A"]


def test_invisible_characters_in_a_value_are_told_under_its_input() -> None:
    [block] = inputs_of(edit_modal(Form("Edit", (FormField(name="x"),), {"x": "a\u200bb"}), an_approval(), ORIGIN, ANA))
    assert block["element"]["initial_value"] == "a\u200bb"
    assert block["hint"]["text"] == "Holds invisible characters: a⟨U+200B⟩b"


FORMATS: list[dict[str, Any]] = [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {}]
FORMATS += [{"type": "string", "format": f} for f in ("date", "time", "date-time", "slack-user-id", "slack-channel-id")]
FORMATS += [{"enum": ["a", "b", 3]}, {"type": ["string", "null"]}]
TIMES = st.datetimes().map(lambda moment: moment.isoformat(timespec="minutes"))
VALUES = (
    TIMES | TIMES.map(lambda t: f"{t}:00Z") | TIMES.map(lambda t: t[:10]) | st.sampled_from(["a", 3, "U1", "C1", True])
)


@settings(max_examples=examples(50))
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.sampled_from(FORMATS), VALUES), min_size=1),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4) | st.integers() | st.lists(st.booleans(), max_size=2)),
    st.sampled_from([ANA, NEW_YORK]),
)
def test_a_form_that_nobody_touched_changes_nothing(
    typed: dict[str, tuple[dict[str, Any], Any]], others: dict[str, Any], person: Person
) -> None:
    schema = {"type": "object", "properties": {name: kind for name, (kind, _) in typed.items()}}
    asked = others | {name: value for name, (_, value) in typed.items()}
    fields, values = edit_fields(schema, asked, None)
    view = edit_modal(Form("Edit", fields, values), an_approval(), ORIGIN, person)
    read = entries(untouched(view), fields, person)
    assert set(read) == {block["block_id"].removeprefix("input:") for block in inputs_of(view)}
    after = read_form(schema, asked, None, read)
    assert after == asked or isinstance(after, FormErrors)  # what was wrong before is wrong still


# ------------------------------------------------------------------------------------------------ modals


def test_the_edit_form_approves_and_remembers_where_it_came_from() -> None:
    view = edit_modal(Form("Edit", (), {}), an_approval(), ORIGIN, ANA)
    assert (view["callback_id"], view["submit"]["text"]) == ("edit_form", "Save and approve")
    assert load_origin(view["private_metadata"]) == ORIGIN


def test_the_answer_form_begins_with_the_question_to_the_letter() -> None:
    field = FormField(name="size", label="Size", type=FieldType.CHOICE, options=("small", "large"))
    view = answer_modal(Form("*Which* <!here>?", (field,), {}), ORIGIN, ANA)
    assert view["callback_id"] == "answer_form"
    assert view["blocks"][0]["elements"][0]["elements"][0]["text"] == "*Which* <!here>?"


def test_a_rejection_needs_a_reason_only_where_the_rule_wants_one() -> None:
    optional = [
        inputs_of(reject_modal(an_approval(reason_required=needed), ORIGIN))[0]["optional"] for needed in (True, False)
    ]
    assert optional == [False, True]
    assert inputs_of(reject_modal(an_approval(), ORIGIN))[0]["block_id"] == "input:reason"


def test_approving_all_lists_every_call_and_remembers_exactly_those() -> None:
    views = [an_approval(f"call-{n}", title=f"Tool {n}", arguments={"notes": "x" * 900}) for n in (1, 2, 3)]
    view = approve_all_modal(Together(tuple(views), 0), ORIGIN)
    assert load_origin(view["private_metadata"]).subject == "call-1 call-2 call-3"
    assert [block["elements"][0]["elements"][0]["text"] for block in view["blocks"]] == [
        f"{n}. calendar › “Tool {n}”" for n in (1, 2, 3)
    ]
    assert view["submit"]["text"] == "Approve 3"
    assert "more characters)" in text_of(view)
    assert text_of(view).index("xxx") < text_of(view).index("Requested by Ana"), "values come first"


def test_whatever_approves_shows_what_would_change_and_why_it_is_asked_again() -> None:
    """As its card does: whoever approves there has not read that."""
    preview = Preview(source="calendar › preview_update_event", before={"room": "Blue"}, after={"room": "Red"})
    view = an_approval(presentation=CallPresentation(preview=preview), again="Asked again: calendar has changed since")
    for modal in (
        approve_all_modal(Together((view,), 0), ORIGIN),
        arguments_modal(view, 0, ORIGIN, decides=True),
        always_modal(view, ORIGIN),
    ):
        assert "Preview from calendar › preview_update_event" in text_of(modal)
        assert "Blue → Red" in text_of(modal)
        assert view.again in text_of(modal)


def test_more_than_fit_are_not_approved_and_that_is_said() -> None:
    views = [an_approval(f"{'delivery' * 10}.{n}") for n in range(60)]
    view = approve_all_modal(Together(tuple(views), 0), ORIGIN)
    remembered = load_origin(view["private_metadata"]).subject.split()
    assert len(view["private_metadata"]) <= 3_000
    assert f"{60 - len(remembered)} more requests" in text_of(view)
    assert view["submit"]["text"] == f"Approve {len(remembered)}"


def test_nothing_to_approve_is_said_without_a_button() -> None:
    assert "submit" not in approve_all_modal(Together((), 3), ORIGIN)


def test_whatever_approves_a_deletion_asks_once_more() -> None:
    """A button asks by itself; what submits a modal cannot, so that something has to be ticked."""
    harmless, deletion = an_approval("call-1"), an_approval("call-2", risk=("writes", "destroys"))
    form = Form("Edit", (FormField(name="x"),), {})

    def asked(view: Block) -> list[str]:
        ticks = [block for block in inputs_of(view) if block["element"]["type"] == "checkboxes"]
        assert not any(block.get("optional") for block in ticks)
        return [block["label"]["text"] for block in ticks]

    modals = (
        lambda view: arguments_modal(view, 0, ORIGIN, decides=True),
        lambda view: approve_all_modal(Together((view,), 0), ORIGIN),
        lambda view: edit_modal(form, view, ORIGIN, ANA),
        lambda view: always_modal(view, ORIGIN),
    )
    for modal in modals:
        assert asked(modal(harmless)) == []
        assert asked(modal(deletion)) == ["⚠️ This deletes data. It may not be possible to undo it."]
    assert asked(arguments_modal(deletion, 0, ORIGIN)) == []
    among = asked(approve_all_modal(Together((harmless, deletion), 0), ORIGIN))
    assert among == ["⚠️ 1 of these requests deletes data. It may not be possible to undo it."]


def test_an_edit_says_what_it_is_about_as_the_card_does() -> None:
    view = an_approval(server="calendar", tool="create_event")
    modal = edit_modal(Form("Edit", (FormField(name="x"),), {}), view, ORIGIN, ANA)
    assert modal["blocks"][:2] == reject_modal(view, ORIGIN)["blocks"][:2]
    assert "calendar › create_event" in text_of(modal)


def test_show_all_has_pages_with_a_way_back_and_forth() -> None:
    view = an_approval(arguments={"notes": "x" * 30_000})
    turns = []
    for page in (0, 1, 2, 99, -1):
        modal = arguments_modal(view, page, ORIGIN)
        turns.append([b["elements"][0]["value"] for b in modal["blocks"] if b["type"] == "actions"])
        assert view_mistakes(modal) == []
    assert turns == [
        ["1:call-1.1"],
        ["0:call-1.1", "2:call-1.1"],
        ["1:call-1.1"],
        ["1:call-1.1"],
        ["1:call-1.1"],
    ]


def test_the_shortcuts_form_quotes_the_message() -> None:
    view = ask_modal("the *message*", ORIGIN)
    assert view["blocks"][0]["elements"][0]["elements"][0]["text"] == "the *message*"
    assert inputs_of(view)[0]["block_id"] == "input:question"


def test_a_note_has_only_a_way_out() -> None:
    view = note_modal("A title that is far too long for it", "Too late.")
    assert len(view["title"]["text"]) <= 24
    assert (view["close"]["text"], "submit" in view) == ("Close", False)


# ------------------------------------------------------------------------------------------------ mistakes


def test_mistakes_are_shown_under_their_inputs() -> None:
    fields = (FormField(name="a"), FormField(name="b"))
    view = edit_modal(Form("Edit", fields, {}), an_approval(), ORIGIN, ANA)
    told = error_blocks({"b": "Too late.", "": "Not together.", "gone": "Required"}, view)
    assert told == {"input:b": "Too late.", "input:a": "Not together. Required"}


def test_without_an_input_there_is_nowhere_to_show_a_mistake() -> None:
    assert error_blocks({"": "No."}, note_modal("Note", "x")) == {}
