"""What people think of answers, as it is sent to Langfuse."""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from adapters.telemetry.ids import TraceIds
from adapters.telemetry.scores import LangfuseScores
from graph.observing import FeedbackGiven

WITHIN = 10.0


async def test_an_opinion_that_is_sent_again_does_not_replace_a_later_one() -> None:
    values: list[int] = []
    came = asyncio.Condition()

    async def take(request: web.Request) -> web.Response:
        async with came:
            values.append(json.loads(await request.text())["value"])
            came.notify_all()
        return web.Response(status=500 if len(values) == 1 else 200)

    async def have_come(count: int) -> None:
        async with came:
            await came.wait_for(lambda: len(values) >= count)

    application = web.Application()
    application.router.add_post("/api/public/scores", take)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    scores = LangfuseScores(host, "Basic none", TraceIds(b"a key"), None, pauses=(0.2,))
    try:
        async with asyncio.timeout(WITHIN):
            scores.note(FeedbackGiven("said:m1.0", "web:t", "web:ana", "good", ""))
            await have_come(1)
            scores.note(FeedbackGiven("said:m1.0", "web:t", "web:ana", "bad", ""))
            await have_come(2)
            await scores.close(WITHIN)
    finally:
        await runner.cleanup()
    assert values == [1, 0]
