"""docs/adding-a-platform.md builds a platform: its code blocks, and nothing else, are put where they say, and the whole
product runs with it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import importlib
import json
import re
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

import adapters
from adapters import platforms
from bot import settings as bot_settings
from bot.domain import OutcomeView
from bot.settings import Settings
from tests.fakes.openai_server import fake_openai
from tests.support.brain import obedient
from tests.support.product import GivenSettings, ProductFolder, product_here
from tests.support.tools import Workshop, entry, workshop

pytestmark = pytest.mark.asyncio(loop_scope="module")
DOCUMENT = Path(__file__).parents[1] / "docs" / "adding-a-platform.md"
SECRET = "a-secret-of-nobody"
POLICY = """
version: 1
rules:
  - {name: deleting needs somebody else of the room, match: {tool: delete}, decide: ask, approvers: [channel],
     selfApproval: fourEyes}
"""
WITHIN = 20.0
"""Seconds that anything may take; a test that needs them all is broken."""
Json = dict[str, Any]


def blocks() -> dict[str, str]:
    """The code blocks of the document, by the path in their first line."""
    found = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return dict(found)


@pytest.fixture(scope="module")
def settings_with_it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Settings]]:
    """The platform put together as the document says; its settings."""
    written, folder = blocks(), tmp_path_factory.mktemp("platform")
    for path in [path for path in written if path.startswith("adapters/lines/")]:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written.pop(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapters, "__path__", [*adapters.__path__, str(folder / "adapters")])
        exec(written.pop("adapters/platforms.py"), vars(platforms))
        patch.setattr(platforms, "CHAT_PLATFORMS", (*platforms.CHAT_PLATFORMS, vars(platforms).pop("lines_platform")))
        names = {**vars(bot_settings), "GivenSettings": GivenSettings}
        fields = textwrap.indent(written.pop("bot/settings.py"), "    ")
        exec(f"class WithLines(GivenSettings):\n{fields}", names)
        assert written == {}
        yield names["WithLines"]
    for module in [name for name in sys.modules if name.startswith("adapters.lines")]:
        del sys.modules[module]


@dataclass
class LinesService:
    """The chat service that the document describes."""

    url: str = ""
    lines: dict[str, Json] = field(default_factory=dict)
    guests: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    """Who is in no room."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        application = web.Application()
        room = "/spaces/acme/rooms/{room}/lines"
        member = "/spaces/acme/rooms/{room}/people/{user}"
        application.add_routes(
            [
                web.get("/spaces", self._spaces),
                web.get("/spaces/acme/people/{user}", self._person),
                web.get(member, self._member),
                web.post(room, self._post),
                web.put(f"{room}/{{line}}", self._put),
                web.get(room, self._find),
            ]
        )
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
            yield
        finally:
            await runner.cleanup()

    async def _spaces(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        return web.json_response({})

    async def _person(self, request: web.Request) -> web.Response:
        user = request.match_info["user"]
        known = {"name": user.capitalize(), "time_zone": "Europe/Berlin", "email": f"{user}@example.com"}
        return web.json_response(known | {"guest": user in self.guests})

    async def _member(self, request: web.Request) -> web.Response:
        if request.match_info["user"] in self.elsewhere:
            return web.json_response({}, status=404)
        return await self._person(request)

    async def _post(self, request: web.Request) -> web.Response:
        line = f"line{len(self.lines)}"
        await self._show({"id": line, "room": request.match_info["room"], **await request.json()})
        return web.json_response({"id": line})

    async def _put(self, request: web.Request) -> web.Response:
        await self._show({**self.lines[request.match_info["line"]], **await request.json()})
        return web.json_response({})

    async def _find(self, request: web.Request) -> web.Response:
        found = [line for line in self.lines.values() if line["key"] == request.query["key"]]
        return web.json_response({"id": found[0]["id"]}) if found else web.json_response({}, status=404)

    async def _show(self, line: Json) -> None:
        async with self.changed:
            self.lines[line["id"]] = line
            self.changed.notify_all()


@dataclass
class Product:
    """The product with the platform, and the tools that it uses."""

    lines: LinesService
    shop: Workshop
    home: ProductFolder
    kind: type[GivenSettings]
    url: str = ""
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        self.url = await self._stack.enter_async_context(product_here(self.home, self.kind))

    async def stop(self) -> None:
        await self._stack.aclose()


@dataclass
class Room:
    """A room of Lines, as its people use it."""

    name: str
    product: Product
    events: int = 0

    async def event(self, kind: str, user: str, *, signed_with: str = SECRET, **more: Any) -> tuple[int, Json]:
        """Something that a person does; what Lines is answered."""
        self.events += 1
        ids = {"id": f"e{self.events}", "space": "acme", "room": self.name, "user": user}
        guest = user in self.product.lines.guests
        event = {"type": kind, "name": user.capitalize(), "guest": guest, **ids, **more}
        body, now = json.dumps(event).encode(), str(int(time.time()))
        signature = hmac.new(signed_with.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"Lines-Time": now, "Lines-Signature": signature}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.product.url}/lines/events", data=body, headers=headers) as answer,
        ):
            return answer.status, await answer.json() if answer.ok else {}

    async def says(self, user: str, text: str) -> None:
        """Write to the bot."""
        assert await self.event("said", user, text=f"@countersign {text}") == (200, {})

    async def presses(self, user: str, line: Json, label: str, **more: Any) -> Json:
        """Press a button; what this person alone is shown."""
        (action,) = [button["action"] for button in line["buttons"] if button["label"] == label]
        return (await self.event("clicked", user, action=action, **more))[1]

    async def submits(self, user: str, form: Json, **values: str) -> Json:
        """Send a form; likewise."""
        return (await self.event("submitted", user, action=form["form"]["action"], values=values))[1]

    @property
    def lines(self) -> list[Json]:
        """The bot's lines here."""
        return [line for line in self.product.lines.lines.values() if line["room"] == self.name]

    async def shows(self, *words: str) -> Json:
        """Wait for a line with these words."""

        def fitting() -> list[Json]:
            return [line for line in self.lines if all(word in line["text"] for word in words)]

        changed = self.product.lines.changed
        async with changed:
            try:
                await asyncio.wait_for(changed.wait_for(fitting), WITHIN)
            except TimeoutError:
                raise AssertionError(f"{words} did not come: {self.lines}") from None
            return fitting()[0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(
    tmp_path_factory: pytest.TempPathFactory, settings_with_it: type[GivenSettings]
) -> AsyncIterator[Product]:
    lines, home = LinesService(), ProductFolder(tmp_path_factory.mktemp("data"))
    async with lines.running(), workshop() as shop, fake_openai(obedient) as model:
        home.tool_servers({"workshop": entry(shop)})
        home.policy(POLICY)
        home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody"}
        home.variables |= {"LLM_MODEL": "any", "LINES_URL": lines.url, "LINES_SECRET": SECRET}
        product = Product(lines, shop, home, settings_with_it)
        await product.start()
        yield product
        await product.stop()


@pytest.fixture
def room(request: pytest.FixtureRequest, product: Product) -> Room:
    """A room of the test's own."""
    return Room(request.node.name[:60], product)


async def test_a_message_is_answered(room: Room) -> None:
    await room.says("ana", "good morning @all [here](https://example.com)")
    await room.shows("You said: good morning \\@all \\[here\\](https://example.com)")


async def test_a_card_is_approved_and_the_tool_runs_once(room: Room, product: Product) -> None:
    await room.says("ana", "use make what=lamp")
    card = await room.shows("Approve?", "workshop: make", "What: lamp")
    for _ in range(2):
        await room.presses("ana", card, "Approve", id="click-1")
    again = await room.presses("ana", card, "Approve")
    await room.shows("Approved by Ana", "made lamp")
    await room.shows("Results: made lamp")
    assert "Already" in again["text"]
    assert product.shop.done.count("make lamp 1") == 1


async def test_the_wrong_person_is_refused_alone(room: Room, product: Product) -> None:
    await room.says("ana", "use make what=table")
    card = await room.shows("Approve?")
    refusal = await room.presses("ben", card, "Approve")
    assert "can’t approve this" in refusal["text"]
    form = await room.presses("ana", card, "Reject…")
    await room.submits("ana", form, reason="too bright")
    await room.shows("Rejected by Ana", "too bright")
    await room.shows("Results:", "too bright")
    assert not any("not one of the people" in line["text"] for line in room.lines)
    assert "make table 1" not in product.shop.done


async def test_the_policy_judges_by_what_the_platform_knows_of_who_clicks(room: Room, product: Product) -> None:
    product.lines.elsewhere.add("dora")
    await room.says("ana", "use delete what=lamp")
    card = await room.shows("Approve?", "workshop: delete")
    for somebody in ("ana", "dora"):
        assert "Approved" not in (await room.presses(somebody, card, "Approve"))["text"]
    assert "delete lamp" not in product.shop.done
    assert "Approved" in (await room.presses("ben", card, "Approve"))["text"]
    await room.shows("Approved by Ben", "deleted lamp")


async def test_a_call_is_edited_and_approved(room: Room, product: Product) -> None:
    await room.says("ana", "use make what=sofa")
    form = await room.presses("ana", await room.shows("Approve?"), "Edit…")
    wrong = await room.submits("ana", form, what="chair", count="many")
    assert list(wrong["errors"]) == ["count"]
    await room.submits("ana", form, what="chair", count="2")
    await room.shows("Approved by Ana", "made chair")
    assert {"make sofa 1", "make chair 2"} & {*product.shop.done} == {"make chair 2"}


async def test_a_question_is_answered(room: Room) -> None:
    await room.says("ana", "ask lamp")
    question = await room.shows("asks Ana", "Which lamp?")
    assert "form" not in await room.presses("ben", question, "Answer…")
    form = await room.presses("ana", question, "Answer…")
    await room.submits("ana", form, size="7")
    await room.shows("Which lamp?", "Answered.")
    await room.shows("Results:", "7")


async def test_a_restart_in_the_middle_changes_nothing(room: Room, product: Product) -> None:
    await room.says("ana", "use make what=transport")
    card = await room.shows("Approve?")
    await product.stop()
    await product.start()
    await room.presses("ana", card, "Approve")
    await room.shows("Approved by Ana", "made transport")
    await room.shows("Results: made transport")
    assert product.shop.done.count("make transport 1") == 1
    assert len(room.lines) == len({line["key"] for line in room.lines})


async def test_a_sign_in_link_is_given_to_its_owner_alone(room: Room) -> None:
    await room.says("ana", "use make_with_account what=lamp")
    await room.presses("ana", await room.shows("Approve?"), "Approve")
    card = await room.shows("Ana has to sign in")
    assert "link" not in await room.presses("ben", card, "Get the link")
    assert (await room.presses("ana", card, "Get the link"))["link"].startswith("https://accounts.example.com/")
    await room.presses("ana", card, "Not now")
    await room.shows("Ana has to sign in", "Declined.")
    assert not any("ticket" in line["text"] for line in room.lines)


async def test_everything_that_a_call_holds_is_behind_show_all(room: Room) -> None:
    await room.says("ana", f"use make what={'x' * 9_000}@all")
    first = await room.presses("ana", await room.shows("Approve?", "characters hidden"), "Show all")
    second = await room.presses("ana", first, "Next page")
    third = await room.presses("ana", second, "Next page")
    assert first["text"].startswith("Page 1 of 3")
    assert third["text"].endswith("\\@all")


async def test_a_call_whose_outcome_is_unknown_is_shown_until_somebody_says_what_came_of_it(
    settings_with_it: object,
) -> None:
    line_json = importlib.import_module("adapters.lines.render").line_json
    broken = OutcomeView("o1", "open", "workshop", "make", "Make", {"what": "lamp"}, "Ana", "lines:acme:ana")
    actions = [button["action"] for button in line_json(broken)["buttons"]]
    assert actions == ["it_was_done:o1", "try_again:o1", "skip:o1"]
    settled = line_json(replace(broken, status="try_again", settled_by="Ana"))
    assert settled["text"].endswith("Ana: try again")
    assert settled["buttons"] == []


async def test_what_lines_did_not_sign_and_what_is_no_event_is_refused(room: Room) -> None:
    forged, _ = await room.event("said", "ana", text="@countersign hello", signed_with="another secret")
    broken, _ = await room.event("said", "ana/../ben", text="@countersign hello")
    assert (forged, broken, room.lines) == (401, 400, [])


async def test_a_guest_is_turned_away_alone(room: Room, product: Product) -> None:
    product.lines.guests.add("carl")
    await room.says("carl", "hello")
    assert (await room.shows("Guests"))["to"] == "carl"
    await room.says("ana", "use make what=shelf")
    refusal = await room.presses("carl", await room.shows("Approve?"), "Approve")
    assert "Guests" in refusal["text"]
