"""The product with traces and metrics, beside the same without: what it costs to look on."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from bench import measures
from bench.client import Thread
from bench.contestants import Contestants
from bench.figures import Figure, Ratio, median_ms
from bench.marks import READ
from bench.measures import Fifth, Sizes, Work
from bench.slack import Both, works

COSTS_AT_MOST = Ratio(1.08)
Turns = list[tuple[Work, Work]]


async def beside_without(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Conversations taken in turns from two processes, one by one and then many at once; then from further pairs."""
    both, conversations = Both(contestants), list[tuple[Fifth, Fifth]]()
    turns, with_tool, clicks = Turns(), Turns(), Turns()
    async with collector() as address:
        variables = {"METRICS": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        for _ in range(sizes.pairs):
            async with both.visit(lambda: contestants.replica(variables)) as watched, both.visit(both.product) as plain:
                for number in range(sizes.warm_ups * 3 + sizes.conversations):
                    ours, theirs = [await measures.fifth_turn(visit.client, sizes) for visit in (watched, plain)]
                    if number >= sizes.warm_ups * 3:
                        conversations.append((ours, theirs))
                for taken, act in (
                    (turns, Thread.turn),
                    (with_tool, lambda thread: thread.turn(READ)),
                    (clicks, lambda thread: measures.click(thread, sizes.pause_seconds)),
                ):
                    taken.append(await works(watched, plain, act, sizes, sizes.rounds))

    def figure(what: str, seconds: Callable[[Fifth], float]) -> Figure:
        we, they = (median_ms([seconds(pair[side]) for pair in conversations]) for side in (0, 1))
        return Figure(what, we, "ms", they, COSTS_AT_MOST)

    def cpu(of: str, taken: Turns) -> Figure:
        we, they = (statistics.median(pair[side].cpu for pair in taken) for side in (0, 1))
        return Figure(f"CPU seconds per 1,000 {of}", we, "s", they, COSTS_AT_MOST)

    return [
        figure("mention → answer, turn 5", lambda f: f.plain.answered),
        figure("… with one tool call over stdio", lambda f: f.with_tool.answered),
        figure("click → answer", lambda f: f.click.answered),
        cpu("turns", turns),
        cpu("turns with a tool call", with_tool),
        cpu("approvals, from the message to the answer", clicks),
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
