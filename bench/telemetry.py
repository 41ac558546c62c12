"""The product with traces and metrics, beside the same without: what it costs to look on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from bench import measures
from bench.client import Thread
from bench.contestants import Contestants
from bench.figures import Figure, Ratio, median_ms
from bench.marks import READ
from bench.measures import Fifth, Sizes
from bench.slack import Both, works

COSTS_AT_MOST = Ratio(1.08)
ROUNDS = 2
"""Times those of other measures: what is looked for is less than what two rounds differ by."""


async def beside_without(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Conversations taken in turns from two processes, one by one and then many at once."""
    both, pairs = Both(contestants), list[tuple[Fifth, Fifth]]()
    async with AsyncExitStack() as stack:
        variables = {"METRICS": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": await stack.enter_async_context(collector())}
        openings = (lambda: contestants.replica(variables), both.product)
        watched, plain = [await stack.enter_async_context(both.visit(opening)) for opening in openings]
        for number in range(sizes.warm_ups * 3 + sizes.conversations):
            pair = (await measures.fifth_turn(watched.client, sizes), await measures.fifth_turn(plain.client, sizes))
            if number >= sizes.warm_ups * 3:
                pairs.append(pair)
        rounds = sizes.rounds * ROUNDS
        turns = await works(watched, plain, Thread.turn, sizes, rounds)
        with_tool = await works(watched, plain, lambda thread: thread.turn(READ), sizes, rounds)
        clicks = await works(watched, plain, lambda thread: measures.click(thread, sizes.pause_seconds), sizes, rounds)

    def figure(what: str, seconds: Callable[[Fifth], float]) -> Figure:
        we, they = (median_ms([seconds(pair[side]) for pair in pairs]) for side in (0, 1))
        return Figure(what, we, "ms", they, COSTS_AT_MOST)

    return [
        figure("mention → answer, turn 5", lambda f: f.plain.answered),
        figure("… with one tool call over stdio", lambda f: f.with_tool.answered),
        figure("click → answer", lambda f: f.click.answered),
        Figure("CPU seconds per 1,000 turns", turns[0].cpu, "s", turns[1].cpu, COSTS_AT_MOST),
        Figure("CPU seconds per 1,000 turns with a tool call", with_tool[0].cpu, "s", with_tool[1].cpu, COSTS_AT_MOST),
        Figure(
            "CPU seconds per 1,000 approvals, from the message to the answer",
            clicks[0].cpu,
            "s",
            clicks[1].cpu,
            COSTS_AT_MOST,
        ),
    ]


@asynccontextmanager
async def collector() -> AsyncIterator[str]:
    """Takes what it is sent, and keeps nothing. Yields its address."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(content_type="application/x-protobuf")

    application = web.Application(client_max_size=64 * 1024**2)
    application.router.add_post("/v1/traces", take)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
