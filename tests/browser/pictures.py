"""Takes the pictures for the docs: `python -m tests.browser.pictures`. A real product, a real browser, real clicks."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as Chromium
from playwright.async_api import FilePayload, expect

from tests.browser.conftest import Served
from tests.browser.test_conversations import approve, card, waiting
from tests.fakes.openai_server import Reply, Request, ToolUse, fake_openai
from tests.support.finance import REQUEST, brain, finance_company
from tests.support.product import ProductFolder, product_here
from tests.web.browsing import Window, chromium, window_of

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SHARP = {"device_scale_factor": 2, "timezone_id": "Europe/Berlin", "locale": "en-GB"}
WIDE = {"width": 1180, "height": 800}
PHONE = {"width": 390, "height": 844}
FONTS = Path(__file__).parents[1] / "npm/node_modules/@fontsource/open-sans/files"
WEIGHTS = (400, 500, 600, 700)


def prepared() -> str:
    """A script for each page: it has said already that it has no language model, and text is in a font like those of
    people's own machines, where that is installed."""
    faces = [
        f"@font-face {{ font-family: Inter; font-weight: {weight}; src: url(data:font/woff2;base64,{encoded}) }}"
        for weight in WEIGHTS
        if (file := FONTS / f"open-sans-latin-{weight}-normal.woff2").exists()
        and (encoded := base64.b64encode(file.read_bytes()).decode())
    ]
    return f"""
      localStorage.setItem("countersign-dismissed-banner", "yes");
      addEventListener("DOMContentLoaded", () => {{
        const style = document.createElement("style");
        style.textContent = {json.dumps(" ".join(faces))};
        document.head.append(style);
      }});
    """


@dataclass
class Studio:
    """Where the pictures are taken."""

    product: Served
    chrome: Chromium

    @asynccontextmanager
    async def window(self, **options: Any) -> AsyncIterator[Window]:
        """A window as sharp as a good screen."""
        context = {"viewport": WIDE, "bypass_csp": True, **SHARP, **options}
        async with window_of(self.product, self.chrome, **context) as window:  # type: ignore[arg-type]
            await window.page.context.add_init_script(prepared())
            await window.open()
            yield window

    async def picture(self, window: Window, name: str) -> None:
        """Save what the window shows, once it has come to rest."""
        await window.page.mouse.move(0, 0)
        await window.page.evaluate("document.fonts.ready")
        await window.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled", caret="initial")


async def main() -> None:
    """Everything, in one product, one conversation after the other."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with product_here(ProductFolder(Path(folder))) as url, chromium() as chrome:
            studio = Studio(Served(url), chrome)
            async with studio.window() as window:
                await expect(window.page.locator("#tools .dot.good")).to_be_visible()
                await studio.picture(window, "start")
                await _one_event(window, studio)
            async with studio.window() as window:
                await _two_events(window, studio)
            async with studio.window() as window:
                await window.say("schedule something")
                await window.button("Answer").click()
                await studio.picture(window, "form")
            async with studio.window() as window:
                await _what_failed(window, studio)
            async with studio.window() as window:
                await _deleting(window, studio)


async def the_plan() -> None:
    """Two agents that share a request, with an approval in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        async with fake_openai(brain) as model, chromium() as chrome:
            home = finance_company(ProductFolder(Path(folder)), model)
            async with product_here(home) as url:
                studio = Studio(Served(url), chrome)
                async with studio.window() as window:
                    await window.say(REQUEST)
                    await expect(waiting(window)).to_have_count(1)
                    await expect(window.log.get_by_text("waiting for someone")).to_be_visible()
                    await window.box.blur()
                    await window.page.set_viewport_size({**WIDE, "height": 1_000})  # type: ignore[arg-type]
                    await studio.picture(window, "plan")


LEAVE = """Leave and absence

Everybody has 28 days of leave a year. Up to 5 days can be taken into the next year, until the end of March.

Parental leave is in addition to that: tell your manager three months before it begins.
"""


def librarian(request: Request) -> Reply:
    """A model that keeps the file which it is given, looks up what it is asked, and cites what it found."""
    said = [m for m in request["messages"] if m["role"] in {"user", "tool"}]
    last = str(said[-1]["content"])
    match said[-1]["role"], last:
        case "tool", _ if '"cite": "[1]"' in last:
            return Reply("You have **28 days** of leave a year, and can take up to 5 of them into the next year [1].")
        case "tool", _:
            return Reply("I keep it for you, and find it again when you ask.")
        case _, text if "How many" in text:
            return Reply(calls=[ToolUse("documents__search_documents", {"query": "days of leave"})])
        case _:
            file = re.findall(r"file_[0-9a-f]{32}", str(request["messages"]))[-1]
            return Reply(calls=[ToolUse("documents__add_document", {"file": file, "keep_for": "me"})])


async def the_library() -> None:
    """A file is kept, and an answer cites it."""
    with tempfile.TemporaryDirectory() as folder:
        async with fake_openai(librarian) as model, chromium() as chrome:
            home = ProductFolder(Path(folder))
            home.bundled_tool_servers("documents")
            home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "LLM_MODEL": "scripted"}
            async with product_here(home) as url:
                studio = Studio(Served(url), chrome)
                async with studio.window() as window:
                    handbook = FilePayload(name="handbook.txt", mimeType="text/plain", buffer=LEAVE.encode())
                    await window.page.locator("input[type=file]").set_input_files([handbook])
                    await expect(window.page.locator("#files")).to_contain_text(f"{len(LEAVE)}")
                    await window.say("Keep this handbook for me")
                    await approve(window)
                    await expect(window.log).to_contain_text("I keep it for you")
                    await window.say("How many days of leave do I have?")
                    await expect(window.log).to_contain_text("[1] handbook.txt")
                    await window.box.blur()
                    await studio.picture(window, "sources")


async def the_memory() -> None:
    """What somebody has said about themselves, where they can delete it."""
    with tempfile.TemporaryDirectory() as folder:
        home = ProductFolder(Path(folder), {"MEMORY": "true"})
        async with product_here(home) as url, chromium() as chrome:
            studio = Studio(Served(url), chrome)
            async with studio.window() as window:
                await window.say("Call me Al. I prefer short answers. Remember that our release day is Tuesday")
                await expect(window.log).to_contain_text("I’ll remember")
                await window.button("Memory…").click()
                await expect(window.dialog).to_contain_text("release day")
                await studio.picture(window, "memory")


ASKED_OFTEN = 12
"""Requests that are approved as they are: enough for a suggestion."""


async def the_console() -> None:
    """What operators see, of some turns of two people, and of many requests that were always approved."""
    with tempfile.TemporaryDirectory() as folder:
        home = ProductFolder(Path(folder), {"OPERATORS": "web:chloe"})
        async with product_here(home) as url, chromium() as chrome:
            studio = Studio(Served(url), chrome)
            async with studio.window() as window:
                await expect(window.page.locator("#tools .dot.good")).to_be_visible()
                for count in range(ASKED_OFTEN):
                    await window.say(f"Add a task to water plant {count + 1}")
                    await approve(window)
                    await expect(window.log.get_by_text("1 step")).to_have_count(count + 1)
            async with studio.window() as window:
                await window.say("Create a meeting called Standup tomorrow at 9am")
                await approve(window)
                await expect(window.log).to_contain_text("1 step")
                await window.say("Delete the event Standup")
                await expect(card(window, "delete_event")).to_be_visible()
            async with studio.window() as window:
                await window.become("Ben")
                await window.say("Create 2 events: Team Meeting at 10am and Lunch with Ana at 12pm")
                await expect(waiting(window)).to_have_count(2)
                await window.open("web:lunch")
                await window.say("Add a task to order lunch")
                await window.button("Reject…").click()
                await window.dialog.get_by_label("Reason").fill("we go out")
                await window.dialog.get_by_role("button", name="Reject", exact=True).click()
                await expect(waiting(window)).to_have_count(0)
            async with studio.window() as window:
                await window.become("Chloe")
                await _console(window, studio)
            async with studio.window(viewport=PHONE) as phone:
                await phone.become("Chloe")
                await _part(phone, "waiting")
                await studio.picture(phone, "console-phone")


async def _part(window: Window, part: str) -> None:
    """Open a part of the console."""
    await window.page.goto(f"{window.product.url}/#console/{part}")
    await expect(
        window.page.locator(f'.console-nav [aria-current][href="#console/{part.partition("?")[0]}"]')
    ).to_be_visible()
    await expect(window.page.locator(".console-part:not([aria-busy]) h2")).to_be_visible()


async def _console(window: Window, studio: Studio) -> None:
    console = window.page.locator("#console")
    await _part(window, "waiting")
    await studio.picture(window, "console-waiting")
    await _part(window, "turns")
    await console.get_by_role("link", name="Create a meeting called Standup").click()
    await expect(console.get_by_role("heading", name="What happened")).to_be_visible()
    await window.page.set_viewport_size({**WIDE, "height": 1_120})  # type: ignore[arg-type]
    await console.locator(".call summary").click()
    await studio.picture(window, "console-turn")
    await _part(window, "policy")
    await console.get_by_label("Tool", exact=True).fill("calendar__delete_event")
    await console.get_by_label("Person", exact=True).fill("web:ben")
    await console.get_by_role("button", name="Ask the rules").click()
    await expect(console.get_by_text("Asked because")).to_be_visible()
    await studio.picture(window, "console-policy")
    await _part(window, "fatigue")
    while await console.get_by_text("Being computed").or_(console.get_by_text("still being counted")).count():
        await console.get_by_role("button", name="Refresh").click()
    await studio.picture(window, "console-fatigue")
    await console.get_by_role("button", name="Replay the changed file").first.click()
    await console.get_by_role("button", name="Replay", exact=True).click()
    await expect(console.get_by_role("table", name="Differences")).to_be_visible()
    await console.get_by_text("calls were judged").scroll_into_view_if_needed()
    await console.evaluate("(place) => place.scrollBy(0, 520)")
    await studio.picture(window, "console-replay")
    await window.page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await _part(window, "audit?tool=add_task")
    await studio.picture(window, "console-audit")
    await _part(window, "system")
    await studio.picture(window, "console-system")
    await _part(window, "stop")
    await window.page.get_by_role("button", name="Stop everything…").click()
    await window.dialog.get_by_label("Reason").fill("it deletes what it must not")
    await window.dialog.get_by_role("button", name="Stop everything").click()
    await expect(window.page.get_by_text("Reason: it deletes")).to_be_visible()
    await window.page.set_viewport_size({**WIDE, "height": 480})  # type: ignore[arg-type]
    await studio.picture(window, "console-stop")


async def _one_event(window: Window, studio: Studio) -> None:
    """The first picture of the README: who asks for what, and all that it takes to decide."""
    await window.say("Create a meeting called Standup tomorrow at 9am")
    await expect(waiting(window)).to_have_count(1)
    await window.box.blur()
    await window.page.set_viewport_size({**WIDE, "height": 600})  # type: ignore[arg-type]
    await studio.picture(window, "conversation")
    await window.page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await approve(window)
    await expect(window.log).to_contain_text("1 step")
    await window.say("Move Standup to 10am")
    await expect(waiting(window)).to_have_count(1)
    await approve(window)
    await window.log.get_by_text("2 steps").click()
    await window.page.locator("#scroller").evaluate("(place) => place.scrollTo(0, place.scrollHeight)")
    await studio.picture(window, "activity")


async def _two_events(window: Window, studio: Studio) -> None:
    await window.say("Create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    await expect(waiting(window)).to_have_count(2)
    await studio.picture(window, "approval")
    thread = await window.page.evaluate("decodeURIComponent(location.hash.slice(1))")
    async with studio.window(color_scheme="dark") as dark:
        await dark.open(thread)
        await expect(waiting(dark)).to_have_count(2)
        await studio.picture(dark, "dark")
    async with studio.window(viewport=PHONE) as phone:
        await phone.open(thread)
        await expect(waiting(phone)).to_have_count(2)
        await studio.picture(phone, "phone")
    await card(window, "Lunch with Bob").get_by_role("button", name="Edit…", exact=True).click()
    start = window.dialog.get_by_label("Start", exact=True)
    await start.fill((await start.input_value()).replace("T12:00", "T12:30"))
    await studio.picture(window, "edit")
    await window.dialog.get_by_role("button", name="Save and approve").click()
    await expect(card(window, "Lunch with Bob")).to_contain_text("Edited by Ana")
    await card(window, "Team Meeting").get_by_role("button", name="Reject…", exact=True).click()
    await window.dialog.get_by_label("Reason").fill("should be 11am")
    await window.dialog.get_by_role("button", name="Reject", exact=True).click()
    await expect(waiting(window)).to_have_count(1)
    await approve(window)
    await expect(window.log).to_contain_text("2 steps")
    await window.log.get_by_role("article").filter(has_text="Edited by Ana").get_by_text("Details").click()
    await window.log.get_by_role("article").first.scroll_into_view_if_needed()
    await studio.picture(window, "settled")
    await window.button("Settings…").click()
    await studio.picture(window, "settings")
    await window.page.keyboard.press("Escape")


async def _what_failed(window: Window, studio: Studio) -> None:
    """A task that somebody else deleted before it was approved to be completed."""
    await window.say("Add a task to order lunch")
    await approve(window)
    await expect(window.log).to_contain_text("1 step")
    await window.say("Complete the task order lunch")
    await expect(waiting(window)).to_have_count(1)
    async with studio.window() as other:
        await other.say("Delete the task order lunch")
        await expect(card(other, "delete_task")).to_be_visible()
        async with studio.window() as third:
            await third.become("Ben")
            await third.page.get_by_role("link", name="Inbox, 1 needs you").click()
            await third.page.get_by_role("button", name="Approve", exact=True).click()
            await third.dialog.get_by_role("button", name="Approve", exact=True).click()
            await expect(third.page.get_by_text("You’re all caught up")).to_be_visible()
    await approve(window)
    await expect(window.button("Retry")).to_be_visible()
    await studio.picture(window, "failed")


async def _deleting(window: Window, studio: Studio) -> None:
    await window.say("Delete the event Team Meeting")
    await expect(card(window, "delete_event")).to_contain_text("someone other than you")
    async with studio.window() as other:
        await other.become("Ben")
        await other.page.get_by_role("link", name="Inbox, 1 needs you").click()
        await expect(other.page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        await studio.picture(other, "inbox")
        await other.page.get_by_role("link", name="Open conversation").first.click()
        await expect(waiting(other)).to_have_count(1)
        await studio.picture(other, "two-people")
        await approve(other)
        await other.dialog.get_by_role("button", name="Approve", exact=True).click()
        await expect(card(other, "delete_event")).to_contain_text("Approved by Ben")


if __name__ == "__main__":
    asyncio.run(main())
    asyncio.run(the_plan())
    asyncio.run(the_library())
    asyncio.run(the_memory())
    asyncio.run(the_console())
