"""A conversation in a real browser: sending, receiving, streaming, reconnecting."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import expect

from bot.domain import ConversationReference, Notice, Said
from graph.agents import AgentConfig, Agents
from tests.web.browsing import Window, window_of
from tests.web.serving import Product
from tests.web.streaming import eventually

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"
PLACE = ConversationReference("web", THREAD)


async def test_enter_sends_and_shift_enter_starts_a_new_line(product: Product, window: Window) -> None:
    await window.box.fill("First")
    await window.box.press("Shift+Enter")
    await window.box.type("second")
    await window.box.press("Enter")
    await expect(window.log).to_contain_text("First\nsecond", use_inner_text=True)
    await expect(window.box).to_have_value("")
    await expect(window.box).to_be_focused()
    await expect(window.log.get_by_text("Sending…")).to_have_count(0)
    assert [message.text for message in product.services.messages] == ["First\nsecond"]


async def test_a_message_is_shown_once_to_its_author_and_to_others(
    product: Product, window: Window, chrome: Chromium
) -> None:
    await window.open(THREAD)
    async with window_of(product, chrome) as other:
        await other.become("Ben")
        await other.open(THREAD)
        await window.say("Hello Ben")
        await expect(other.log.get_by_text("Hello Ben")).to_have_count(1)
        await expect(window.log.get_by_text("Hello Ben")).to_have_count(1)
        await expect(window.log.get_by_text("Sending…")).to_have_count(0)


async def test_an_empty_start_offers_examples_and_sends_the_one_that_is_pressed(
    product: Product, window: Window
) -> None:
    await window.button("Add a task to buy milk").click()
    await expect(window.log).to_contain_text("Add a task to buy milk")
    await expect(window.page.get_by_text("What can I do for you?")).to_be_hidden()
    assert product.services.messages[0].text == "Add a task to buy milk"


async def test_an_answer_streams_and_is_then_replaced_by_the_post(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await expect(window.page.get_by_text("What can I do for you?")).to_be_visible()
    live = product.sender.live(THREAD, PLACE, "web:ana")
    live.status("Looking at your calendar…")
    await expect(window.page.get_by_text("Looking at your calendar…")).to_be_visible()
    live.text("m1", "You have **two")
    live.text("m1", "** meetings.")
    stage = window.page.locator("#scroller")
    await expect(stage.get_by_text("You have two meetings.")).to_have_count(1)
    await product.services.post(THREAD, Said("You have **two** meetings."), message_id="m1")
    await expect(window.log.get_by_text("You have two meetings.")).to_have_count(1)
    await expect(stage.get_by_text("You have two meetings.")).to_have_count(1)
    live.end(waiting=False)
    await expect(window.button("Stop")).to_be_hidden()


COUNT_EVERYWHERE = """(words) => {
  const stage = document.getElementById("scroller");
  window.counts = [];
  const count = () => window.counts.push(stage.innerText.split(words).length - 1);
  new MutationObserver(count).observe(stage, { childList: true, subtree: true, characterData: true });
  const frame = () => { count(); requestAnimationFrame(frame); };
  frame();
}"""
"""Counts the words after each change of the conversation, and in each frame that is drawn."""


@pytest.mark.parametrize("at_rest_first", [False, True], ids=["post first", "rest first"])
async def test_an_answer_stands_once_at_every_moment_while_its_post_takes_its_place(
    product: Product, window: Window, *, at_rest_first: bool
) -> None:
    """Rule 8: what is shown is what was said, neither twice nor gone for a moment. The post may come a while after the
    turn is over, or before."""
    await window.open(THREAD)
    live = product.sender.live(THREAD, PLACE, "web:ana")
    await window.page.evaluate(COUNT_EVERYWHERE, "two meetings")
    live.text("m1", "You have **two")
    live.text("m1", " meetings** today.")
    await expect(window.page.locator("#scroller").get_by_text("two meetings")).to_have_count(1)
    if at_rest_first:
        live.end(waiting=False)
        await expect(window.button("Stop")).to_be_hidden()
    await product.services.post(THREAD, Said("You have **two meetings** today."), message_id="m1")
    await expect(window.log.get_by_text("two meetings")).to_have_count(1)
    if not at_rest_first:
        live.end(waiting=False)
        await expect(window.button("Stop")).to_be_hidden()
    await product.services.post(THREAD, Said("The next."))
    await expect(window.log.get_by_text("The next.")).to_have_count(1)
    counts = await window.page.evaluate("window.counts")
    assert set(counts[counts.index(1) :]) == {1}


async def test_stop_is_there_while_something_runs(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await expect(window.button("Stop")).to_be_hidden()
    product.sender.live(THREAD, PLACE, "web:ana").status("Thinking…")
    await window.button("Stop").click()
    await expect(window.button("Stop")).to_be_hidden()
    await expect(window.page.get_by_text("Stopped.")).to_be_visible()
    assert product.services.stopped == [(THREAD, "web:ana")]


async def test_conversations_are_listed_and_opened(product: Product, window: Window) -> None:
    await product.services.post("web:two", Said("In the second"))
    await window.say("In the first")
    threads = window.page.get_by_role("navigation", name="Conversations")
    await threads.get_by_text("A conversation").click()
    await expect(window.log).to_contain_text("In the second")
    await expect(window.log).not_to_contain_text("In the first")
    await threads.get_by_text("In the first").click()
    await expect(window.log).to_contain_text("In the first")
    await window.button("New conversation").click()
    await expect(window.page.get_by_text("What can I do for you?")).to_be_visible()
    await expect(window.box).to_be_focused()
    await window.page.go_back()
    await expect(window.log).to_contain_text("In the first")


async def test_a_reload_keeps_the_thread(window: Window) -> None:
    await window.say("Remember me")
    await expect(window.log).to_contain_text("Remember me")
    await window.page.reload()
    await expect(window.log.get_by_text("Remember me")).to_have_count(1)


async def test_a_page_that_was_cut_off_says_so_comes_back_and_catches_up(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await product.services.post(THREAD, Said("Before"))
    await expect(window.log).to_contain_text("Before")
    await window.page.context.set_offline(True)
    # Offline cuts new connections only: end the one that is open.
    for reader in list(product.sender.hub._readers):
        reader.end()
    await expect(window.page.get_by_text("Can’t reach Countersign. Retrying…")).to_be_visible()
    await product.services.post(THREAD, Said("Meanwhile"))
    await window.page.context.set_offline(False)
    await expect(window.log).to_contain_text("Meanwhile")
    await expect(window.page.get_by_text("Can’t reach Countersign. Retrying…")).to_be_hidden()
    await expect(window.log.get_by_text("Before")).to_have_count(1)
    window.complaints.clear()  # the browser's own about the lost network


async def test_a_message_that_could_not_be_sent_can_be_sent_again(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await window.page.route("**/messages", lambda route: route.abort())
    await window.say("Important")
    await expect(window.log).to_contain_text("Not sent.")
    await window.page.unroute("**/messages")
    await window.log.get_by_role("button", name="Try again").click()
    await eventually(lambda: bool(product.services.messages), "the message arrives")
    await expect(window.log.get_by_text("Not sent.")).to_have_count(0)
    await expect(window.log.get_by_text("Important")).to_have_count(1)
    window.complaints.clear()  # the browser's own about the aborted request


async def test_who_switches_sees_what_that_person_may_see(product: Product, window: Window) -> None:
    await product.services.post(THREAD, Said("For all"))
    await product.services.post(THREAD, Notice("For Ana alone"), only_for="web:ana")
    await window.open(THREAD)
    await expect(window.log).to_contain_text("For Ana alone")
    await window.become("Ben")
    await expect(window.log).to_contain_text("For all")
    await expect(window.log).not_to_contain_text("For Ana alone")
    await window.say("It is me")
    await eventually(lambda: bool(product.services.messages), "the message arrives")
    assert product.services.messages[0].author.person_id == "web:ben"


async def test_a_box_that_is_fitted_while_it_is_hidden_is_whole_when_it_is_shown(window: Window) -> None:
    await window.open(THREAD)
    whole = await window.box.evaluate("box => box.offsetHeight")
    hidden_and_shown = """box => {
        const composer = document.getElementById("composer");
        composer.style.display = "none";
        box.dispatchEvent(new Event("input"));
        composer.style.display = "";
        return box.offsetHeight;
    }"""
    assert await window.box.evaluate(hidden_and_shown) == whole


async def test_two_tabs_of_one_browser_are_the_same_person(product: Product, window: Window) -> None:
    second = Window(product, await window.page.context.new_page())
    cut_off = Window(product, await window.page.context.new_page())
    await cut_off.page.route("**/api/events*", lambda route: route.abort())
    for tab in (second, cut_off):
        await tab.open(THREAD)
    await window.become("Chloe")
    for tab in (second, cut_off):
        await expect(tab.page.get_by_label("Acting as").locator("option:checked")).to_have_text("Chloe")


async def test_an_answer_that_was_broken_off_does_not_stay(product: Product, window: Window) -> None:
    await window.open(THREAD)
    live = product.sender.live(THREAD, PLACE, "web:ana")
    await product.services.post(THREAD, Said("Before"))
    live.status("Thinking…")
    live.text("m1", "You have")
    await expect(window.page.get_by_text("You have", exact=True)).to_be_visible()
    live.end(waiting=False)
    await expect(window.page.get_by_text("You have", exact=True)).to_have_count(0)


async def test_what_is_typed_and_what_was_not_sent_stay_in_their_conversation(product: Product, window: Window) -> None:
    """Rule 1: nothing that somebody wrote is lost unsaid."""
    await window.open(THREAD)
    await window.page.route("**/messages", lambda route: route.abort())
    box = window.page.get_by_label("Message", exact=True)
    await box.fill("pay the rent")
    await box.press("Enter")
    await expect(window.log.get_by_text("Not sent.")).to_be_visible()
    await box.fill("half a thought")
    await window.open("web:another")
    await expect(box).to_have_value("")
    await expect(window.log.get_by_text("pay the rent")).to_have_count(0)
    await window.open(THREAD)
    await expect(box).to_have_value("half a thought")
    await expect(window.log.get_by_text("pay the rent")).to_be_visible()
    await window.page.unroute("**/messages")
    await window.log.get_by_role("button", name="Try again").click()
    await expect(window.log.get_by_text("Not sent.")).to_have_count(0)
    assert [message.text for message in product.services.messages] == ["pay the rent"]
    window.complaints.clear()  # the browser's own about the request that failed


async def test_without_the_server_a_conversation_says_so_and_the_tools_are_not_green(window: Window) -> None:
    await window.open(THREAD)
    gone = window.page.get_by_text("This conversation appears when the connection is back.")
    await window.page.route("**/api/**", lambda route: route.abort())
    await window.page.evaluate("location.hash = encodeURIComponent('web:another')")
    await expect(gone).to_be_visible()
    await expect(window.page.locator("#tools")).to_have_class("chip-button unknown")
    await window.page.unroute("**/api/**")
    await expect(gone).to_be_hidden()
    await expect(window.page.locator("#tools")).to_have_class("chip-button")
    window.complaints.clear()


async def test_the_product_is_honest_about_its_model_and_its_tools(window: Window) -> None:
    await expect(window.page.get_by_text("Demo mode.")).to_be_visible()
    await window.page.get_by_role("button", name="Tools").click()
    panel = window.page.get_by_role("dialog", name="Tool servers")
    await expect(panel).to_contain_text("calendar")
    await expect(panel).to_contain_text("Available · 5 tools")
    await expect(panel).to_contain_text("Unavailable · 0 tools")
    await expect(panel).to_contain_text("It stopped; starting it again in 4 s.")
    await window.page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(window.page.get_by_role("button", name="Tools")).to_be_focused()


async def test_who_answers_is_picked_beside_the_message_box_and_stands_above_what_it_says(
    product: Product, window: Window
) -> None:
    picker = window.page.get_by_label("Agent", exact=True)
    await window.open(THREAD)
    await expect(window.box).to_be_visible()
    await expect(picker).to_be_hidden()
    product.services.agents = Agents(specialists=(AgentConfig("finance", "Invoices and orders."),))
    await window.open("web:two")
    await expect(picker).to_have_value("default")
    await picker.select_option("finance")
    await eventually(lambda: product.services.picked == [("web:ana", "", "finance")], "it is picked")
    await product.services.post("web:two", Said("Two are open.", agent="finance"), message_id="m1")
    await expect(window.log.get_by_text("finance agent")).to_have_count(1)
    await window.open(THREAD)
    await expect(picker).to_have_value("finance")
