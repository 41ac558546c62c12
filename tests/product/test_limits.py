"""Whoever is over a limit is told so in a sentence, and what was open stays as it was."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.openai_server import Brain, Reply, fake_openai
from tests.support.brain import obedient
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import change_records
from tests.support.tools import Workshop
from tests.support.visitor import visiting


async def test_over_the_turns_of_a_minute_a_message_begins_nothing_and_supersedes_nothing(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.variables["LIMIT_TURNS_PER_MINUTE"] = "1"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        await thread.send("something else")
        await thread.notice("Limit: 1 message a minute", "send it again in")
        assert [c["id"] for c in thread.approvals("pending")] == [card["id"]]
        await thread.approve(card["id"])
        await thread.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_two_accounts_of_one_human_have_one_limit(workshop_home: ProductFolder) -> None:
    workshop_home.variables["LIMIT_TURNS_PER_MINUTE"] = "2"
    async with product_here(workshop_home) as url, visiting(url) as ana, visiting(url, "ben") as ben:
        for person in (ana, ben):
            async with person.thread() as thread:
                await thread.send("hello")
                await thread.says("you said: hello")
        change_records(workshop_home, "UPDATE people SET email = 'ana@company.example'")
        async with ben.thread() as thread:
            await thread.send("and again")
            await thread.says("you said: and again")
        async with ana.thread() as thread:
            await thread.send("once more")
            await thread.notice("2 messages a minute")


async def test_over_the_calls_of_a_turn_the_rest_is_not_made(workshop_home: ProductFolder, shop: Workshop) -> None:
    workshop_home.variables["LIMIT_CALLS_PER_TURN"] = "2"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use look what=one; look what=two; look what=three")
        await thread.says("one looks fine", "two looks fine", "Limited: one turn may make 2 tool calls")
    assert sorted(shop.looked) == ["one", "two"]


async def test_over_the_tokens_of_a_day_they_are_told_so_also_after_a_restart(workshop_home: ProductFolder) -> None:
    workshop_home.variables["LIMIT_TOKENS_PER_DAY"] = "20"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        for text in ("one", "two"):  # 15 tokens each
            await thread.send(text)
            await thread.says(f"you said: {text}")
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
        ben.thread() as bens,
    ):
        await thread.send("three")
        await thread.says("You have used today’s 20 tokens.")
        await bens.send("mine")
        await bens.says("you said: mine")


def telling(reply: Reply) -> Brain:
    """Answers “tell” so, and anything else as ever."""
    return lambda request: reply if request["messages"][-1]["content"] == "tell" else obedient(request)


@pytest.mark.parametrize("times", [1, 2])
async def test_an_answer_that_somebody_stops_counts_with_its_question(workshop_home: ProductFolder, times: int) -> None:
    story = Reply(text=" ".join(f"word{n}" for n in range(2_000)), pause=0.01)
    workshop_home.variables["LIMIT_TOKENS_PER_DAY"] = "100"
    async with fake_openai(telling(story)) as server:
        workshop_home.variables["OPENAI_BASE_URL"] = server.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("tell")
            await thread.until(lambda: "word3" in "".join(thread.live_texts), "the beginning of the answer")
            pressed = await asyncio.gather(*(thread.stop() for _ in range(times)))
            assert {answer.status for answer in pressed} == {200}
            await thread.notice("stopped")
            await thread.send("and now?")
            await thread.says("You have used today’s 100 tokens.")
            told = (await ana.get("/api/usage")).body["today"]
    assert told["calls"] == 1
    assert told["input_tokens"] + told["output_tokens"] >= 100


async def test_an_answer_that_its_service_breaks_off_counts_with_its_question(workshop_home: ProductFolder) -> None:
    workshop_home.variables["LIMIT_TOKENS_PER_DAY"] = "100"
    async with fake_openai(telling(Reply(text="word1 word2 word3 word4", drop_after=4))) as server:
        workshop_home.variables["OPENAI_BASE_URL"] = server.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("tell")
            await thread.notice("The language model", "(Reference ")
            await thread.send("and now?")
            await thread.says("You have used today’s 100 tokens.")


async def test_switched_off_it_begins_nothing_and_sees_through_what_has_begun(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
    workshop_home.variables["AGENT_ENABLE"] = "false"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread.thread_id) as thread:
        await thread.send("something else")
        await thread.notice("I am switched off and have not read this.")
        await thread.approve(card["id"])
        await thread.says("made lamp")
    assert shop.done == ["make lamp 1"]
