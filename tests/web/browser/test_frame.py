"""The frame of the page: finding, renaming and deleting conversations, settings, keys, and what is missing."""

from __future__ import annotations

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import expect

from bot.domain import MessageView, Person, Said
from tests.support.views import an_approval
from tests.web.browsing import Window, window_of
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
THREAD = "web:one"


async def test_conversations_stand_in_groups_by_day_and_a_search_narrows_them(product: Product, window: Window) -> None:
    now = time.time()
    for thread_id, days in (("web:new", 0), ("web:week", 4), ("web:old", 40)):
        await product.services.post(thread_id, Said("Hello"), at=now - days * 86_400)
        product.services.titles[thread_id] = f"About {thread_id[4:]}"
    product.sender.hub.threads_changed()
    threads = window.page.get_by_role("region", name="Your conversations")
    await expect(threads.get_by_role("heading")).to_have_text(["Today", "Previous 7 days", "Older"])
    await window.page.locator("#title").click()
    await window.page.keyboard.press("/")
    await window.page.keyboard.type("WEEK")
    await expect(threads.get_by_role("link")).to_have_count(1)
    await expect(threads.get_by_role("heading")).to_have_text("1 result")
    await window.page.get_by_role("searchbox", name="Search conversations").fill("nowhere")
    await expect(window.page.get_by_text("Nothing found for “nowhere”")).to_be_visible()
    await window.page.keyboard.press("Escape")
    await expect(threads.get_by_role("link")).to_have_count(3)


async def test_a_conversation_is_renamed_and_deleted_from_its_menu_and_asks_once(
    product: Product, window: Window
) -> None:
    await product.services.post(THREAD, Said("Hello"))
    await window.open(THREAD)
    await window.button("Conversation options").click()
    await window.page.get_by_role("menuitem", name="Rename…").click()
    await window.dialog.get_by_label("Title").fill("Summer trip")
    await window.dialog.get_by_role("button", name="Rename", exact=True).click()
    await expect(window.page.locator("#title")).to_have_text("Summer trip")
    await window.button("Conversation options").click()
    await window.page.keyboard.press("ArrowDown")
    await window.page.keyboard.press("Enter")
    await window.dialog.get_by_role("button", name="Cancel").click()
    assert not product.services.deleted
    await window.button("Conversation options").click()
    await window.page.get_by_role("menuitem", name="Delete…").click()
    await window.dialog.get_by_role("button", name="Delete", exact=True).click()
    await expect(window.page.locator("#title")).to_have_text("New conversation")
    await expect(window.page.get_by_text("No conversations yet")).to_be_visible()
    assert product.services.deleted == {THREAD}
    await window.page.evaluate("location.hash = encodeURIComponent('web:one')")
    await expect(window.page.get_by_text("This conversation doesn’t exist, or you can’t see it.")).to_be_visible()
    window.complaints.clear()  # the browser's own about the 404


async def test_a_conversation_that_is_not_ones_own_any_more_is_asked_for_no_more_and_another_is_offered(
    product: Product, chrome: Chromium
) -> None:
    async with window_of(product, chrome) as window:
        await window.page.clock.install()
        await product.services.post(THREAD, Said("Hello"))
        await window.open(THREAD)
        await expect(window.log).to_contain_text("Hello")
        asked_for: list[str] = []
        window.page.on("request", lambda request: asked_for.append(request.url))
        await product.services.delete("k", THREAD, Person("web:ana", "Ana"), ())
        product.sender.thread_changed(THREAD)
        gone = window.page.get_by_text("This conversation doesn’t exist, or you can’t see it.")
        await expect(gone).to_be_visible()
        await expect(window.log.get_by_text("Hello")).to_have_count(0)
        until_then = sum("thread=web%3Aone" in url for url in asked_for)
        assert until_then <= 3
        await window.page.clock.run_for(60_000)
        product.services.of["web:another"] = "web:ben"
        await product.services.post("web:another", an_approval("a", handed_to=("web:ana",)))
        product.sender.hub.threads_changed()
        await expect(window.page).to_have_title("(1) Countersign")
        assert sum("thread=web%3Aone" in url for url in asked_for) == until_then
        window.complaints.clear()  # the browser's own about the 404
        await expect(window.button("Start a new conversation")).to_be_focused()
        await window.button("Start a new conversation").click()
        await expect(gone).to_be_hidden()
        await window.say("Hello again")
        await expect(window.log).to_contain_text("Hello again")


async def test_a_conversation_that_becomes_ones_own_again_is_shown(product: Product, window: Window) -> None:
    product.services.of["web:theirs"] = "web:ben"
    product.services.deleted.add("web:theirs")
    await window.page.evaluate("location.hash = encodeURIComponent('web:theirs')")
    gone = window.page.get_by_text("This conversation doesn’t exist, or you can’t see it.")
    await expect(gone).to_be_visible()
    product.services.deleted.clear()
    await product.services.post("web:theirs", an_approval("a", requester="Ben", handed_to=("web:ana",)))
    product.sender.hub.threads_changed()
    await expect(window.log).to_contain_text("Requested by Ben")
    await expect(gone).to_be_hidden()
    window.complaints.clear()  # the browser's own about the 404


async def test_a_chosen_theme_is_there_before_anything_is_painted_and_stays(product: Product, chrome: Chromium) -> None:
    async with window_of(product, chrome, color_scheme="light") as window:
        await window.button("Settings…").click()
        await window.dialog.get_by_role("radio", name="Dark").check()
        await expect(window.page.locator("html")).to_have_attribute("data-theme", "dark")
        await window.page.reload(wait_until="commit")
        await expect(window.page.locator("html")).to_have_attribute("data-theme", "dark")
        assert await window.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 23)"


async def test_a_chosen_time_zone_is_what_times_are_shown_in_and_what_the_server_is_told(
    product: Product, chrome: Chromium
) -> None:
    async with window_of(product, chrome, locale="en-GB") as window:
        await window.button("Settings…").click()
        await window.dialog.get_by_label("Time zone").fill("Asia/Tokyo")
        await window.dialog.get_by_label("Time zone").blur()
        await window.dialog.get_by_role("button", name="Close").click()
        await expect(window.dialog).to_have_count(0)
        await expect(window.box).to_be_visible()
        await window.say("hello")
        await expect(window.log.get_by_text("hello")).to_be_visible()
        await expect(window.log.get_by_text("Sending…")).to_have_count(0)
        assert [message.author.time_zone for message in product.services.messages] == ["Asia/Tokyo"]
        today = datetime.now(ZoneInfo("Asia/Tokyo")).replace(hour=9, minute=5, second=0, microsecond=0)
        await product.services.post("web:another", Said("At five past nine in Tokyo"), at=today.timestamp())
        await window.open("web:another")
        await expect(window.log.locator("time").first).to_have_text("9:05")


async def test_a_draft_survives_a_reload_and_is_gone_after_it_is_sent(window: Window) -> None:
    await window.open(THREAD)
    await window.box.fill("half a thought")
    await window.page.reload()
    await expect(window.box).to_have_value("half a thought")
    await window.box.press("Control+Enter")
    await expect(window.log.get_by_text("half a thought")).to_be_visible()
    await window.page.reload()
    await expect(window.box).to_have_value("")


async def test_a_question_mark_lists_the_keys_but_not_where_somebody_types(window: Window) -> None:
    await window.box.press("?")
    await expect(window.dialog).to_have_count(0)
    await window.page.locator("#title").click()
    await window.page.keyboard.press("?")
    await expect(window.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await window.page.keyboard.press("Escape")
    await expect(window.dialog).to_have_count(0)
    await window.page.locator("#title").click()
    await window.page.keyboard.press("g")
    await window.page.keyboard.press("i")
    await expect(window.page.get_by_text("You’re all caught up")).to_be_visible()


async def test_a_message_in_the_middle_of_an_answer_stands_below_it_as_queued(product: Product, window: Window) -> None:
    await window.open(THREAD)
    live = product.sender.live(THREAD, product.services.place, "web:ana")
    live.status("Thinking…")
    live.text("web:one:m0.0", "You have")
    await expect(window.page.get_by_text("You have", exact=True)).to_be_visible()
    await window.say("And tomorrow?")
    queued = window.page.get_by_role("group", name="Queued")
    await expect(queued).to_contain_text("And tomorrow?")
    live.end(waiting=False)
    await expect(queued).to_be_empty()
    await expect(window.log.get_by_text("And tomorrow?")).to_be_visible()


async def test_what_is_queued_is_so_after_a_reload_and_until_the_turn_ends(product: Product, window: Window) -> None:
    live = product.sender.live(THREAD, product.services.place, "web:ana")
    live.status("Thinking…")
    first = MessageView("web:one:m0", "Ana", "web:ana", "What is on today?", time.time() - 9)
    second = MessageView("web:one:m1", "Ana", "web:ana", "And tomorrow?", time.time() - 3, queued=True)
    product.services.entries[THREAD] = [first, second]
    await window.open(THREAD)
    queued = window.page.get_by_role("group", name="Queued")
    await expect(queued).to_contain_text("And tomorrow?")
    await expect(window.log).to_contain_text("What is on today?")
    live.end(waiting=False)
    await expect(queued).to_be_empty()
    await expect(window.log.get_by_text("And tomorrow?")).to_be_visible()


async def test_the_demo_notice_can_be_dismissed_for_good(product: Product, chrome: Chromium) -> None:
    async with window_of(product, chrome) as window:
        notice = window.page.get_by_text("Demo mode. Set OPENAI_API_KEY for a real model.")
        await expect(notice).to_be_visible()
        await window.page.locator("#banner-dismiss").click()
        await window.page.reload()
        await expect(window.page.get_by_role("heading", name="Set up Countersign")).to_be_visible()
        await expect(notice).to_be_hidden()


async def test_the_title_of_a_conversation_is_whole_on_a_phone(product: Product, chrome: Chromium) -> None:
    await product.services.post(THREAD, Said("Hello"))
    product.services.titles[THREAD] = "Create 2 events: Team Meeting"
    async with window_of(product, chrome, viewport={"width": 390, "height": 844}) as window:
        await window.open(THREAD)
        title = window.page.locator("#title")
        await expect(title).to_have_text("Create 2 events: Team Meeting")
        assert await title.evaluate("(title) => title.scrollHeight <= title.clientHeight + 1")
