"""Forms in a real browser: typed inputs, mistakes beside their field, what was typed is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from bot.domain import ClarificationView
from graph.interrupts import FieldType, FormField
from tests.support.views import EVENT_FIELDS, an_approval
from tests.web.browsing import Window
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"


async def open_edit_form(product: Product, window: Window, **changes: object) -> None:
    await product.services.post(THREAD, an_approval("a", **changes))
    await window.open(THREAD)
    await window.button("Edit…").click()
    await expect(window.dialog).to_be_visible()


async def approve_with_changes(window: Window) -> None:
    await window.dialog.get_by_role("button", name="Save and approve", exact=True).click()


def values_of(product: Product) -> dict[str, object]:
    decision = product.services.decisions[-1]
    assert decision.choices[0].arguments is not None
    return dict(decision.choices[0].arguments)


async def test_what_nobody_touched_goes_back_as_it_came(product: Product, window: Window) -> None:
    arguments = {"name": "A\r\nB", "start": "2026-11-21T10:00:00+01:00", "duration": 60, "calendar": "primary"}
    await open_edit_form(product, window, arguments=arguments)
    await window.dialog.get_by_label("All day").check()
    await approve_with_changes(window)
    await expect(window.log).to_contain_text("Approved by Ana")
    values = values_of(product)
    assert {name: values[name] for name in arguments} == arguments
    assert values["all_day"] is True


async def test_an_edit_cannot_be_saved_before_something_changed(product: Product, window: Window) -> None:
    await open_edit_form(product, window)
    save = window.dialog.get_by_role("button", name="Save and approve", exact=True)
    await expect(save).to_be_disabled()
    name = window.dialog.get_by_label("Name")
    await name.fill("Standup")
    await expect(save).to_be_enabled()
    await name.fill("Team Meeting")
    await expect(save).to_be_disabled()
    await name.press("Control+Enter")
    await name.fill("Standup")
    await name.press("Control+Enter")
    await expect(window.log).to_contain_text("Approved by Ana")
    [decision] = product.services.decisions
    assert decision.choices[0].arguments is not None


async def test_whoever_moves_the_start_moves_the_end_until_they_change_the_end_themselves(window: Window) -> None:
    """A meeting that is moved keeps its length, and none ends before it begins."""
    fields = (
        FormField(name="start", label="Start", type=FieldType.DATE_TIME, default="2026-11-21T10:00:00+01:00"),
        FormField(name="end", label="End", type=FieldType.DATE_TIME, default="2026-11-21T10:45:00+01:00"),
    )
    services = window.product.services
    await services.post(THREAD, ClarificationView("c:1", "open", "When?", "", fields, "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Answer").click()
    start, end = window.dialog.get_by_label("Start"), window.dialog.get_by_label("End")
    await start.fill("2026-11-22T23:30")
    await expect(end).to_have_value("2026-11-23T00:15")
    await end.fill("2026-11-22T10:00")
    await start.fill("2026-11-22T11:00")
    await expect(end).to_have_value("2026-11-22T10:00")
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.dialog).to_contain_text("End must be after start.")
    assert services.answers == []
    await end.fill("2026-11-22T12:00")
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.log).to_contain_text("Answered")
    assert services.answers[0].values == {"start": "2026-11-22T11:00:00+01:00", "end": "2026-11-22T12:00:00+01:00"}


async def test_a_value_that_is_too_long_for_an_input_is_named_and_stays(product: Product, window: Window) -> None:
    """Rule 12: nobody is to believe that they changed all there is."""
    arguments = {"name": "A" * 50_001, "start": "2026-11-21T10:00:00+01:00", "duration": 60, "calendar": "primary"}
    await open_edit_form(product, window, arguments=arguments)
    await expect(window.dialog).to_contain_text("kept as is: Name.")
    await expect(window.dialog.get_by_label("Name")).to_have_count(0)
    await window.dialog.get_by_label("All day").check()
    await approve_with_changes(window)
    await expect(window.log).to_contain_text("Approved by Ana")
    assert "name" not in values_of(product)


async def test_typed_inputs_give_typed_values_back(product: Product, window: Window) -> None:
    await open_edit_form(product, window)
    dialog = window.dialog
    await dialog.get_by_label("Name").fill("Standup")
    await dialog.get_by_label("Start").fill("2026-11-22T09:30")
    await dialog.get_by_label("Duration").fill("15")
    await dialog.get_by_label("Calendar").select_option("team")
    await dialog.get_by_label("All day").check()
    await dialog.get_by_label("Attendees").fill('["bob@example.com"]')
    await approve_with_changes(window)
    await expect(window.log).to_contain_text("Approved by Ana")
    assert values_of(product) == {
        "name": "Standup",
        "start": "2026-11-22T09:30:00+01:00",
        "duration": "15",
        "calendar": "team",
        "description": "",
        "all_day": True,
        "attendees": '["bob@example.com"]',
    }


async def test_a_value_that_fits_no_typed_input_is_shown_as_text(product: Product, window: Window) -> None:
    await open_edit_form(
        product, window, arguments={"name": "x", "start": "next Tuesday", "duration": "an hour", "calendar": "?"}
    )
    await expect(window.dialog.get_by_label("Start")).to_have_value("next Tuesday")
    await expect(window.dialog.get_by_label("Duration")).to_have_value("an hour")
    await expect(window.dialog.get_by_label("Calendar")).to_have_value("?")


async def test_the_servers_mistakes_are_shown_beside_their_fields_and_the_input_is_kept(
    product: Product, window: Window
) -> None:
    await open_edit_form(product, window)
    product.services.mistakes = {"duration": "At most 480.", "": "It overlaps with Lunch."}
    await window.dialog.get_by_label("Name").fill("Standup")
    await window.dialog.get_by_label("Duration").fill("9999")
    await approve_with_changes(window)
    duration = window.dialog.get_by_label("Duration")
    await expect(duration).to_have_attribute("aria-invalid", "true")
    await expect(duration).to_have_accessible_description("In minutes. At most 480.")
    await expect(duration).to_be_focused()
    await expect(window.dialog).to_contain_text("It overlaps with Lunch.")
    await expect(window.dialog.get_by_label("Name")).to_have_value("Standup")
    window.complaints.clear()  # the browser's own about the 422
    product.services.mistakes = {}
    await approve_with_changes(window)
    await expect(window.log).to_contain_text("Approved by Ana")


async def test_what_is_missing_or_no_json_is_said_before_anything_is_sent(product: Product, window: Window) -> None:
    await open_edit_form(product, window)
    await window.dialog.get_by_label("Name").fill("")
    await window.dialog.get_by_label("Attendees").fill("[")
    await approve_with_changes(window)
    await expect(window.dialog).to_contain_text("Required")
    await expect(window.dialog).to_contain_text("This is not valid JSON")
    assert product.services.decisions == []


async def test_invisible_characters_in_a_value_are_pointed_out(product: Product, window: Window) -> None:
    await open_edit_form(product, window, arguments={"name": "safe\u202egnp.exe"})
    await expect(window.dialog).to_contain_text("Contains invisible characters: safe⟨U+202E⟩gnp.exe")


async def test_who_may_not_edit_is_told_on_the_card(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await expect(window.button("Edit…")).to_be_visible()
    product.services.may_decide["a"] = {"web:ben"}  # since the card was drawn
    await window.button("Edit…").click()
    await expect(window.log).to_contain_text("You may not edit this.")
    await expect(window.dialog).to_have_count(0)
    window.complaints.clear()  # the browser's own about the 403


async def test_a_question_is_answered_in_a_dialog_with_typed_fields(product: Product, window: Window) -> None:
    view = ClarificationView("c:1", "open", "When shall it be?", "I need a day.", EVENT_FIELDS[:2], "Ana", "web:ana")
    await product.services.post(THREAD, view)
    await window.open(THREAD)
    await window.button("Answer").click()
    await window.dialog.get_by_label("Name").fill("Standup")
    await window.dialog.get_by_label("Start").fill("2026-11-22T09:30")
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.log).to_contain_text("Answered")
    [answer] = product.services.answers
    assert answer.values == {"name": "Standup", "start": "2026-11-22T09:30"}


async def test_a_field_of_any_name_gives_back_what_was_typed(product: Product, window: Window) -> None:
    """Rule 12: an edit of it would be lost without a word."""
    fields = (FormField(name="__proto__", label="Amount"), FormField(name="constructor", label="Note"))
    await product.services.post(THREAD, ClarificationView("c:1", "open", "What?", "", fields, "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Answer").click()
    await window.dialog.get_by_label("Amount").fill("5")
    await window.dialog.get_by_label("Note").fill("x")
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.log).to_contain_text("Answered")
    [answer] = product.services.answers
    assert answer.values == {"__proto__": "5", "constructor": "x"}


async def test_every_kind_of_field_has_an_input_and_its_default(product: Product, window: Window) -> None:
    fields = (
        FormField(name="t", label="Some text", default="abc"),
        FormField(name="c", label="A choice", type=FieldType.CHOICE, options=("x", "y"), default="y"),
        FormField(name="d", label="A date", type=FieldType.DATE, default="2026-11-21"),
        FormField(name="h", label="A time", type=FieldType.TIME, default="09:30"),
        FormField(name="n", label="A number", type=FieldType.NUMBER, default=1.5),
        FormField(name="b", label="Yes or no", type=FieldType.YES_NO, default=True),
    )
    await product.services.post(THREAD, ClarificationView("c:1", "open", "What?", "", fields, "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Answer").click()
    dialog = window.dialog
    kinds = {"Some text": "text", "A date": "date", "A time": "time", "A number": "number", "Yes or no": "checkbox"}
    for label, kind in kinds.items():
        await expect(dialog.get_by_label(label)).to_have_attribute("type", kind)
    await dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.log).to_contain_text("Answered")
    [answer] = product.services.answers
    assert answer.values == {"t": "abc", "c": "y", "d": "2026-11-21", "h": "09:30", "n": 1.5, "b": True}


async def test_an_answered_form_has_one_line_for_each_field(product: Product, window: Window) -> None:
    filled_in = (("Title", "Standup"), ("Date", "Thu 26 Nov"), ("Note", ""))
    question = ClarificationView(
        "c:1", "answered", "What?", "", (), "Ana", "web:ana", "Title: Standup\nDate: 2026-11-26"
    )
    await product.services.post(THREAD, replace(question, filled_in=filled_in))
    await window.open(THREAD)
    card = window.log.get_by_role("article")
    await expect(card.locator("dt")).to_have_text(["Title", "Date", "Note"])
    await expect(card.locator("dd")).to_have_text(["Standup", "Thu 26 Nov", "(empty)"])
    await expect(card).to_contain_text("Answered by Ana")
    await expect(card).not_to_contain_text("2026-11-26")


async def test_after_an_answer_the_focus_is_on_its_card(product: Product, window: Window) -> None:
    fields = (FormField(name="t", label="Some text"),)
    await product.services.post(THREAD, ClarificationView("c:1", "open", "What?", "", fields, "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Answer").click()
    await window.dialog.get_by_label("Some text").fill("abc")
    await window.dialog.get_by_label("Some text").press("Control+Enter")
    await expect(window.log).to_contain_text("Answered")
    await expect(window.log.get_by_role("article")).to_be_focused()


async def test_a_question_without_fields_is_answered_in_the_message_box(product: Product, window: Window) -> None:
    await product.services.post(THREAD, ClarificationView("c:1", "open", "Which one?", "", (), "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Answer").click()
    await expect(window.box).to_be_focused()


async def test_a_question_to_somebody_else_only_says_whom_it_waits_for(product: Product, window: Window) -> None:
    await product.services.post(THREAD, ClarificationView("c:1", "open", "Which one?", "", (), "Ben", "web:ben"))
    await window.open(THREAD)
    await expect(window.log).to_contain_text("Only Ben can answer.")
    await expect(window.button("Answer")).to_have_count(0)
