"""Takes the pictures for docs/teams.md: `python -m tests.teams.local.pictures`.

A real product in the fake Teams, real clicks; what each person sees is drawn by Microsoft's own renderer of cards.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.fakes.teams.server import ANA, BEN, CHLOE, FakeTeams, fake_teams
from tests.support.product import ProductFolder, product_here
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.teams import examples
from tests.teams.local.drawing import SHARP, Drawing, drawing
from tests.teams.product.conftest import as_, connected
from tests.teams.product.talk import Json, Talk, words
from tests.web.browsing import chromium

IMAGES = Path(__file__).parents[3] / "docs" / "images"
CHANNEL, CHAT = "General", "Countersign"
PEOPLE = {ANA: ("Ana", "#7c3085"), BEN: ("Ben", "#2f6f9f"), CHLOE: ("Chloe", "#7a5c00")}
AUTHORS = {
    **{user: {"name": name, "colour": colour, "round": True} for user, (name, colour) in PEOPLE.items()},
    "": {"name": "Countersign", "colour": "#4b53d8", "round": False},
}
AI = "AIGeneratedContent"


def picture(name: str) -> Path:
    """Where a picture goes."""
    return IMAGES / f"teams-{name}.png"


def now() -> str:
    """The time of day where the browser is."""
    return datetime.now(ZoneInfo(SHARP["timezone_id"])).strftime("%H:%M")


def drawable(person: TeamsPerson, message: Json) -> dict[str, Any]:
    """A message as a person sees it."""
    seen = message if message["author"] else person.sees(message)
    entities = seen.get("entities") or []
    ours: Json = next((e for e in entities if e.get("type") == "https://schema.org/Message"), {})
    cards = [a["content"] for a in seen.get("attachments", []) if a["contentType"].endswith("card.adaptive")]
    return {
        "author": AUTHORS[message["author"]],
        "time": now(),
        "text": re.sub(r"<at>(.*?)</at>", r"**@\1**", seen["text"]),
        "card": cards[0] if cards else None,
        "labels": ["AI generated"] if AI in ours.get("additionalType", []) else [],
        "sources": [c["appearance"]["name"] for c in ours.get("citation", [])],
        "onlyYou": bool(message["only_for"]),
    }


def everything(talk: Talk) -> list[dict[str, Any]]:
    """What this person sees of a conversation."""
    return [drawable(talk.person, message) for message in talk.teams.messages(talk.conversation)]


@asynccontextmanager
async def product(folder: Path, teams: FakeTeams) -> AsyncIterator[HttpTransport]:
    """The product with the demo model and the bundled tool servers."""
    home = ProductFolder(folder, connected(teams))
    async with product_here(home) as url:
        yield HttpTransport(f"{url}/api/messages", teams)


async def main() -> None:
    """Every picture, one conversation after the other."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        async with (
            chromium() as browser,
            drawing(where, browser) as page,
            fake_teams() as teams,
            product(where, teams) as transport,
        ):
            for user, (name, _) in PEOPLE.items():
                teams.world.users[user].name = name
            ana, ben = (TeamsPerson(teams, user, transport) for user in (ANA, BEN))
            await _approving(page, Talk(teams, ana, teams.channel))
            await _rejecting(page, Talk(teams, ana, teams.channel))
            await _deleting(page, Talk(teams, ana, teams.channel), ben)
            await _failing(page, Talk(teams, ana, ana.chat))
            await _allowing(page, Talk(teams, ana, ana.chat))
            await _asking(page, Talk(teams, ana, teams.channel))
            await _listing(page, Talk(teams, ana, ana.chat))
            await _signing_in(page)
            await _planning(page)


async def _approving(page: Drawing, talk: Talk) -> None:
    await talk.mentions("create a meeting called Standup tomorrow at 9am")
    card = await talk.card()
    await page.conversation(picture("approval"), CHANNEL, everything(talk))
    edit = await talk.opens(card, "edit_dialog")
    await page.dialog(picture("edit"), edit.title, edit.card)
    whole = await talk.opens(card, "show_all")
    await page.dialog(picture("note"), whole.title, whole.card, fill="Please invite Chloe, too.")
    await talk.clicks(card, "approve")
    await talk.settled(card, "Approved")
    await talk.says("created")
    await page.conversation(picture("settled"), CHANNEL, everything(talk))


async def _rejecting(page: Drawing, talk: Talk) -> None:
    await talk.mentions("create a meeting called Review tomorrow at 9am")
    card = await talk.card()
    await page.conversation(picture("reason"), CHANNEL, everything(talk), press="Reject…", fill="Make it 10am, please.")
    await talk.clicks(card, "reject", {"reason": "Make it 10am, please."})
    await talk.settled(card, "Rejected")
    await talk.card("10:00")
    await page.conversation(picture("rejected"), CHANNEL, everything(talk))


async def _deleting(page: Drawing, talk: Talk, ben: TeamsPerson) -> None:
    """Somebody else decides, and is asked once more."""
    await talk.mentions("delete the event Standup")
    await talk.card()
    theirs = as_(ben, talk)
    await theirs.card()
    await page.conversation(picture("deletion"), CHANNEL, everything(theirs), press="Approve…")


async def _failing(page: Drawing, talk: Talk) -> None:
    await talk.mentions("create a meeting called Planning tomorrow at 9am")
    card = await talk.card()
    dialog = await talk.opens(card, "edit_dialog")
    await talk.submits(dialog, "edit", calendar_id="sales")
    await talk.settled(card, "There is no calendar")
    await talk.says("not")
    await page.conversation(picture("failed"), CHAT, everything(talk))


async def _allowing(page: Drawing, talk: Talk) -> None:
    await talk.mentions("new")
    await talk.says("New conversation")
    await _done(talk, "add a task to buy milk", approve=True)
    await _done(talk, "add a task to buy milk")
    await page.conversation(picture("change"), CHAT, _after(talk, "add a task to buy milk"))
    await _done(talk, "list my tasks")
    await page.conversation(picture("activity"), CHAT, _after(talk, "list my tasks"), press=re.compile("step"))


async def _done(talk: Talk, text: str, *, approve: bool = False) -> None:
    """Ask for something, always allow it where that has to be approved, and wait for the list of what was done."""
    before = len(talk.of_the_bot())
    await talk.mentions(text)
    if approve:
        card = await talk.card("milk")
        await talk.submits(await talk.opens(card, "always_dialog"), "always", duration="8 h")
    await talk.teams.until(lambda: any("1 step" in words(m) for m in talk.of_the_bot()[before:]))


def _after(talk: Talk, text: str) -> list[dict[str, Any]]:
    """What this person sees from their last message with this text on."""
    seen = everything(talk)
    return seen[max(n for n, each in enumerate(seen) if text in each["text"] and each["author"]["round"]) :]


async def _asking(page: Drawing, talk: Talk) -> None:
    await talk.mentions("schedule something")
    await talk.says("What shall I schedule")
    await page.conversation(picture("question"), CHANNEL, everything(talk))


async def _listing(page: Drawing, talk: Talk) -> None:
    await talk.mentions("approvals")
    await talk.says("Standing approvals")
    await page.conversation(picture("overview"), CHAT, _after(talk, "approvals"))


async def _planning(page: Drawing) -> None:
    """The bundled model makes no plans."""
    (activity,) = examples.activities()["plan_that_failed"]
    await page.conversation(picture("plan"), CHANNEL, [_posted(activity)])


async def _signing_in(page: Drawing) -> None:
    """The bundled tool servers want no sign-in."""
    (activity,) = examples.activities()["sign_in_open"]
    message = _posted(activity)
    await page.conversation(picture("sign-in"), CHANNEL, [message])
    (needed,) = examples.activities()["account_needed_and_its_code"]
    await page.conversation(picture("account"), CHANNEL, [_posted(needed)])
    (link,) = examples.activities()["account_link"]
    await page.conversation(picture("account-link"), CHANNEL, [_posted(link) | {"onlyYou": True}])
    (connections,) = examples.activities()["connections"]
    await page.conversation(picture("connections"), CHAT, [_posted(connections)])


def _posted(activity: Mapping[str, Any]) -> dict[str, Any]:
    card = activity["attachments"][0]["content"]
    return {"author": AUTHORS[""], "time": now(), "text": "", "card": card}


if __name__ == "__main__":
    asyncio.run(main())
