"""Failures, unknown outcomes, sign-ins: each ends in the truth, and nothing runs twice."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from mcp.server.fastmcp import Context
from pydantic import BaseModel

from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.support.planted import COLD
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import all_that_is_kept
from tests.support.tools import Workshop, entry
from tests.support.visitor import Thread, visiting

SECRET = "top-secret-ticket"


class Count(BaseModel):
    """What a tool wants to know."""

    count: int


async def approve_one(thread: Thread, message: str) -> str:
    await thread.send(message)
    (card,) = await thread.waiting()
    await thread.approve(card["id"])
    return card["id"]


async def test_a_failing_tool_is_told_to_the_model_and_shown_on_the_card(at_work: Thread) -> None:
    card = await approve_one(at_work, "use fail what=lamp")
    await at_work.card(card, "approved", result="failed: ")
    await at_work.says("failed: ", "lamp is broken")


async def test_a_call_of_a_tool_that_does_not_exist_is_answered(at_work: Thread) -> None:
    await at_work.send("use fly what=lamp")
    await at_work.says("there is no tool called workshop__fly")


@pytest.fixture
def impatient(workshop_home: ProductFolder, shop: Workshop) -> ProductFolder:
    workshop_home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    return workshop_home


@pytest.mark.parametrize(
    ("choice", "said", "times"),
    [("it_was_done", "as ana confirmed", 1), ("skip", "skipped by ana", 1), ("try_again", "made lamp slowly", 2)],
)
async def test_an_unknown_outcome_is_asked_and_only_a_person_starts_another_attempt(
    impatient: ProductFolder, at_work: Thread, shop: Workshop, choice: str, said: str, times: int
) -> None:
    card = await approve_one(at_work, "use make_slowly what=lamp")
    outcome = await at_work.until(lambda: at_work.contents("outcome"))
    await at_work.card(card, "approved", result="outcome unknown")
    assert len(shop.done) == 1
    shop.may_end.set()
    answer = await at_work.visitor.post(
        f"/api/outcomes/{quote(outcome[0]['id'], safe='')}", {"id": "click", "choice": choice}
    )
    assert answer.status == 200
    await at_work.says(said)
    assert len(shop.done) == times


async def test_the_card_of_a_try_that_did_nothing_does_not_hide_that_an_earlier_one_may_have_taken_effect(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 4: what is unknown is said to be."""

    async def order(what: str) -> str:
        shop.done.append(f"order {what}")
        if len(shop.done) == 1:
            await shop.may_end.wait()
        return await shop.make_with_account(what)

    shop.server.tool()(order)
    workshop_home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    async with product_here(workshop_home) as url, visiting(url, "ana") as ana, ana.thread(within=COLD) as thread:
        card = await approve_one(thread, "use order what=lamp")
        (outcome,) = await thread.until(lambda: thread.contents("outcome"))
        await ana.post(f"/api/outcomes/{quote(outcome['id'], safe='')}", {"id": "a", "choice": "try_again"})
        (sign_in,) = await thread.until(lambda: thread.contents("sign_in"))
        await ana.post(f"/api/sign-ins/{sign_in['id']}", {"id": "b", "done": False})
        await thread.card(card, "approved", result="Nothing was done. An earlier try may have taken effect.")


async def test_only_the_requester_says_what_came_of_it(
    impatient: ProductFolder, at_work: Thread, ben_at_work: Thread
) -> None:
    await approve_one(at_work, "use make_slowly what=lamp")
    outcome = await at_work.until(lambda: at_work.contents("outcome"))
    path = f"/api/outcomes/{outcome[0]['id']}"
    refused = await ben_at_work.visitor.post(path, {"id": "click", "choice": "skip"})
    assert refused.status == 404  # it is in somebody else's conversation


async def test_a_link_is_for_one_person_and_the_call_goes_on_after_the_sign_in(
    at_work: Thread,
    ben_at_work: Thread,
    shop: Workshop,
    model: FakeOpenAI,
    workshop_home: ProductFolder,
    capfd: pytest.CaptureFixture[str],
) -> None:
    await approve_one(at_work, "use make_with_account what=lamp")
    (sign_in,) = await at_work.until(lambda: at_work.contents("sign_in"))
    assert (sign_in["owner"], sign_in["host"]) == ("Ana", "accounts.example.com")
    link = f"/api/sign-ins/{sign_in['id']}/link"
    assert SECRET in (await at_work.visitor.get(link)).body["url"]
    assert (await ben_at_work.visitor.get(link)).status == 404
    done = f"/api/sign-ins/{sign_in['id']}"
    assert (await ben_at_work.visitor.post(done, {"id": "a", "done": True})).status == 404

    shop.signed_in = True
    assert (await at_work.visitor.post(done, {"id": "b", "done": True})).status == 200
    await at_work.says("made lamp with the account")
    assert shop.done == ["make_with_account lamp"]
    assert (await at_work.visitor.get(link)).status == 403

    logged = capfd.readouterr()
    assert SECRET not in logged.out + logged.err
    assert SECRET not in str(model.requests)
    assert SECRET not in str(list(ben_at_work.entries.values()))
    assert SECRET not in str(list(at_work.entries.values()))
    assert all(SECRET not in text for _, text in all_that_is_kept(workshop_home))


async def test_a_call_that_asks_in_the_middle_waits_for_an_answer_by_its_card(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 12: a card says what is so."""

    async def order(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        given = await ctx.elicit("How many?", Count)
        return f"{what}: {given.action}"

    shop.server.tool()(order)
    async with product_here(workshop_home) as url, visiting(url, "ana") as ana, ana.thread(within=COLD) as thread:
        card = await approve_one(thread, "use order what=lamps")
        question = await thread.question()
        await thread.card(card, "approved", result="Waiting for an answer.")
        assert (await thread.answer_form(question["id"], {"count": 3})).status == 200
        await thread.card(card, "approved", result="Done: lamps: accept")


async def test_whoever_does_not_want_to_sign_in_says_so_and_the_call_is_not_made(
    at_work: Thread, shop: Workshop
) -> None:
    await approve_one(at_work, "use make_with_account what=lamp")
    (sign_in,) = await at_work.until(lambda: at_work.contents("sign_in"))
    await at_work.visitor.post(f"/api/sign-ins/{sign_in['id']}", {"id": "a", "done": False})
    await at_work.says("did not want to sign in")
    assert shop.done == []


async def test_a_wrong_key_is_told_in_one_sentence_with_a_reference_and_the_thread_goes_on(
    workshop_home: ProductFolder, tmp_path: Path
) -> None:
    from tests.fakes.openai_server import fake_openai

    replies = [Reply(status=401, error={"code": "invalid_api_key", "message": "Incorrect key sk-abc"}), Reply("fine")]
    async with fake_openai(replies) as model:
        workshop_home.variables["OPENAI_BASE_URL"] = model.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("hello")
            told = await thread.notice("key", "reference")
            assert "sk-abc" not in told
            await thread.send("and now?")
            await thread.says("fine")


async def test_with_no_tool_server_at_all_it_still_answers(home: ProductFolder, model: FakeOpenAI) -> None:
    home.tool_servers({})
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody", "LLM_MODEL": "x"}
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("hello")
        await thread.says("you said: hello")
    assert "No tools are connected" in model.requests[0]["messages"][0]["content"]


async def test_a_server_that_is_down_costs_its_tools_and_the_model_is_told(
    workshop_home: ProductFolder, shop: Workshop, model: FakeOpenAI
) -> None:
    workshop_home.tool_servers({"workshop": entry(shop), "gone": {"command": "/no/such/program"}})
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use look what=lamp")
        await thread.says("lamp looks fine")
        async with aiohttp.ClientSession() as http, http.get(f"{url}/health-check") as response:
            health = await response.json()
    assert "gone" in model.requests[0]["messages"][0]["content"]
    assert (health["tool_servers"]["workshop"]["state"], health["tool_servers"]["gone"]["state"]) == ("up", "down")
