"""Microsoft's Agents Playground: a Teams client on this machine, with a page of its own, driven as a person would.

What it lacks: user-specific views, dialogs, targeted messages, deleting, HTML of messages, and anybody but Ana who
could click. What was said before its page was opened is not shown.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Locator, Page, expect

from tests.teams.local.packages import NODE, PLAYGROUND

TENANT = "aaaaaaaa-0000-4000-8000-000000000001"
BOT = "11111111-2222-3333-4444-555555555555"
BOT_NAME = "Countersign"
PEOPLE = ("Ana Almeida", "Ben Brook", "Chloe Costa", "Dan Dahl", "Eve Evans", "Finn Falk")
"""The first is who sits before it. It wants five others."""
PERSONAL, GROUP, CHANNEL = "Personal Chat", "Group Chat", "Announcements"

STARTS_WITHIN = 30.0
PATIENCE = 20_000
"""Milliseconds that anything may take, on a machine that runs many tests at once."""
CARD = ".ac-adaptiveCard"
BOX = "[data-lexical-editor]"
"""What one types into. In a channel the first begins a thread, and each thread has one of its own."""


def configuration() -> str:
    """One tenant with Ana and five others, a personal chat, a group chat and a team with two channels."""
    people = [_person(number, name) for number, name in enumerate(PEOPLE)]
    channel = {"id": "channel-announcements-id", "name": CHANNEL}
    config = {
        "version": "0.1.1",
        "tenantId": TENANT,
        "bot": {"id": BOT, "name": BOT_NAME},
        "currentUser": people[0],
        "users": people[1:],
        "personalChat": {"id": "personal-chat-id"},
        "groupChat": {"id": "group-chat-id", "name": GROUP},
        "team": {"id": "team-id", "name": "Acme", "aadGroupId": TENANT, "channels": [channel]},
    }
    return json.dumps(config)  # which is YAML, too


def _person(number: int, name: str) -> dict[str, str]:
    given, surname = name.split()
    address = f"{given.lower()}@acme.example"
    return {
        "id": f"29:{given.lower()}",
        "name": name,
        "userPrincipleName": address,
        "aadObjectId": f"aaaaaaaa-0000-4000-8000-0000000001{number:02}",
        "givenName": given,
        "surname": surname,
        "email": address,
    }


class Client:
    """Ana, before the page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def opens(self, place: str) -> None:
        """Choose a chat or a channel on the left."""
        await self.page.get_by_text(place, exact=True).first.click()

    async def says(self, text: str, *, mention: bool = False) -> None:
        """Write a message; in a channel it begins a thread."""
        await self._writes(self.page.locator(BOX).first, text, mention=mention)

    async def replies(self, text: str, *, mention: bool = False) -> None:
        """Write a message in the thread that is shown last."""
        await self._writes(self.page.locator(BOX).last, text, mention=mention)

    async def _writes(self, box: Locator, text: str, *, mention: bool) -> None:
        await box.click()
        if mention:
            await box.press_sequentially("@")
            await self.page.get_by_role("menuitem", name=BOT_NAME).click()
        await box.press_sequentially(f" {text}" if mention else text)
        await box.press("Enter")

    async def sees(self, *texts: str) -> None:
        """Wait until all of these are on the page, whatever the case."""
        for text in texts:
            await expect(self.page.get_by_text(text).locator("visible=true").first).to_be_visible(timeout=PATIENCE)

    async def card(self, *texts: str) -> Locator:
        """Wait for the newest card that shows all of these."""
        cards = self.page.locator(CARD)
        for text in texts:
            cards = cards.filter(has_text=text)
        await expect(cards.last).to_be_visible(timeout=PATIENCE)
        return cards.last

    async def presses(self, name: str, within: Locator) -> None:
        """Press a button."""
        await within.get_by_role("button", name=name, exact=True).first.click(timeout=PATIENCE)

    async def waiting(self, count: int) -> Locator:
        """Wait until that many cards have an Approve button."""
        cards = self.page.locator(CARD).filter(has=self.page.get_by_role("button", name="Approve", exact=True))
        await expect(cards).to_have_count(count, timeout=PATIENCE)
        return cards


@asynccontextmanager
async def tab(browser: Browser) -> AsyncIterator[Page]:
    """An empty tab for the Playground, which shows it much faster from the second time on."""
    page = await browser.new_page(viewport={"width": 1500, "height": 1100})
    try:
        page.set_default_timeout(PATIENCE)
        await page.route(re.compile(r"^https://"), lambda route: route.abort())  # fonts and flourishes of its own
        yield page
    finally:
        await page.close()


async def client(page: Page, url: str) -> Client:
    """The Playground at `url`, opened anew in a tab."""
    await page.goto(url)
    await page.get_by_title("Hide log panel").click()  # which has all texts once more
    return Client(page)


@asynccontextmanager
async def playground(folder: Path, endpoint: str) -> AsyncIterator[str]:
    """A Playground of its own; its address. `endpoint`: where the bot hears, `…/api/messages`."""
    assert PLAYGROUND is not None
    assert NODE is not None
    (folder / ".m365agentsplayground.yml").write_text(configuration())
    log = folder / "playground.log"
    command = [NODE, str(PLAYGROUND), "start", "-e", endpoint, "-c", "msteams", "-p", "0", "--disable-telemetry"]
    environment = {**os.environ, "TEAMSAPPTESTER_BROWSER": "none"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        async with asyncio.timeout(STARTS_WITHIN):
            while not (found := re.search(r"Listening on (\d+)", log.read_text())):
                assert process.poll() is None, f"the Playground did not start:\n{log.read_text()}"
                await asyncio.sleep(0.02)
        yield f"http://localhost:{found[1]}"
    finally:
        process.kill()
        process.wait()
