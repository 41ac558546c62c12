"""Plain replies to what a tool asks in the middle of a call."""

from __future__ import annotations

import pytest
from mcp.server.fastmcp import Context
from pydantic import BaseModel

from tests.support.product import ProductFolder
from tests.support.tools import Workshop
from tests.support.visitor import Thread


class Sure(BaseModel):
    """What the tool wants to know."""

    sure: bool


@pytest.fixture
def home(home: ProductFolder, shop: Workshop) -> ProductFolder:
    """The product with a tool that asks twice before it has done all."""

    async def pay(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        """Pay for something, and close the account."""
        for act in ("pay for", "close the account of"):
            answer = await ctx.elicit(f"Really {act} {what}?", Sure)
            if answer.action == "accept" and answer.data.sure:
                shop.done.append(f"{act} {what}")
            shop.started.set()
            await shop.may_end.wait()
        return "asked all"

    async def wipe(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        """Wipe something, without saying what when it asks."""
        answer = await ctx.elicit("Are you sure?", Sure)
        if answer.action == "accept" and answer.data.sure:
            shop.done.append(f"wipe {what}")
        return f"asked about {what}"

    shop.server.tool()(pay)
    shop.server.tool()(wipe)
    home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    return home


async def test_questions_in_the_same_words_say_in_which_call_they_are_asked(at_work: Thread, shop: Workshop) -> None:
    """Rule 12: two calls of a tool ask "Are you sure?", and a person means yes to one of them."""
    await at_work.send("use wipe what=lamp; wipe what=chair")
    questions = await at_work.until(lambda: len(found := at_work.contents("clarification")) == 2 and found)
    [lamp] = [question for question in questions if "workshop: wipe (What lamp)" in question["about"]]
    [chair] = [question for question in questions if "workshop: wipe (What chair)" in question["about"]]
    assert lamp["question"] == chair["question"] == "Are you sure?"
    await at_work.answer_form(lamp["id"], {"sure": True})
    await at_work.answer_form(chair["id"], {"sure": False})
    await at_work.says("asked about lamp", "asked about chair")
    assert shop.done == ["wipe lamp"]


async def test_a_second_yes_in_a_row_does_not_answer_the_next_question(at_work: Thread, shop: Workshop) -> None:
    """Rule 12: a tool that asks whether somebody is sure gets the word of a person who could see what it asks."""
    await at_work.send("use pay what=lamp")
    await at_work.question()
    await at_work.send("yes")
    await shop.started.wait()
    await at_work.send("yes")
    shop.may_end.set()
    await at_work.notice("before the question")
    assert (await at_work.question())["question"] == "Really close the account of lamp?"
    assert shop.done == ["pay for lamp"]
    await at_work.send("yes")
    await at_work.says("asked all")
    assert shop.done == ["pay for lamp", "close the account of lamp"]
