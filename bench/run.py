"""One run: every measure of the product and of what it is beside, taken in turns so that both meet the same machine."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable

from bench import (
    console,
    documents,
    gateway,
    hostile_servers,
    measures,
    policy,
    postgres,
    records,
    rendering,
    slack,
    teams,
    telemetry,
)
from bench.client import Turn, visiting
from bench.contestants import ROOT, Contestants, Opening
from bench.cores import MEASURED, move_to
from bench.figures import Figure, Limit, Ratio, Section, median_ms, p99_ms
from bench.measures import Sizes
from bench.slack import MB, Both, Open

Say = Callable[[str], None]
"""Told what is going on."""


async def measure_in_slack(contestants: Contestants, sizes: Sizes, say: Say) -> Section:
    """The product in Slack beside the bare agent."""
    figures = await slack.beside_the_bare_agent(contestants, sizes, say)
    return Section("In Slack, beside the bare agent", figures, "bare agent")


async def measure_on_postgresql(contestants: Contestants, sizes: Sizes, say: Say) -> Section:
    """The product on PostgreSQL beside the same on SQLite, and several processes of it."""
    return Section("On PostgreSQL, beside SQLite", await postgres.figures(contestants, sizes, say), "SQLite")


async def measure_with_telemetry(contestants: Contestants, sizes: Sizes, say: Say) -> Section:
    """The product in Slack with traces and metrics, beside the same without."""
    say("in Slack: traces and metrics")
    return Section("Traces and metrics", await telemetry.beside_without(contestants, sizes), "without")


async def measure_the_rest(contestants: Contestants, sizes: Sizes, say: Say) -> list[Section]:
    """Everything else."""
    say(f"a conversation of {sizes.turns} turns")
    conversation = await _long(Both(contestants), sizes)
    say("the page and Teams")
    elsewhere = await teams.in_teams_and_at_the_page(contestants, sizes)
    elsewhere += await teams.invokes(contestants, sizes)
    elsewhere.append(await _load_at_the_page(contestants, sizes))
    say("the gateway")
    through = await gateway.figures(contestants, sizes)
    say("rules and waiting approvals")
    waiting = policy.judging(sizes) + await policy.many_pending(contestants, sizes)
    say("hostile input")
    hostile = rendering.hostile_posts(sizes.post) + hostile_servers.received()
    say(f"{sizes.rows:,} rows in each table")
    waiting += await records.statements(sizes)
    say("the console")
    seen = await console.console(sizes.rows)
    say("starting")
    elsewhere += await _starting(contestants, sizes)
    say("the floor")
    return [
        Section("A long conversation in Slack", conversation, "bare agent"),
        Section("At the page and in Teams", elsewhere),
        Section("At the gateway", through),
        Section("With much in the records", waiting),
        Section("What operators see", seen),
        Section("Hostile input", hostile),
        Section("Documents, found by words", await documents.figures(), measured="bundled server"),
        Section("The floor", await _floor(contestants, sizes), measured="by itself"),
    ]


RECEIVING = "aiohttp, slack_bolt.async_app, langgraph.graph, mcp, sqlalchemy"
ANSWERING = f"{RECEIVING}, langchain_openai"


async def _floor(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """What the libraries and the disk take by themselves, each in a process on the core of what is measured."""
    output = await _output("-m", "bench.floor", contestants.around.model_url, str(sizes.invokes))
    took = json.loads(output)
    figures = [
        Figure("a row in SQLite, committed with fsync", took["commit"], "ms"),
        Figure("a streamed answer over aiohttp: CPU", took["http"], "ms"),
        Figure("the same by ChatOpenAI: CPU", took["sdk"], "ms"),
        Figure("a LangGraph turn of one node, kept in memory: CPU", took["loop"], "ms"),
        Figure("the same, kept by AsyncSqliteSaver: CPU", took["loop_on_disk"], "ms"),
    ]
    for modules in (RECEIVING, ANSWERING):
        seconds, memory = [], []
        for _ in range(sizes.starts):
            began = time.monotonic()
            resident = await _output("-c", f"import os, psutil, {modules}; print(psutil.Process().memory_info().rss)")
            seconds.append(time.monotonic() - began)
            memory.append(int(resident) / MB)
        figures += [
            Figure(
                f"import of {modules.replace('.async_app', '').replace('.graph', '')}", statistics.median(seconds), "s"
            ),
            Figure("… memory", statistics.median(memory), "MB"),
        ]
    return figures


async def _output(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    move_to(MEASURED, process=process.pid)
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed")
    return output.decode()


async def _long(both: Both, sizes: Sizes) -> list[Figure]:
    we, our_growth = await _long_conversation(both, both.product, sizes)
    they, their_growth = await _long_conversation(both, both.bare_agent, sizes)
    n = sizes.turns
    tenth, last = (slice(max(0, n // 20 - 5), n // 20 + 5), slice(n - n // 10, n))
    return [
        Figure(f"mention → answer, turn {n}: median", median_ms(we[last]), "ms", median_ms(they[last]), Ratio(0.3)),
        Figure(
            f"turn {n} : turn {n // 20} of one thread, medians",
            median_ms(we[last]) / median_ms(we[tenth]),
            "",
            median_ms(they[last]) / median_ms(they[tenth]),
            Limit(1.3),
        ),
        Figure(f"on disk per turn, turns {n // 2}–{n}", our_growth / 1000, "kB", their_growth / 1000, Limit(10)),
    ]


async def _long_conversation(both: Both, opening: Open, sizes: Sizes) -> tuple[list[float], float]:
    """Seconds of each turn, and bytes a turn in its second half."""
    turns: list[Turn] = []
    half = sizes.turns // 2
    async with both.visit(opening) as visit, visit.client.thread() as thread:
        turns += [await thread.turn() for _ in range(half)]
        before = visit.contestant.stored()
        turns += [await thread.turn() for _ in range(sizes.turns - half)]
        return [t.answered for t in turns], (visit.contestant.stored() - before) / (sizes.turns - half)


async def _load_at_the_page(contestants: Contestants, sizes: Sizes) -> Figure:
    async with contestants.product() as product, visiting(product.url) as client:
        await measures.fifth_turn(client, sizes)
        acks = await measures.load(client, sizes)
    what = f"page: accept a message, {sizes.load_rate} a second for {sizes.load_seconds:g} s: p99"
    return Figure(what, p99_ms(acks), "ms", None, Limit(30))


async def _starting(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """As `make run` starts it: the page, the built-in model, wherever the system puts it."""
    seconds, memory = await _starts(contestants.product_as_made, sizes)
    return [
        Figure("page: start, as `make run`: median", seconds, "s", None, Limit(2.5)),
        Figure("page: idle memory, as `make run`", memory, "MB", None, Limit(160)),
    ]


async def _starts(opening: Callable[[], Opening], sizes: Sizes) -> tuple[float, float]:
    """Median seconds of starting, and of the memory in MB a while after."""
    seconds: list[float] = []
    memory: list[float] = []
    async with opening():
        pass  # leaves the bytecode behind that an installed machine has
    for _ in range(sizes.starts):
        async with opening() as contestant:
            seconds.append(contestant.started_in)
            await asyncio.sleep(sizes.settle_seconds)
            memory.append(contestant.memory() / MB)
    return statistics.median(seconds), statistics.median(memory)
