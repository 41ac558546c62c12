"""A replica that dies while it remembers: another one does it, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from graph.memory import MEMORY_REQUEST
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, fake_openai
from tests.replicas.processes import replicas
from tests.support.brain import attentive
from tests.support.product import ProductFolder
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(200)]
TAKEN_OVER_WITHIN = 60.0


class HeldMemory:
    """A model that holds back its first answer of what is worth remembering."""

    def __init__(self) -> None:
        self.held, self.go_on = asyncio.Event(), asyncio.Event()

    def __call__(self, request: Request) -> Reply:
        reply = attentive(request)
        if not str(request["messages"][0]["content"]).startswith(MEMORY_REQUEST) or self.held.is_set():
            return reply
        self.held.set()
        return Reply(text=reply.text, wait_for=self.go_on)


@pytest.fixture
def brain() -> HeldMemory:
    return HeldMemory()


@pytest.fixture
async def model(brain: HeldMemory) -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(brain) as server:
        yield server
        brain.go_on.set()


async def test_what_a_dead_replica_was_remembering_another_one_remembers_once(
    home: ProductFolder, address: str, brain: HeldMemory
) -> None:
    async with replicas(home, address, MEMORY="true") as (first, second):
        await first.up()
        async with visiting(first.url) as ana, ana.thread() as thread:
            await thread.send("call me Al. I prefer tea")
            await thread.says("you said")
            await brain.held.wait()
        await second.up()
        await first.kill()
        async with visiting(second.url) as ana, ana.thread(thread.thread_id, within=TAKEN_OVER_WITHIN) as again:
            await again.notice("I’ll remember: “call me Al”, “I prefer tea”.")
            listed = (await ana.get("/api/memories")).body["memories"]
            assert [each["text"] for each in listed] == ["I prefer tea", "call me Al"]
            assert sum("I’ll remember" in notice for notice in again.notices) == 1
