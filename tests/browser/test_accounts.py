"""Accounts and the questions of tools, by a person in a real browser: real OAuth, a real foreign server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, expect

from tests.browser.conftest import Served
from tests.fakes.oauth import ProtectedServer, protected_server
from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.support import everything as ev
from tests.support.brain import obedient
from tests.support.product import ProductFolder, product_here
from tests.web.browsing import Window, window_in, window_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@dataclass(frozen=True)
class Place:
    """What a test has of its own, and what it shares with others."""

    folder: Path
    port: str
    tab: Page


@pytest.fixture
def place(tmp_path: Path, port: str, tab: Page) -> Place:
    """Where a product is to be, and Ana's tab."""
    return Place(tmp_path, port, tab)


@asynccontextmanager
async def at_home(home: ProductFolder, model: FakeOpenAI, tab: Page) -> AsyncIterator[Window]:
    """Ana's window in that product."""
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody", "LLM_MODEL": "x"}
    async with product_here(home) as url, window_in(tab, Served(url)) as window:  # type: ignore[arg-type]
        yield window


@asynccontextmanager
async def with_accounts(place: Place) -> AsyncIterator[tuple[Window, ProtectedServer, FakeOpenAI]]:
    """The product with one server that demands an account."""
    home = ProductFolder(place.folder, {"PORT": place.port})
    async with protected_server() as server, fake_openai(obedient) as model:
        home.tool_servers({"notes": {"url": server.url, "auth": "oauth", "trustAnnotations": True}})
        home.policy("version: 1\nrules:\n  - name: free\n    match: {server: notes}\n    decide: allow\n")
        async with at_home(home, model, place.tab) as window:
            yield window, server, model


@asynccontextmanager
async def with_everything(place: Place) -> AsyncIterator[Window]:
    """The product with the server that asks people."""
    home = ProductFolder(place.folder, {"PORT": place.port})
    ev.everything(home)
    async with fake_openai(obedient) as model, at_home(home, model, place.tab) as window:
        yield window


async def opened_link(window: Window) -> Page:
    """The tab that one's link leads to."""
    await window.button("Sign in").click()
    async with window.page.context.expect_page() as opened:
        await window.log.get_by_role("link", name="Open the sign-in page").click()
    return await opened.value


async def test_signing_in_in_a_new_tab_and_the_call_goes_on_by_itself(place: Place) -> None:
    async with with_accounts(place) as (window, server, model):
        await window.say("use notes__sign_in")
        tab = await opened_link(window)
        link = tab.url
        await expect(tab.get_by_role("heading", name="Connect notes")).to_be_visible()
        await expect(tab.locator("body")).to_contain_text("Ana")
        await tab.get_by_role("button", name="Continue").click()
        await expect(tab.get_by_role("heading", name="notes is connected")).to_be_visible()
        await tab.close()
        await expect(window.log).to_contain_text("Signed in")
        await expect(window.log).to_contain_text("Results:")
        await window.say("use notes__whoami")
        await expect(window.log).to_contain_text("Results: ana")
        token = link.partition("s=")[2]
        assert len(token) > 20
        assert token not in str(model.requests)
        assert token not in await window.page.content()

        await window.button("Connected accounts…").click()
        await expect(window.dialog.get_by_role("listitem")).to_contain_text(["notes"])
        await window.dialog.get_by_role("button", name="Disconnect notes").click()
        await window.dialog.get_by_role("button", name="Yes, disconnect notes").click()
        await expect(window.dialog).to_contain_text("is disconnected")
        await expect(window.dialog.get_by_role("button", name="Disconnect notes")).to_have_count(0)
        assert server.count("POST /revoke") >= 1
        await window.dialog.get_by_role("button", name="Close").click()
        await window.say("use notes__whoami")
        await expect(window.button("Sign in")).to_be_visible()


async def test_a_link_that_ben_was_sent_connects_nothing_of_his(place: Place, chrome: Chromium) -> None:
    async with with_accounts(place) as (window, server, _):
        await window.say("use notes__sign_in")
        tab = await opened_link(window)
        async with window_of(window.product, chrome) as bens:
            await bens.become("Ben")
            await bens.page.goto(tab.url)
            await bens.page.get_by_role("button", name="Continue").click()
            await expect(bens.page.get_by_role("heading", name="This link is not for you")).to_be_visible()
            bens.complaints.clear()  # the browser's own about the 403
        assert server.tokens == {}
        await expect(window.button("Sign in")).to_be_visible()
        await tab.get_by_role("button", name="Continue").click()
        await expect(tab.get_by_role("heading", name="notes is connected")).to_be_visible()
        await expect(window.log).to_contain_text("Signed in")


@pytest.mark.node
@ev.needs_everything
async def test_a_foreign_servers_form_is_filled_in(place: Place) -> None:
    async with with_everything(place) as window:
        await window.say(ev.ASK_BY_FORM)
        await expect(window.log).to_contain_text("Question from the tool server everything")
        await window.button("Answer").click()
        await fill(window)
        await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
        for words in ev.ACCEPTED:
            await expect(window.log).to_contain_text(words)
        await expect(window.log).to_contain_text("Answered")


async def fill(window: Window) -> None:
    """`ANSWERS`, with the mouse and the keyboard."""
    dialog = window.dialog
    answers: dict[str, Any] = ev.ANSWERS
    typed = {
        "String": answers["name"],
        "String with email format": answers["email"],
        "String with date format": answers["birthdate"],
        "Integer": str(answers["integer"]),
        "Number in range 1-1000": str(answers["number"]),
    }
    for label, text in typed.items():
        await dialog.get_by_label(label, exact=True).fill(text)
    chosen = {
        "Boolean": answers["check"],
        "Untitled Single Select Enum": answers["untitledSingleSelectEnum"],
        "Titled Single Select Enum": answers["titledSingleSelectEnum"],
        "Legacy Titled Single Select Enum": answers["legacyTitledEnum"],
    }
    for label, option in chosen.items():
        await dialog.get_by_label(label, exact=True).select_option(option)
    for label, name in (
        ("Untitled Multiple Select Enum", "untitledMultipleSelectEnum"),
        ("Titled Multiple Select Enum", "titledMultipleSelectEnum"),
    ):
        group = dialog.get_by_role("group", name=label, exact=True)
        for box in await group.get_by_role("checkbox").all():
            await box.set_checked(await box.get_attribute("value") in answers[name])


@pytest.mark.node
@ev.needs_everything
@pytest.mark.parametrize(("button", "says"), [("Decline", ev.DECLINED), ("Cancel", ev.CANCELLED)])
async def test_a_foreign_servers_form_is_not_filled_in(place: Place, button: str, says: tuple[str, ...]) -> None:
    async with with_everything(place) as window:
        await window.say(ev.ASK_BY_FORM)
        await window.button(button).click()
        for words in says:
            await expect(window.log).to_contain_text(words)


@pytest.mark.node
@ev.needs_everything
async def test_a_foreign_servers_link_shows_its_host_before_it_is_asked_for(place: Place) -> None:
    async with with_everything(place) as window:
        await window.say(ev.ASK_BY_LINK)
        await expect(window.log).to_contain_text("everything asks you to open a link to accounts.example.com")
        await window.button("Sign in").click()
        link = window.log.get_by_role("link", name="Open the sign-in page")
        await expect(link).to_have_attribute("href", ev.LINK)
        await expect(link).to_have_attribute("target", "_blank")
        await window.button("I have signed in").click()
        await expect(window.log).to_contain_text(ev.OPENED[0])
