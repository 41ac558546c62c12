"""The operators' console by a person in a real browser, with the whole product behind it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Locator, expect

from tests.browser.conftest import Served
from tests.browser.test_conversations import approve, waiting
from tests.support import postgres_cluster
from tests.support.product import PASSWORD, ProductFolder, product_here
from tests.web.browsing import Window, window_of
from tests.web.serving import browser_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
THREAD = "web:standup"
OPERATIONS = (
    "GET waiting",
    "GET turns",
    "GET turns/x",
    "GET audit",
    "GET audit/export",
    "POST audit/verification",
    "GET rules",
    "POST rules/question",
    "POST rules/replay",
    "GET fatigue",
    "GET suggestions",
    "GET usage?by=day",
    "GET stop",
    "POST stop",
    "POST resumption",
    "GET tool-servers",
    "POST tool-servers/calendar/retry",
    "GET replicas",
    "GET accounts",
    "GET parked",
    "POST parked/x/retry",
    "POST parked/x/giving-up",
)
BODIES = {
    "stop": {"why": "x"},
    "rules/question": {"tool": "calendar__create_event", "person": "web:ana"},
    "rules/replay": {"policy": "version: 1\nrules: []\n"},
}


@pytest_asyncio.fixture(loop_scope="session")
async def product(tmp_path: Path, port: str) -> AsyncIterator[Served]:
    """The product, whose operator Ana is."""
    async with product_here(ProductFolder(tmp_path, {"PORT": port, "OPERATORS": "web:ana"})) as url:
        yield Served(url)


def link(window: Window, name: str) -> Locator:
    """A part of the console."""
    return window.page.get_by_role("navigation", name="Console").get_by_role("link", name=name, exact=True)


async def test_an_operator_finds_what_waits_why_and_what_became_of_it(window: Window) -> None:
    await window.open(THREAD)
    await window.say("Create a meeting called Standup tomorrow at 9am")
    await expect(waiting(window)).to_have_count(1)
    console = window.page.locator("#console")
    await window.page.get_by_role("link", name="Console").click()
    await expect(console.get_by_text("1 request waits for approval")).to_be_visible()
    await expect(console.get_by_role("table", name="Requests")).to_contain_text("Requester confirms other changes")

    await window.open(THREAD)
    await approve(window)
    await expect(window.log).to_contain_text("1 step")
    await window.log.get_by_text("Details").click()
    await window.log.get_by_role("link", name="Open the turn in the console").click()
    await expect(console.get_by_role("heading", name="What happened")).to_be_visible()
    for happened in (
        "Ana wrote",
        "Approval of calendar › create_event was requested",
        "Ana approved",
        "create_event began",
    ):
        await expect(console.locator(".events")).to_contain_text(happened)
    await console.locator(".call summary").click()
    await expect(console.locator(".call")).to_contain_text("Asked because rule “Requester confirms other changes”")

    await window.open(THREAD)
    await window.say("Schedule something")
    question = window.log.locator(".clarification")
    await question.get_by_role("link", name="Open the turn in the console").click()
    await expect(console.locator(".events")).to_contain_text("Ana was asked")

    await link(window, "Audit log").click()
    await console.get_by_label("Tool", exact=True).fill("create_event")
    await console.get_by_role("button", name="Search").click()
    await expect(console.get_by_role("table", name="Entries").get_by_role("row")).to_have_count(2)
    async with window.page.expect_download() as download:
        await console.get_by_role("link", name="CSV").click()
    assert "create_event" in Path(await (await download.value).path()).read_text()
    await console.get_by_role("button", name="Verify").click()
    await expect(console.get_by_text("all as they were written.")).to_be_visible()

    await link(window, "Policy").click()
    await expect(console.get_by_role("heading", name="Policy")).to_be_visible()  # the search has a field Tool, too
    await console.get_by_label("Tool", exact=True).fill("calendar__delete_event")
    await console.get_by_label("Person", exact=True).fill("web:ben")
    await console.get_by_role("button", name="Ask the rules").click()
    await expect(console.locator(".answer").first).to_contain_text("Deleting needs someone else")
    file = console.get_by_label("The changed file")
    await file.fill("version: 1\nrules:\n  - name: All free\n    match: {}\n    decide: allow\n")
    await console.get_by_role("button", name="Replay").click()
    await expect(console.get_by_role("table", name="Differences")).to_contain_text("All free")
    await file.fill("version: 1\nrules: nothing\n")
    await console.get_by_role("button", name="Replay").click()
    await expect(console.get_by_role("alert").get_by_text("line 2")).to_be_visible()
    window.complaints = [line for line in window.complaints if "422" not in line]

    await link(window, "System").click()
    tools = console.get_by_role("table", name="Tool servers")
    await tools.get_by_role("row", name="calendar").get_by_role("button", name="Connect again").click()
    await expect(tools.get_by_role("status").get_by_text("Connecting again.")).to_be_visible()


async def test_everybody_sees_that_everything_is_stopped_until_it_goes_on(
    product: Served, window: Window, chrome: Chromium
) -> None:
    stopped = "An operator has stopped everything."
    async with window_of(product, chrome) as other:  # type: ignore[arg-type]
        await other.become("Ben")
        await window.page.goto(f"{product.url}/#console/stop")
        await window.page.get_by_role("button", name="Stop everything…").click()
        await window.dialog.get_by_role("button", name="Stop everything").click()
        await expect(window.dialog.get_by_role("alert").get_by_text("Required")).to_be_visible()
        await window.dialog.get_by_label("Reason").fill("<b>it</b> deletes what it must not")
        await window.dialog.get_by_role("button", name="Stop everything").click()
        await expect(window.page.get_by_text("Reason: <b>it</b> deletes what it must not")).to_be_visible()
        await expect(window.page.get_by_role("status").get_by_text(stopped)).to_be_visible()
        await other.say("Add a task to order lunch")
        await expect(other.page.get_by_role("status").get_by_text(stopped)).to_be_visible()
        await expect(other.page.locator("#stopped-link")).to_be_hidden()

        await window.page.get_by_role("button", name="Go on…").click()
        await window.dialog.get_by_role("button", name="Go on").click()
        await expect(window.page.get_by_text("Everything runs.")).to_be_visible()
        await expect(waiting(other)).to_have_count(1)
        await expect(other.page.get_by_role("status").get_by_text(stopped)).to_have_count(0)


async def test_everything_that_operators_can_ask_for_is_refused_to_everybody_else(product: Served) -> None:
    async with browser_of(product) as browser:  # type: ignore[arg-type]
        if postgres_cluster.is_used():
            _, session = await browser.post("/api/session", {"password": PASSWORD})
            browser.token = session["csrf"]
        assert (await browser.post("/api/session", {"person": "web:ben"}))[0] == 200
        for operation in OPERATIONS:
            verb, path = operation.split(" ")
            address = f"/api/console/{path}"
            asked = browser.get(address) if verb == "GET" else browser.post(address, BODIES.get(path, {}))
            assert (await asked)[0] == 403, operation


async def test_the_page_has_all_that_operators_can_ask_for_by_the_api(product: Served) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{product.url}/api/openapi.json") as response:
        paths = (await response.json())["paths"]
    start = "/api/v1/operator/"
    documented = [
        f"{verb.upper()} {path.removeprefix(start)}" for path in paths if path.startswith(start) for verb in paths[path]
    ]
    ours = [re.sub("/(x|calendar)(?=/|$)", "/*", each.partition("?")[0]) for each in OPERATIONS]
    assert sorted(re.sub(r"{.*?}", "*", each) for each in documented) == sorted(ours)
