"""Requests that take long cost next to nothing meanwhile, end with their clients, and are only so many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from adapters.shared.long_answers import MOST_OPEN
from tests.api.serving import ApiAnswer, ApiUser, ServedApi
from tests.bot.conftest import until


@asynccontextmanager
async def waiting(served: ServedApi, ana: ApiUser) -> AsyncIterator[asyncio.Task[ApiAnswer]]:
    """Ana waits for what comes of a message, which is not handled before the block ends. The task has
    the path as its name."""
    thread = (await ana.post("threads", {})).body["id"]
    async with served.engine.at_work:
        message = (await ana.post(f"threads/{thread}/messages", {"text": "Hello"})).body["message_id"]
        path = f"threads/{thread}/messages/{message}"
        asked = asyncio.create_task(ana.get(f"{path}?wait=60"), name=path)
        await until(lambda: served.conversations.whole >= 2)
        yield asked


async def test_while_somebody_waits_for_a_turn_it_is_not_read_again_and_again(served: ServedApi, ana: ApiUser) -> None:
    async with waiting(served, ana) as asked:
        (thread,) = served.sender.hub.threads_read()
        for _ in range(20):
            served.sender.hub.publish(thread, "post", {})
        await until(lambda: served.conversations.short >= 20)
        before = served.conversations.whole
    answer = await asked
    assert (answer.body["status"], answer.body["answer"]) == ("ended", "Hello")
    assert before == 2  # for the message, and as the wait began


async def test_a_stream_on_which_nothing_happens_does_not_read_its_turn_again_and_again(
    served: ServedApi, ana: ApiUser, http: aiohttp.ClientSession
) -> None:
    async with (
        served.engine.at_work,
        http.post(f"{served.url}/query/stream", json={"query": "Hello"}, headers=ana.headers) as response,
    ):
        await until(lambda: served.conversations.whole)
        (thread,) = served.sender.hub.threads_read()
        for _ in range(20):
            served.sender.hub.publish(thread, "post", {})
        await until(lambda: served.conversations.short >= 20)
        before = served.conversations.whole
        served.engine.at_work.release()
        assert b"Hello" in await response.read()
        await served.engine.at_work.acquire()
    assert before <= 2  # as it began, and once it was known which turn it is


async def test_nothing_waits_for_a_client_that_has_gone_away(served: ServedApi, ana: ApiUser) -> None:
    async with waiting(served, ana) as asked:
        asked.cancel()
        await until(lambda: not served.sender.hub.threads_read(), within=10.0)


async def test_one_person_has_only_so_many_answers_streamed_or_waited_for(
    served: ServedApi, ana: ApiUser, ben: ApiUser
) -> None:
    async with waiting(served, ana) as asked:
        more = [ana.ask("POST", "/ai/agent/stream", {"prompt": "Hello"}) for _ in range(5)]
        more += [ana.ask("POST", "/run", {"thread_id": f"{i}", "user_request": "Hello"}) for i in range(5)]
        more += [ana.get(f"{asked.get_name()}?wait=60") for _ in range(MOST_OPEN - 10)]
        tasks = [asyncio.create_task(each) for each in more]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        refused = [task.result() for task in done]
        assert {(each.status, each.headers["Retry-After"]) for each in refused} == {(429, "5")}
        bens = (await ben.post("threads", {})).body["id"]
        assert (await ben.post(f"threads/{bens}/messages", {"text": "Hello"})).status == 202
    assert (await asked).status == 200
    await asyncio.gather(*tasks)
