"""What a turn uses of the language model is counted, and told to whom it concerns."""

from __future__ import annotations

import pytest

from app import ConfigurationError
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting

PRICES = """
version: 1
currency: EUR
models:
  any: {input: 1000000, output: 500000}
"""


async def test_what_an_answer_used_is_told_to_whoever_asked_also_after_a_restart(workshop_home: ProductFolder) -> None:
    (workshop_home.folder / "prices.yaml").write_text(PRICES)
    workshop_home.variables["PRICES_FILE"] = str(workshop_home.folder / "prices.yaml")
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread(thread.thread_id) as thread,
    ):
        waiting = (await ana.get("/api/usage")).body["today"]
        await thread.approve(card["id"])
        await thread.says("made lamp")
        post = thread.said_ids[-1]
        own = (await ana.get("/api/usage")).body
        of_answer = (await ana.get(f"/api/usage/{post}")).body
        others = (await ben.get("/api/usage")).body
        of_bens = (await ben.get(f"/api/usage/{post}")).body
    assert (waiting["calls"], own["today"]["calls"]) == (1, 2), "counted when it pauses, and when it goes on"
    assert own["currency"] == "EUR"
    assert of_answer["usage"] == own["today"]
    assert own["today"]["cost"] == own["today"]["input_tokens"] + own["today"]["output_tokens"] / 2 > 0
    assert (others["today"]["calls"], of_bens) == (0, {"usage": None})


async def test_when_most_of_a_budget_is_used_the_person_is_told_once(workshop_home: ProductFolder) -> None:
    workshop_home.variables["LIMIT_TOKENS_PER_DAY"] = "36"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        for text in ("one", "two"):  # 15 tokens each
            await thread.send(text)
            await thread.says(f"you said: {text}")
        await thread.notice("You have used 83 % of today’s 36 tokens.")
        await thread.send("three")
        await thread.says("you said: three")
        await thread.send("four")
        await thread.says("You have used today’s 36 tokens.")
        assert len([told for told in thread.notices if "%" in told]) == 1


async def test_what_answers_may_cost_in_a_day_is_limited(workshop_home: ProductFolder) -> None:
    (workshop_home.folder / "prices.yaml").write_text(PRICES)
    workshop_home.variables |= {
        "PRICES_FILE": str(workshop_home.folder / "prices.yaml"),
        "LIMIT_COST_PER_DAY": "12.50",  # an answer of 10 tokens in and 5 out costs that
    }
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("one")
        await thread.says("you said: one")
        await thread.send("two")
        await thread.says("You have used today’s budget of 12.50 EUR.")


async def test_limits_of_cost_without_the_price_of_a_model_stop_the_start(workshop_home: ProductFolder) -> None:
    workshop_home.variables["LIMIT_CHANNEL_COST_PER_DAY"] = "5"
    with pytest.raises(ConfigurationError, match=r"LIMIT_CHANNEL_COST_PER_DAY: .*prices\.yaml has no price of any\."):
        async with product_here(workshop_home):
            pass
