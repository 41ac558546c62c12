"""Links that tools want somebody to open: in the middle of a call (elicitation by URL), or in a result, where the
operator has described how such a result looks. Rules 4 and 7."""

from __future__ import annotations

import json

import pytest
from mcp.server.fastmcp import Context
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, ToolAnnotations

from tests.fakes.openai_server import FakeOpenAI
from tests.support.notes import ALLOWED, asked_to_sign_in
from tests.support.planted import COLD
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import all_that_is_kept
from tests.support.tools import Workshop, entry
from tests.support.visitor import Thread, visiting

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
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    for tool in (pay, paid):
        shop.server.tool()(tool)
    workshop_home.policy(ALLOWED)
    async with (
        product_here(workshop_home) as url,
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


async def test_a_server_that_acts_and_asks_for_one_link_after_the_other_needs_a_person_for_each_time(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 4: that a link was used is the server's own word, and so is that it did nothing before."""
    acted: list[str] = []

    async def act() -> str:
        acted.append("acted")
        link = f"https://accounts.example.com/{len(acted)}"
        wanted = ElicitRequestURLParams(mode="url", message="Go on", url=link, elicitationId=f"e{len(acted)}")
        raise UrlElicitationRequiredError([wanted])

    async def say_used(ctx: Context) -> str:  # type: ignore[type-arg]
        many = len(acted)
        await ctx.session.send_elicit_complete(f"e{many}")
        return f"said of {many} links"

    for tool in (act, say_used):
        shop.server.tool()(tool)
    workshop_home.policy(ALLOWED)
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread(within=COLD) as anas,
        ben.thread(within=COLD) as bens,
    ):
        await anas.send("use act")
        await asked_to_sign_in(anas)
        await bens.send("use say_used")
        await bens.says("said of 1 links")
        await asked_to_sign_in(anas, "done")
        (second,) = await asked_to_sign_in(anas)
        await bens.send("use say_used")
        await bens.says("said of 2 links")
        assert (await ana.post(f"/api/sign-ins/{second['id']}", {"id": "k", "done": True})).status == 200
        await asked_to_sign_in(anas, "done", 2)
        await asked_to_sign_in(anas)
        assert len(acted) == 3


def accounting(shop: Workshop, kind: str, *, reads: bool) -> list[str]:
    """Adds a tool that gives a link until somebody has signed in; what it did."""
    counted: list[str] = []

    async def count_books() -> str:
        counted.append("counted")
        if shop.signed_in:
            return "42 books"
        if kind == "error":
            raise ValueError(f"Please sign in first: {LINK}")
        return f"Please sign in first: {LINK}"

    annotations = ToolAnnotations(readOnlyHint=True) if reads else None
    shop.server.tool(annotations=annotations)(count_books)
    return counted


RULE = {"pattern": "^(Error executing tool count_books: )?Please sign in first: ", "host": "accounts.example.com"}


@pytest.mark.parametrize("kind", ["result", "error"])
async def test_a_link_of_the_kind_that_the_operator_described_is_for_the_requester_alone(
    workshop_home: ProductFolder, shop: Workshop, model: FakeOpenAI, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    """Rule 7, and rule 4 for a tool that only reads: the call is made again."""
    counted = accounting(shop, kind, reads=True)
    workshop_home.tool_servers({"workshop": entry(shop, signIn=RULE)})
    workshop_home.policy(ALLOWED)
    workshop_home.variables["LOG_LEVEL"] = "debug"
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread(within=COLD) as anas,
    ):
        await anas.send("use count_books")
        (card,) = await asked_to_sign_in(anas)
        assert (card["host"], card["owner"]) == ("accounts.example.com", "Ana")
        path = f"/api/sign-ins/{card['id']}"
        assert (await ben.get(f"{path}/link")).status == 404
        assert (await ana.get(f"{path}/link")).body == {"url": LINK, "message": ""}
        shop.signed_in = True
        assert (await ben.post(path, {"id": "k1", "done": True})).status == 404
        assert (await ana.post(path, {"id": "k2", "done": True})).status == 200
        await anas.says("42 books")
        assert len(counted) == 2
        shown = json.dumps(list(anas.entries.values()))
    logged = capfd.readouterr()
    for text in [shown, str(model.requests), logged.out + logged.err, *(t for _, t in all_that_is_kept(workshop_home))]:
        assert SECRET not in text


async def test_a_tool_that_may_have_acted_before_it_gave_such_a_link_is_not_called_again_unasked(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 4: its outcome is unknown, and only the requester has it tried again."""
    counted = accounting(shop, "result", reads=False)
    workshop_home.tool_servers({"workshop": entry(shop, signIn=RULE)})
    workshop_home.policy(ALLOWED)
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        ana.thread(within=COLD) as anas,
    ):
        await anas.send("use count_books")
        (card,) = await asked_to_sign_in(anas)
        shop.signed_in = True
        assert (await ana.post(f"/api/sign-ins/{card['id']}", {"id": "k", "done": True})).status == 200
        (outcome,) = await anas.until(lambda: anas.contents("outcome"))
        assert len(counted) == 1
        assert (await ana.post(f"/api/outcomes/{outcome['id']}", {"id": "l", "choice": "try_again"})).status == 200
        await anas.says("42 books")
        assert len(counted) == 2


async def test_a_receipt_that_speaks_of_signing_in_is_a_result_and_nothing_is_paid_twice(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 4: prose never says that a server did nothing."""
    paid: list[str] = []

    async def pay_acme() -> str:
        paid.append("500")
        return f"Paid 500 to ACME. Please sign in at {LINK} to see the receipt"

    shop.server.tool()(pay_acme)
    workshop_home.policy(ALLOWED)
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        ana.thread(within=COLD) as anas,
    ):
        await anas.send("use pay_acme")
        await anas.says("Paid 500 to ACME", "to see the receipt")
        assert anas.contents("sign_in") == []
        assert paid == ["500"]


async def test_what_a_server_says_of_its_link_is_on_no_card_that_others_see(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 7: what a server says by its protocol is for the owner of the link, too."""

    async def pay_bill(ctx: Context) -> str:  # type: ignore[type-arg]
        answer = await ctx.elicit_url(
            message="The bill of Dr. Brown", url="https://pay.example.com/bill", elicitation_id="b"
        )
        return answer.action

    shop.server.tool()(pay_bill)
    workshop_home.policy(ALLOWED)
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread(within=COLD) as anas,
    ):
        await anas.send("use pay_bill")
        (card,) = await asked_to_sign_in(anas)
        assert "Brown" not in json.dumps(list(anas.entries.values())), "an operator sees the same card"
        private = {"url": "https://pay.example.com/bill", "message": "The bill of Dr. Brown"}
        assert (await ana.get(f"/api/sign-ins/{card['id']}/link")).body == private
        refused = await ben.get(f"/api/sign-ins/{card['id']}/link")
        assert (refused.status, "Brown" in json.dumps(refused.body)) == (404, False)


async def test_after_not_now_the_card_of_the_approval_waits_for_no_sign_in(at_work: Thread) -> None:
    """Rule 12: a card says how things are now."""
    await at_work.send("use make_with_account what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    (sign_in,) = await asked_to_sign_in(at_work)
    await at_work.card(card["id"], "approved", result="waiting for a sign-in")
    await at_work.visitor.post(f"/api/sign-ins/{sign_in['id']}", {"id": "not-now", "done": False})
    await at_work.card(card["id"], "approved", result="nothing was done")
