"""Deciding on the page: with the keyboard, with a note, six of seven, what deletes, and what failed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Locator, expect

from bot.domain import CallActivity, ChangeView, ConversationReference, GrantView, Notice, Said
from graph.presentation import CallPresentation, PresentedArgument, Preview
from tests.support.views import NOW, an_approval, an_outcome
from tests.web.accessibility import needs_axe, violations
from tests.web.browsing import Window
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"
TRUSTED = CallPresentation(trusted=True, main="name", arguments={"name": PresentedArgument(kind="text")})


def dialog_button(window: Window, name: str) -> Locator:
    return window.dialog.get_by_role("button", name=name, exact=True)


async def test_the_menu_is_used_with_the_keyboard_and_gives_the_focus_back(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", requester_ids=("web:ana",), always_offered=True))
    await window.open(THREAD)
    button = window.button("More actions")
    await button.focus()
    await button.press("Enter")
    entries = window.page.get_by_role("menuitem")
    await expect(entries).to_have_text(["Show all", "Allow for a while…", "Ask someone else…", "Withdraw…"])
    await expect(entries.first).to_be_focused()
    await expect(button).to_have_attribute("aria-expanded", "true")
    await window.page.keyboard.press("ArrowUp")
    await expect(entries.last).to_be_focused()
    await window.page.keyboard.press("Home")
    await window.page.keyboard.press("ArrowDown")
    await expect(entries.nth(1)).to_be_focused()
    await window.page.keyboard.press("Escape")
    await expect(entries).to_have_count(0)
    await expect(button).to_be_focused()
    await window.page.keyboard.press("ArrowUp")
    await window.page.keyboard.press("Enter")
    await expect(dialog_button(window, "Withdraw")).to_be_visible()
    await window.page.keyboard.press("Escape")
    await expect(button).to_be_focused()


async def test_a_card_with_the_focus_is_decided_by_letters_and_keeps_the_focus(
    product: Product, window: Window
) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    card = window.log.get_by_role("article")
    await expect(window.button("Approve")).to_be_visible()
    await card.focus()
    await window.page.keyboard.press("e")
    await expect(dialog_button(window, "Save and approve")).to_be_visible()
    await window.page.keyboard.press("Escape")
    await expect(window.dialog).to_have_count(0)
    await window.page.keyboard.press("r")
    reason = window.dialog.get_by_label("Reason, or what to do instead")
    await reason.press_sequentially("a real reason")
    await reason.press("Control+Enter")
    await expect(window.log).to_contain_text("Rejected by Ana")
    await expect(window.log).to_contain_text("Reason: a real reason")
    await expect(window.log.get_by_role("article")).to_be_focused()


async def test_letters_that_are_typed_decide_nothing(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await expect(window.button("Approve")).to_be_visible()
    await window.box.press_sequentially("are")
    await window.log.get_by_role("article").focus()
    await window.page.keyboard.press("Control+a")
    await expect(window.dialog).to_have_count(0)
    assert product.services.decisions == []


async def test_what_deletes_is_asked_once_more(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", risk=("destroys",)))
    await window.open(THREAD)
    await window.button("Approve").click()
    await expect(window.dialog).to_contain_text("This deletes data.")
    await expect(window.dialog).to_contain_text("Team Meeting")
    await window.page.keyboard.press("Escape")
    await expect(window.dialog).to_have_count(0)
    assert product.services.decisions == []
    await window.button("Approve").click()
    await dialog_button(window, "Approve").click()
    await expect(window.log).to_contain_text("Approved by Ana")


async def test_six_of_seven_are_approved_in_one_list(product: Product, window: Window) -> None:
    for number in range(7):
        await product.services.post(THREAD, an_approval(f"a{number}", arguments={"name": f"Event {number}"}))
    await window.open(THREAD)
    await window.page.locator("#approve-all").click()
    await expect(window.dialog.get_by_role("listitem")).to_have_count(7)
    await expect(window.dialog.get_by_role("listitem").nth(3)).to_contain_text("Event 3")
    await expect(window.dialog.get_by_role("heading", name="Approve 7 requests?")).to_be_visible()
    await window.dialog.get_by_role("checkbox").nth(4).press("Space")
    await expect(window.dialog.get_by_role("heading", name="Approve 6 requests?")).to_be_visible()
    await dialog_button(window, "Approve 6").press("Enter")
    await expect(window.log.get_by_text("Approved by Ana")).to_have_count(6)
    [decision] = product.services.decisions
    assert decision.approval_ids == ("a0", "a1", "a2", "a4", "a5", "a6")


async def test_whatever_approves_shows_what_would_change_and_why_it_is_asked_again(
    product: Product, window: Window
) -> None:
    """As its card does: whoever approves in a list has not read that."""
    preview = Preview(source="calendar › preview_update_event", before={"room": "Blue"}, after={"room": "Red"})
    again = "Asked again: calendar has changed since"
    view = an_approval("a", again=again, always_offered=True, presentation=CallPresentation(preview=preview))
    await product.services.post(THREAD, view)
    await product.services.post(THREAD, an_approval("b"))
    await window.open(THREAD)
    await window.button("Approve all 2…").click()
    await expect(window.dialog).to_contain_text("Preview from calendar › preview_update_event")
    await expect(window.dialog.get_by_role("row", name="Room Blue Red")).to_be_visible()
    await expect(window.dialog).to_contain_text(again)
    await window.page.keyboard.press("Escape")
    for entry in ("Show all", "Allow for a while…"):
        await window.button("More actions").first.click()
        await window.page.get_by_role("menuitem", name=entry).click()
        await expect(window.dialog.get_by_role("row", name="Room Blue Red")).to_be_visible()
        await expect(window.dialog).to_contain_text(again)
        await window.page.keyboard.press("Escape")


async def test_where_nothing_is_ticked_nothing_can_be_approved(product: Product, window: Window) -> None:
    for each in "ab":
        await product.services.post(THREAD, an_approval(each))
    await window.open(THREAD)
    await window.page.locator("#approve-all").click()
    await window.dialog.get_by_label("All of them").uncheck()
    await expect(dialog_button(window, "Approve")).to_be_disabled()
    await window.page.keyboard.press("Control+Enter")
    await window.page.keyboard.press("Escape")
    assert product.services.decisions == []


async def test_a_note_goes_with_an_approval(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await window.button("More actions").click()
    await window.page.get_by_role("menuitem", name="Show all").click()
    await expect(window.dialog).to_contain_text("everything else asks the requester")
    await window.dialog.get_by_label("Add a note for the assistant (optional)").fill("Invite Bob, too.")
    await dialog_button(window, "Approve").click()
    await expect(window.log).to_contain_text("Approved by Ana")
    assert [choice.note for choice in product.services.decisions[0].choices] == ["Invite Bob, too."]


async def test_who_may_not_decide_sees_whom_it_waits_for_and_can_see_all_of_it(
    product: Product, window: Window
) -> None:
    product.services.may_decide["a"] = {"web:ben"}
    await product.services.post(THREAD, an_approval("a", may_decide="Ben"))
    await window.open(THREAD)
    await expect(window.log).to_contain_text("Waiting for Ben")
    for name in ("Approve", "Reject…", "Edit…"):
        await expect(window.button(name)).to_have_count(0)
    await window.button("More actions").click()
    await expect(window.page.get_by_role("menuitem")).to_have_text(["Show all"])
    await window.page.get_by_role("menuitem").click()
    await expect(window.dialog).to_contain_text("2026-11-21T10:00:00+01:00")
    await expect(dialog_button(window, "Approve")).to_have_count(0)


async def test_what_failed_is_retried_by_its_requester(product: Product, window: Window) -> None:
    failed = an_approval(
        "a",
        status="approved",
        decided_by=("Ana",),
        result="Failed: end must be after start",
        result_tone="error",
        retry_offered=True,
        requester_ids=("web:ana",),
    )
    await product.services.post(THREAD, failed)
    await product.services.post(THREAD, replace(failed, approval_id="b", requester_ids=("web:ben",)))
    await window.open(THREAD)
    await expect(window.log.locator(".result.error")).to_have_count(2)
    await window.button("Retry").click()
    await expect(window.log).to_contain_text("Asked again.")
    await expect(window.log.locator("article").first).not_to_contain_text("Approved.")
    assert [(each.approval_id, each.person.person_id) for each in product.services.retries] == [("a", "web:ana")]


async def test_a_change_that_nobody_was_asked_about_is_a_line_whose_permission_can_be_revoked(
    product: Product, window: Window
) -> None:
    view = ChangeView(
        "c",
        "tasks",
        "add_task",
        "Add task",
        {"name": "milk"},
        "Ana",
        "web:ana",
        "Done",
        grant_id="g1",
        presentation=TRUSTED,
    )
    await product.services.post(THREAD, view)
    await product.services.post(THREAD, replace(view, attempt_id="d", requester_id="web:ben"))
    await window.open(THREAD)
    await expect(window.log).to_contain_text("Add task: milk · Done")
    product.services.given["g1"] = ("web:ana", GrantView("g1", "tasks", "add_task", {"name": "milk"}, NOW))
    await window.button("Revoke").click()
    await expect(window.log.locator(".click-answer")).not_to_be_empty()
    assert product.services.given == {}


async def test_the_time_that_people_took_to_approve_is_not_a_step_s(product: Product, window: Window) -> None:
    calls = (
        CallActivity("1", "calendar", "list_events", "List events", "done", 1.0, 2.5, "2 events", TRUSTED),
        CallActivity("2", "calendar", "delete_event", "Delete event", "done", 602.0, 603.0, "", TRUSTED),
    )
    await product.services.post(THREAD, Said("Deleted.", activity=calls))
    await window.open(THREAD)
    await expect(window.log.get_by_text("2 steps · 2.5 s", exact=True)).to_be_visible()


async def test_what_was_done_for_an_answer_is_behind_a_line(product: Product, window: Window) -> None:
    calls = (
        CallActivity("1", "calendar", "list_events", "List events", "done", 1.0, 2.5, "2 events", TRUSTED),
        CallActivity("2", "tasks", "list_tasks", "List tasks", "failed", 2.0, 3.1, "No connection", TRUSTED),
    )
    await product.services.post(THREAD, Said("You have two.", activity=calls))
    await window.open(THREAD)
    await expect(window.log.get_by_text("No connection")).to_be_hidden()
    await window.log.get_by_text("2 steps · 2.1 s · 1 failed").click()
    steps = window.log.get_by_role("listitem")
    await expect(steps.first).to_contain_text("List events · Donecalendar › list_events · 2 events")
    await expect(steps.last).to_contain_text("No connection")


async def test_what_runs_is_listed_while_it_runs_and_not_afterwards(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await expect(window.page.get_by_text("What can I do for you?")).to_be_visible()
    live = product.sender.live(THREAD, ConversationReference("web", THREAD), "web:ana")
    live.status("Looking…")
    live.task("1", "List events", "running")
    now = window.page.locator(".activity-now")
    await now.get_by_text("1 step").click()
    await expect(now.get_by_role("listitem")).to_contain_text("List events · Running")
    live.task("1", "List events", "done")
    await expect(now.get_by_role("listitem")).to_contain_text("List events · Done")  # it stays open
    await window.page.reload()
    await expect(now.get_by_text("1 step")).to_be_visible()
    live.end(waiting=False)
    await expect(now.get_by_text("1 step")).to_have_count(0)


async def test_an_answer_code_and_values_are_copied(product: Product, window: Window) -> None:
    await window.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await product.services.post(THREAD, Said("**Run** this:\n\n```sh\nmake\ttest\n```"))
    await window.open(THREAD)
    read = "navigator.clipboard.readText()"
    await window.log.get_by_role("button", name="Copy code").click()
    await expect(window.log.get_by_text("Copied")).to_be_visible()
    assert await window.page.evaluate(read) == "make\ttest"
    await window.log.get_by_role("button", name="Copy message").click()
    await expect(window.log.get_by_text("Copied")).to_have_count(2)
    assert await window.page.evaluate(read) == "**Run** this:\n\n```sh\nmake\ttest\n```"
    await window.page.context.clear_permissions()


async def test_what_an_error_ended_is_sent_again(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await window.say("What is on today?")
    await expect(window.log).to_contain_text("What is on today?")
    at = 4_000_000_000.0
    await product.services.post(THREAD, Notice("Model provider trouble. Try again.", "error"), at=at)
    await window.button("Retry").click()
    await expect(window.log.get_by_text("What is on today?")).to_have_count(2)
    await expect(window.button("Retry")).to_have_count(1)
    assert [message.text for message in product.services.messages] == ["What is on today?"] * 2


@needs_axe
async def test_axe_finds_nothing_on_any_state_of_a_card(product: Product, window: Window) -> None:
    services = product.services
    settled = an_approval("b", status="approved", decided_by=("Ana",), decided_at=1.0, result="Done.")
    await services.post(THREAD, an_approval("a", risk=("writes", "destroys"), masks=1, quote="do it"))
    await services.post(THREAD, replace(settled, asked_arguments={"name": "Standup"}, edited_by="Ana"))
    failed = replace(settled, approval_id="c", result="Failed: no", result_tone="error", retry_offered=True)
    await services.post(THREAD, replace(failed, requester_ids=("web:ana",)))
    for status in ("rejected", "expired", "superseded", "withdrawn", "void"):
        await services.post(THREAD, replace(settled, approval_id=status, status=status))  # type: ignore[arg-type]
    await services.post(THREAD, an_outcome(requester_id="web:ana"))
    await services.post(THREAD, Said("#### Deep\n\n| a | b |\n|-|-:|\n| 1 | 2 |\n\n```py\nx\n```\n\n# Top"))
    await window.open(THREAD)
    await expect(window.button("Approve")).to_be_visible()
    for summary in await window.log.locator("details.more > summary").all():
        await summary.click()
    for scheme in ("light", "dark"):
        await window.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in (1280, 390):
            await window.page.set_viewport_size({"width": width, "height": 900})
            assert await violations(window.page) == []
    await window.button("More actions").click()
    assert await violations(window.page) == []
    await window.page.get_by_role("menuitem", name="Show all").click()
    await expect(window.dialog).to_be_visible()
    assert await violations(window.page) == []
    await window.page.emulate_media(color_scheme=None)
    await window.page.set_viewport_size({"width": 1200, "height": 800})
