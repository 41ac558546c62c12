"""No screen of the page has anything that axe-core finds, in light and dark, on a phone and on a desk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, Route, ViewportSize, expect

from bot.domain import (
    CallActivity,
    ChangeView,
    ConversationReference,
    GrantView,
    MessageView,
    Notice,
    PlanTaskView,
    Said,
)
from bot.memory import PersonMemories
from graph.interrupts import FormField
from graph.memory import MemoryItem
from tests.support.views import CITING, NOW, a_plan, a_plan_that_failed, a_question, a_sign_in, an_approval, an_outcome
from tests.web.accessibility import needs_axe, violations_in_light_and_dark
from tests.web.browsing import Window, tab_of, window_in
from tests.web.serving import Product, serve

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), needs_axe]
THREAD = "web:one"
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 800}


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=[PHONE, DESK], ids=["phone", "desk"])
async def sized_tab(request: pytest.FixtureRequest, chrome: Chromium) -> AsyncIterator[Page]:
    """A tab of that size, in which nothing moves."""
    async with tab_of(chrome, viewport=request.param, reduced_motion="reduce") as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def screen(product: Product, sized_tab: Page) -> AsyncIterator[Window]:
    """The page in a window of that size."""
    async with window_in(sized_tab, product) as window:
        yield window


async def fill(product: Product) -> None:
    """A conversation with each kind of entry in it."""
    ana = "web:ana"
    text = "# Today\n\nTwo **things**, see [this](https://a.example/b):\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    contents = (
        Said(f"{text}\n\n```\ncode\n```\n\n- one\n- two"),
        CITING,
        Notice("That did not work.", "error"),
        Notice("Something to know.", "info"),
        an_approval("a", risk=("reads", "writes", "destroys", "reaches outside")),
        an_approval("b", status="approved", decided_by=("Ben",), decided_at=1.0, result="Done."),
        an_approval("c", status="rejected", decided_by=("Ben",), decided_at=1.0, reason="No."),
        an_approval("d", status="expired"),
        an_approval("e", status="approved", decided_by=("Ana",), result="Failed: no room", result_tone="error"),
        an_approval("f", arguments={"notes": "word " * 300}, quote="Please"),
        a_question("q", requester_id=ana, fields=(FormField(name="seat", label="Seat"),)),
        a_sign_in("s", owner_id=ana),
        an_outcome("o", requester_id=ana),
        a_plan_that_failed(requester_id=ana),
        a_plan("p", requester_id=ana, tasks=(PlanTaskView("long", "writer", "word " * 90, "running"),)),
    )
    for content in contents:
        await product.services.post(THREAD, content)


async def test_an_empty_conversation(screen: Window) -> None:
    await expect(screen.page.get_by_text("What can I do for you?")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []


async def test_a_conversation_with_each_kind_of_card(product: Product, screen: Window) -> None:
    await fill(product)
    await screen.open(THREAD)
    await expect(screen.button("Approve").first).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []


async def test_the_inbox(product: Product, screen: Window) -> None:
    await screen.page.evaluate("location.hash = 'inbox'")
    await expect(screen.page.get_by_text("You’re all caught up")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
    for thread_id, approver in (("web:theirs", "web:ana"), ("web:mine", "web:ben")):
        view = an_approval(thread_id, requester_ids=("web:ana",), handed_to=(approver,))
        await product.services.post(thread_id, view)
    product.sender.hub.threads_changed()
    await expect(screen.page.get_by_role("list", name="Needs your approval")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []


async def test_the_drawer_the_settings_and_the_keys(product: Product, screen: Window) -> None:
    await product.services.post(THREAD, Said("Hello"))
    await screen.open(THREAD)
    if await screen.page.locator("#show-threads").is_visible():
        await screen.page.locator("#show-threads").click()
        await expect(screen.page.locator("#hide-threads")).to_be_focused()
        assert await violations_in_light_and_dark(screen.page) == []
    await screen.button("Settings…").click()
    await expect(screen.dialog).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
    await screen.dialog.get_by_role("button", name="Keyboard shortcuts").click()
    await expect(screen.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
async def test_the_door(chrome: Chromium, size: ViewportSize) -> None:
    async with serve(password="open sesame") as product:
        context = await chrome.new_context(viewport=size)
        page = await context.new_page()
        await page.goto(product.url)
        await expect(page.get_by_label("Password")).to_be_visible()
        assert await violations_in_light_and_dark(page) == []
        await context.close()


async def test_the_dialogs_of_a_card(product: Product, screen: Window) -> None:
    deletes = an_approval(
        "a", requester_ids=("web:ana",), risk=("writes", "destroys"), always_offered=True, handing_offered=True, masks=1
    )
    for view in (deletes, an_approval("b")):
        await product.services.post(THREAD, view)
    await screen.open(THREAD)
    await expect(screen.button("Approve")).to_have_count(2)
    for name in ("Approve", "Reject…", "Edit…"):
        await screen.button(name).first.click()
        await checked_dialog(screen)
    for name in ("Show all", "Allow for a while…", "Withdraw…"):
        await screen.button("More actions").first.click()
        assert await violations_in_light_and_dark(screen.page) == []
        await screen.page.get_by_role("menuitem", name=name).click()
        await checked_dialog(screen)
    await screen.page.locator("#approve-all").click()
    await checked_dialog(screen)


async def checked_dialog(screen: Window) -> None:
    """What axe finds in the open dialog: nothing. Closes it."""
    await expect(screen.dialog).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
    await screen.page.keyboard.press("Escape")
    await expect(screen.dialog).to_have_count(0)


async def test_what_was_done_and_what_was_done_without_asking(product: Product, screen: Window) -> None:
    calls = (
        CallActivity("1", "calendar", "list_events", "List events", "done", 1.0, 2.5, "2 events"),
        CallActivity("2", "tasks", "list_tasks", "List tasks", "failed", 2.0, 3.1, "No connection"),
    )
    change = ChangeView("c", "tasks", "add_task", "Add task", {"name": "milk"}, "Ana", "web:ana", "Done", grant_id="g1")
    for content in (
        Said("You have two.", activity=calls),
        change,
        replace(change, attempt_id="d", result_tone="error"),
    ):
        await product.services.post(THREAD, content)
    await screen.open(THREAD)
    await expect(screen.button("Revoke")).to_have_count(2)
    for summary in await screen.log.locator("summary").all():
        await summary.click()
    assert await violations_in_light_and_dark(screen.page) == []


async def test_a_turn_that_runs_and_messages_that_wait_or_were_not_sent(product: Product, screen: Window) -> None:
    live = product.sender.live(THREAD, ConversationReference("web", THREAD), "web:ana")
    live.status("Looking…")
    live.task("1", "List events", "running")
    live.text("m1", "You have")
    product.services.entries[THREAD] = [MessageView("web:one:2", "Ana", "web:ana", "And tomorrow?", 2.0, queued=True)]
    await screen.open(THREAD)
    await expect(screen.page.get_by_text("Queued", exact=True)).to_be_visible()
    await screen.page.route("**/messages", lambda route: route.abort())
    await screen.say("Important")
    await expect(screen.log).to_contain_text("Not sent.")
    await screen.page.locator(".activity-now summary").click()
    assert await violations_in_light_and_dark(screen.page) == []
    screen.complaints.clear()  # the browser's own about the aborted request


async def test_a_search_with_and_without_results(product: Product, screen: Window) -> None:
    await product.services.post(THREAD, Said("Hello"))
    await screen.open(THREAD)
    if await screen.page.locator("#show-threads").is_visible():
        await screen.page.locator("#show-threads").click()
    product.services.titles[THREAD] = "Lunch with Bob"
    for text in ("lunch", "nothing of the kind"):
        await screen.page.get_by_role("searchbox").fill(text)
        await expect(screen.page.get_by_text("1 result" if text == "lunch" else "Nothing found")).to_be_visible()
        assert await violations_in_light_and_dark(screen.page) == []


async def test_what_is_loading_what_there_is_not_and_a_server_that_is_gone(product: Product, screen: Window) -> None:
    await product.services.post(THREAD, Said("Hello"))
    await screen.open(THREAD)
    await expect(screen.log).to_contain_text("Hello")
    release = asyncio.Event()

    async def late(route: Route) -> None:
        await release.wait()
        await route.abort()

    await screen.page.route("**/api/events*", late)
    await screen.page.evaluate("location.hash = encodeURIComponent('web:another')")
    await expect(screen.page.locator("#skeleton")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
    release.set()
    await expect(screen.page.get_by_text("This conversation appears when the connection is back.")).to_be_visible()
    await expect(screen.page.get_by_text("Can’t reach Countersign. Retrying…")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
    await screen.page.unroute("**/api/events*")
    product.services.deleted.add("web:gone")
    await screen.page.evaluate("location.hash = encodeURIComponent('web:gone')")
    await expect(screen.page.get_by_text("This conversation doesn’t exist, or you can’t see it.")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
    screen.complaints.clear()  # the browser's own about the requests that failed


@pytest.mark.parametrize("name", ["Tools", "Connected accounts…", "Standing approvals…", "Memory…"])
async def test_tools_accounts_standing_approvals_and_memories(product: Product, screen: Window, name: str) -> None:
    product.services.memories.remembered["web:ana"] = PersonMemories(
        (MemoryItem("m1", "call me Al", NOW),), is_remembered=True
    )
    product.services.given["g1"] = ("web:ana", GrantView("g1", "tasks", "add_task", {"name": "milk"}, NOW))
    if name != "Tools" and await screen.page.locator("#show-threads").is_visible():
        await screen.page.locator("#show-threads").click()
    await screen.page.get_by_role("button", name=name).click()
    await expect(screen.page.get_by_role("dialog")).to_be_visible()
    assert await violations_in_light_and_dark(screen.page) == []
