"""The first conversations, held by a person with a mouse and a keyboard in a real browser, over the whole product."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Locator, expect

from tests.browser.conftest import Served
from tests.web.browsing import Window, window_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def card(window: Window, text: str) -> Locator:
    """The newest approval card with this text on it."""
    return window.log.get_by_role("article").filter(has_text=text).filter(has_text=re.compile("calendar|tasks")).last


def waiting(window: Window) -> Locator:
    """Approve buttons of cards that wait."""
    return window.log.get_by_role("button", name="Approve", exact=True)


async def approve(where: Window | Locator) -> None:
    within = where.log if isinstance(where, Window) else where
    await within.get_by_role("button", name="Approve", exact=True).click()


async def test_what_is_on_my_calendar(window: Window) -> None:
    await window.say("what is on my calendar")
    await expect(window.log).to_contain_text(re.compile("calendar", re.IGNORECASE))
    await expect(window.log).to_contain_text(re.compile("nothing|no events", re.IGNORECASE))
    await expect(waiting(window)).to_have_count(0)


async def test_schedule_something_asks_with_a_form(window: Window) -> None:
    await window.say("schedule something")
    await window.button("Answer").click()
    await window.dialog.get_by_role("textbox").first.fill("Planning")
    await window.dialog.locator("input[type=date]").fill("2030-01-07")
    await window.dialog.locator("input[type=time]").fill("14:00")
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await approve(window)
    await expect(window.log).to_contain_text(re.compile("done.*planning", re.IGNORECASE))


async def test_create_a_meeting(window: Window) -> None:
    await window.say("create a meeting called Standup tomorrow at 9am")
    await expect(window.log).to_contain_text("create_event")
    await approve(window)
    await expect(window.log).to_contain_text("Approved")
    await expect(window.log).to_contain_text(re.compile("done", re.IGNORECASE))


async def test_two_events_of_which_one_is_approved_and_one_rejected(window: Window) -> None:
    await window.say("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    await expect(waiting(window)).to_have_count(2)
    await approve(card(window, "Team Meeting"))
    await expect(card(window, "Team Meeting")).to_contain_text("Approved")
    await card(window, "Lunch with Bob").get_by_role("button", name="Reject…", exact=True).click()
    await window.dialog.get_by_role("button", name="Reject", exact=True).click()
    await expect(card(window, "Lunch with Bob")).to_contain_text("Rejected")
    await expect(window.log).to_contain_text(re.compile("lunch with bob.*rejected", re.IGNORECASE | re.DOTALL))


async def test_a_rejection_with_a_reason_is_followed_by_a_corrected_proposal(window: Window) -> None:
    await window.say("create a meeting called Standup tomorrow at 9am")
    await window.log.get_by_role("button", name="Reject…", exact=True).click()
    await window.dialog.get_by_label("Reason").fill("should be 10am")
    await window.dialog.get_by_role("button", name="Reject", exact=True).click()
    await expect(window.log).to_contain_text("10:00–11:00")
    await expect(waiting(window)).to_have_count(1)  # the first card has no buttons any more
    await approve(window)
    await expect(window.log).to_contain_text(re.compile("done.*standup", re.IGNORECASE))


async def test_clarification_first_then_the_move_then_the_new_event(window: Window) -> None:
    await window.say("create a meeting called Review today at 3pm")
    await approve(window)
    await expect(window.log).to_contain_text(re.compile("done", re.IGNORECASE))
    await window.say("schedule something for me, and move the meeting at 3pm to 4pm")
    await expect(window.button("Answer")).to_be_visible()
    await expect(waiting(window)).to_have_count(0)
    await window.say("Retro tomorrow at 11am")
    await expect(card(window, "update_event")).to_be_visible()
    await approve(window)
    await expect(card(window, "Retro")).to_contain_text("create_event")
    await approve(window)
    await expect(card(window, "Retro")).to_contain_text("Approved")


async def test_tasks_are_added_listed_and_completed(window: Window) -> None:
    await window.say("add a task to buy milk")
    await approve(window)
    await expect(window.log).to_contain_text(re.compile("done", re.IGNORECASE))
    await window.say("list my tasks")
    await expect(window.log.get_by_role("listitem").filter(has_text="buy milk").first).to_be_visible()
    await window.say("complete the task buy milk")
    await expect(waiting(window)).to_have_count(1)
    await approve(window)
    await expect(waiting(window)).to_have_count(0)


async def test_approve_all_and_edit(window: Window) -> None:
    await window.say("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    await expect(waiting(window)).to_have_count(2)
    await card(window, "Lunch with Bob").get_by_role("button", name="Edit…", exact=True).click()
    await window.dialog.get_by_label("Title", exact=True).fill("Lunch with Alice")
    await window.dialog.get_by_role("button", name="Save and approve", exact=True).click()
    await expect(card(window, "Lunch with Alice")).to_contain_text("Approved")
    await window.say("create 2 events: Breakfast at 8am and Dinner at 7pm")
    await expect(window.button("Approve all 2…")).to_be_visible()
    await expect(waiting(window).last).to_be_in_viewport(ratio=1)
    await window.button("Approve all 2…").click()
    await window.dialog.get_by_role("button", name="Approve 2").click()
    await expect(waiting(window)).to_have_count(0)
    await expect(card(window, "Dinner")).to_contain_text("Approved")


async def test_deleting_needs_a_second_person(window: Window, product: Served, chrome: Chromium) -> None:
    await window.say("create a meeting called Standup tomorrow at 9am")
    await approve(window)
    await expect(window.log).to_contain_text(re.compile("done", re.IGNORECASE))
    await window.say("delete the event Standup")
    await expect(card(window, "delete_event")).to_contain_text("someone other than you")
    await expect(card(window, "delete_event").get_by_role("button", name="Approve")).to_have_count(0)
    await card(window, "delete_event").get_by_role("button", name="More actions").click()
    await expect(window.page.get_by_role("menuitem", name="Withdraw…")).to_be_visible()
    await window.page.keyboard.press("Escape")
    async with window_of(product, chrome) as other:  # type: ignore[arg-type]
        await other.become("Ben")
        await expect(other.page.get_by_role("navigation").get_by_text("Standup")).to_have_count(0)
        await other.page.get_by_role("link", name="Inbox, 1 needs you").click()
        await other.page.get_by_role("link", name="Open conversation").click()
        await expect(other.page.get_by_text("because you can approve a request in it.")).to_be_visible()
        await expect(other.box).to_be_hidden()
        await expect(other.log).not_to_contain_text("create a meeting")
        await approve(other)
        await expect(other.dialog).to_contain_text("This deletes data.")
        await other.dialog.get_by_role("button", name="Approve", exact=True).click()
        await expect(card(other, "delete_event")).to_contain_text("Approved")
    await expect(card(window, "delete_event")).to_contain_text("Ben")


async def test_the_page_says_that_no_language_model_is_connected(window: Window) -> None:
    await expect(window.page.get_by_text("Demo mode. Set OPENAI_API_KEY for a real model.")).to_be_visible()
    await window.say("write me a poem")
    await expect(window.log).to_contain_text("language model")
