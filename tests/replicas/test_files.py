"""A replica that dies while it answers a message with a file: another one answers it, once, with the same file."""

from __future__ import annotations

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.replicas.held_model import HeldOnce
from tests.replicas.processes import replicas
from tests.support.product import ProductFolder
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(200)]
TAKEN_OVER_WITHIN = 60.0


async def test_what_was_handed_to_a_replica_that_dies_another_one_has_once(
    home: ProductFolder, address: str, held: HeldOnce, model: FakeOpenAI
) -> None:
    async with replicas(home, address) as (first, second):
        await first.up()
        async with visiting(first.url) as ana, ana.thread() as thread:
            file = (await ana.upload("leave.txt", b"28 days")).body["id"]
            await thread.send("how long? hold", "m1", files=[file])
            await held.held.wait()
        await second.up()
        await first.kill()
        async with visiting(second.url) as ana, ana.thread(thread.thread_id, within=TAKEN_OVER_WITHIN) as again:
            sent = await again.send("how long? hold", "m1", files=[file])  # nobody heard that it was taken
            assert (sent.status, sent.body) == (202, {"accepted": False})
            await again.says("hello hold")
            assert again.said == ["hello hold"]
    assert sum("28 days" in str(each["content"]) for each in model.requests[-1]["messages"]) == 1
