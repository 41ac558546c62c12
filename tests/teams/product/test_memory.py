"""What is remembered of people in Teams: the command `memory`, and its buttons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.support.brain import attentive
from tests.support.product import ProductFolder
from tests.support.teams_people import TeamsPerson
from tests.teams.product.conftest import as_
from tests.teams.product.talk import Talk, buttons, dicts, words

Json = dict[str, Any]
WITHIN = 20.0


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(attentive) as server:
        yield server


@pytest.fixture
def home(home: ProductFolder) -> ProductFolder:
    home.variables["MEMORY"] = "true"
    return home


async def test_what_is_remembered_is_listed_in_the_chat_and_a_click_forgets_it(chat: Talk) -> None:
    await chat.mentions("call me Al. I prefer tea")
    await chat.says("I’ll remember: “call me Al”, “I prefer tea”.")
    await chat.mentions("memory")
    listed = await chat.says("What I remember about you", "call me Al", "I prefer tea")
    assert buttons(listed) == ["forget", "forget", "forget_all", "remember_nothing"]
    newest = next(d["data"]["id"] for d in dicts(listed) if d.get("data", {}).get("countersign") == "forget")
    after = (await chat.clicks(listed, "forget", subject=newest)).card
    assert ("call me Al" in words(after), "I prefer tea" in words(after)) == (True, False)
    assert "as you wished" in words((await chat.clicks(listed, "remember_nothing")).card)
    await chat.mentions("memory")
    assert buttons(await chat.says("as you wished")) == ["remember_again"]


async def test_what_is_remembered_of_a_channel_is_shown_in_it_to_whoever_asks_alone(
    talk: Talk, ben: TeamsPerson
) -> None:
    await talk.mentions("remember that our team meets on Tuesdays")
    await talk.says("You said")
    bens = as_(ben, talk)
    async with asyncio.timeout(WITHIN):
        while "our team meets on Tuesdays" not in words(listed := await asked(bens)):
            pass
    assert listed["only_for"] == ben.address
    after = (await bens.clicks(listed, "forget_of_channel")).card
    assert "Tuesdays" not in words(after)


async def asked(talk: Talk) -> Json:
    """The list, as it is now."""
    before = len(talk.of_the_bot())
    await talk.person.says(talk.conversation, "memory")
    shown = await talk.teams.until(lambda: talk.of_the_bot()[before:])
    return dict(shown[-1])
