"""Links that tools want somebody to open: in the middle of a call (elicitation by URL), or in place of a result."""

from __future__ import annotations

import json

import pytest
from mcp.server.fastmcp import Context

from tests.fakes.openai_server import FakeOpenAI
from tests.support.house import HouseFolder, house_here
from tests.support.notes import ALLOWED, asked_to_sign_in
from tests.support.planted import COLD, files_of
from tests.support.tools import Workshop
from tests.support.visitor import visiting

SECRET = "s3cr3t-st4te-of-a-grant"
LINK = f"https://accounts.example.com/oauth/authorize?client_id=c&response_type=code&state={SECRET}"


async def pay(ctx: Context) -> str:  # type: ignore[type-arg]
    """Pay a bill."""
    answer = await ctx.elicit_url(message="Pay here", url="https://pay.example.com/bill", elicitation_id="bill-7")
    return f"paying: {answer.action}"


async def paid(ctx: Context) -> str:  # type: ignore[type-arg]
    """Somebody's browser has come to the end of it."""
    await ctx.session.send_elicit_complete("bill-7")
    return "noted"


async def test_the_call_goes_on_when_the_server_says_that_its_link_was_used(
    workshop_home: HouseFolder, shop: Workshop
) -> None:
    for tool in (pay, paid):
        shop.server.tool()(tool)
    workshop_home.policy(ALLOWED)
    async with (
        house_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread(within=COLD) as anas,
        ben.thread(within=COLD) as bens,
    ):
        await anas.send("use pay")
        (card,) = await asked_to_sign_in(anas)
        assert (card["host"], card["owner"]) == ("pay.example.com", "Ana")
        await bens.send("use paid")
        await bens.says("noted")
        await anas.says("paying: accept")
        await asked_to_sign_in(anas, "done")


@pytest.mark.parametrize("kind", ["result", "error"])
async def test_a_link_in_an_ordinary_answer_is_for_the_requester_alone(
    workshop_home: HouseFolder, shop: Workshop, model: FakeOpenAI, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    async def count_books() -> str:
        if shop.signed_in:
            return "42 books"
        if kind == "error":
            raise ValueError(f"Please sign in first: {LINK}")
        return f"Please sign in first: {LINK}"

    shop.server.tool()(count_books)
    workshop_home.policy(ALLOWED)
    workshop_home.variables["LOG_LEVEL"] = "debug"
    async with (
        house_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread(within=COLD) as anas,
        ben.thread(anas.thread_id, within=COLD) as seen,
    ):
        await anas.send("use count_books")
        (card,) = await asked_to_sign_in(anas)
        assert (card["host"], card["owner"]) == ("accounts.example.com", "Ana")
        path = f"/api/sign-ins/{card['id']}"
        assert (await ben.get(f"{path}/link")).status == 403
        assert (await ana.get(f"{path}/link")).body == {"url": LINK}
        shop.signed_in = True
        assert (await ben.post(path, {"id": "k1", "done": True})).status == 403
        assert (await ana.post(path, {"id": "k2", "done": True})).status == 200
        await anas.says("42 books")
        shown = json.dumps([list(each.entries.values()) for each in (anas, seen)])
    logged = capfd.readouterr()
    for text in [shown, str(model.requests), logged.out + logged.err, *(t for _, t in files_of(workshop_home.folder))]:
        assert SECRET not in text
