"""The page on a phone, with the keyboard, for a screen reader, in the dark, and behind a password."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Locator, expect

from bot.domain import MessageView, Said
from tests.support.views import an_approval
from tests.web.browsing import Window, window_of
from tests.web.serving import Product, serve

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"
PHONE = {"width": 390, "height": 844}

CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (colors) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  for (const element of document.querySelectorAll("#app *")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || !element.checkVisibility() || element.closest(".hidden-label, option")) continue;
    const grounds = [];
    for (let at = element; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
    const ground = luminance(paint(grounds));
    const ink = luminance(paint([...grounds, getComputedStyle(element).color]));
    const ratio = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
    if (ratio < 4.5) poor.push(`${element.className} "${element.textContent.slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return poor;
}"""

UNNAMED = """() => [...document.querySelectorAll("button, input, select, textarea, a[href]")]
  .filter((element) => element.checkVisibility())
  .filter((element) => !(element.textContent.trim() || element.ariaLabel || element.labels?.length))
  .map((element) => element.outerHTML)"""


async def fill(product: Product) -> None:
    await product.services.post(THREAD, Said("**Two** things, see [this](https://a.example/b):\n\n> quote\n\n`code`"))
    await product.services.post(THREAD, an_approval("a", risk=("reads", "writes", "destroys", "reaches outside")))
    await product.services.post(
        THREAD, an_approval("b", status="approved", decided_by=("Ben",), decided_at=1.0, result="Done.")
    )
    await product.services.post(
        THREAD, an_approval("c", status="rejected", decided_by=("Ben",), decided_at=1.0, reason="No.")
    )
    await product.services.post(THREAD, an_approval("d", status="expired"))
    await product.services.post(THREAD, an_approval("e"))


async def test_on_a_phone_everything_fits_and_the_threads_are_in_a_drawer(product: Product, chrome: Chromium) -> None:
    await fill(product)
    async with window_of(product, chrome, viewport=PHONE, has_touch=True) as window:
        await window.open(THREAD)
        await expect(window.button("Approve").first).to_be_visible()
        assert await window.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        threads = window.page.get_by_role("navigation", name="Conversations")
        await expect(threads).to_be_hidden()
        await window.button("Open conversations").click()
        await expect(threads).to_be_visible()
        await window.page.keyboard.press("Escape")
        await expect(threads).to_be_hidden()
        await expect(window.button("Open conversations")).to_be_focused()
        await window.button("Open conversations").click()
        await window.button("New conversation").click()
        await expect(threads).to_be_hidden()
        await expect(window.page.get_by_text("What can I do for you?")).to_be_visible()


async def test_on_a_phone_menus_and_names_of_files_are_in_sight_and_the_start_begins_at_its_top(
    product: Product, chrome: Chromium
) -> None:
    names = ("Travel costs 2026, a rather long name of a file.txt", "a.csv")
    product.services.entries[THREAD] = [MessageView("web:one:m", "Ana", "web:ana", "See these", at=1.0, files=names)]
    await product.services.post(THREAD, an_approval("a"))
    product.services.titles[THREAD] = "Some conversation with files"
    async with window_of(product, chrome, viewport=PHONE) as window:
        start = window.page.get_by_role("heading", name="What can I do for you?")
        await expect(start).to_be_in_viewport(ratio=1)
        await window.open(THREAD)
        for name in names:
            assert await _is_between_the_sides(window.log.locator(".file", has_text=name))
        for button, entry in (("More actions", "Show all"), ("Conversation options", "Rename…")):
            await window.button(button).click()
            assert await _is_between_the_sides(window.page.get_by_role("menuitem", name=entry))
            await window.page.keyboard.press("Escape")


async def _is_between_the_sides(shown: Locator) -> bool:
    await expect(shown).to_be_visible()
    box = await shown.bounding_box()
    return box is not None and box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_every_text_can_be_read(product: Product, chrome: Chromium, colours: str) -> None:
    await fill(product)
    async with window_of(product, chrome, color_scheme=colours) as window:
        await window.open(THREAD)
        await expect(window.page.locator("#approve-all")).to_be_visible()
        assert await window.page.evaluate(CONTRAST) == []


async def test_everything_that_can_be_used_has_a_name(product: Product, window: Window) -> None:
    await fill(product)
    await window.open(THREAD)
    await window.button("Edit…").first.click()
    await expect(window.dialog).to_be_visible()
    assert await window.page.evaluate(UNNAMED) == []


async def test_the_page_has_landmarks_and_the_conversation_is_a_live_log(window: Window) -> None:
    await expect(window.page.get_by_role("banner")).to_be_visible()
    await expect(window.page.get_by_role("navigation", name="Conversations")).to_be_visible()
    await expect(window.page.get_by_role("main", name="Conversation")).to_be_visible()
    await expect(window.log).to_have_attribute("aria-live", "polite")
    await expect(window.page.locator("#status")).to_have_attribute("aria-live", "polite")
    await expect(window.page.get_by_role("combobox", name="Acting as", exact=True)).to_be_visible()


async def test_a_decision_can_be_made_with_the_keyboard_alone(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await expect(window.button("Reject…")).to_be_visible()
    await window.page.locator("#title").click()
    for _ in range(20):
        if await window.button("Reject…").evaluate("(button) => button === document.activeElement"):
            break
        await window.page.keyboard.press("Tab")
    outline = await window.button("Reject…").evaluate("(button) => getComputedStyle(button).outlineStyle")
    assert outline == "solid", "the focus can be seen"
    await window.page.keyboard.press("Enter")
    await window.page.keyboard.type("no")
    await window.page.keyboard.press("Tab")
    await window.page.keyboard.press("Tab")
    await window.page.keyboard.press("Enter")
    await expect(window.log).to_contain_text("Rejected by Ana")


async def test_who_wants_less_motion_gets_none(product: Product, chrome: Chromium) -> None:
    async with window_of(product, chrome, reduced_motion="reduce") as window:
        moving = (
            "[...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).animationName !== 'none').length"
        )
        await window.page.evaluate("document.getElementById('status').classList.add('busy')")
        assert await window.page.evaluate(moving) == 0


async def test_the_password_comes_first(chrome: Chromium) -> None:
    async with serve(password="open sesame") as product:
        context = await chrome.new_context()
        page = await context.new_page()
        await page.goto(product.url)
        await page.get_by_label("Password").fill("wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_text("Wrong password.")).to_be_visible()
        await page.get_by_label("Password").fill("open sesame")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("textbox", name="Message", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("Password")).to_be_visible()
        await context.close()
