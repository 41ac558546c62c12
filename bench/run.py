"""One run: every measure for the product and for the baseline, taken in turns so that both meet the same machine."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from bench import hostile_servers, measures, policy, records, rendering, slack, teams
from bench.client import Client, Turn, visiting
from bench.contestants import Contestant, Contestants, Opening
from bench.figures import Figure, Limit, median_ms, p99_ms
from bench.measures import Fifth, Sizes

MB = 1_000_000
Open = Callable[[], Opening]


async def measure(contestants: Contestants, sizes: Sizes, say: Callable[[str], None]) -> list[Figure]:
    """All figures. `say` is told what is going on."""
    ours, theirs = contestants.product, contestants.baseline
    say("short conversations")
    figures = await _short(ours, theirs, sizes)
    say(f"a conversation of {sizes.turns} turns")
    figures += await _long(ours, theirs, sizes)
    say("many conversations at once")
    figures.append(await _throughput(ours, theirs, sizes))
    say("more than can be handled")
    figures.append(await _load(ours, theirs, sizes))
    say("Slack")
    figures += await slack.in_slack_and_at_the_page(contestants, sizes)
    figures += await slack.beside_bolt(contestants, sizes)
    say("Teams")
    figures += await teams.in_teams_and_at_the_page(contestants, sizes)
    figures += await teams.invokes(contestants, sizes)
    say("rules and waiting approvals")
    figures += policy.judging(sizes)
    figures += rendering.hostile_posts(sizes.post)
    figures += hostile_servers.received()
    figures += await policy.many_pending(contestants, sizes)
    say(f"{sizes.rows:,} rows in each table")
    figures += await records.statements(sizes)
    say("starting")
    return figures + await _starting(contestants, sizes)


async def _short(ours: Open, theirs: Open, sizes: Sizes) -> list[Figure]:
    async with _client(ours) as (us, _), _client(theirs) as (them, _):
        pairs: list[tuple[Fifth, Fifth]] = []
        for number in range(sizes.warm_ups + sizes.conversations):
            pair = (await measures.fifth_turn(us, sizes), await measures.fifth_turn(them, sizes))
            if number >= sizes.warm_ups:
                pairs.append(pair)

    def figure(what: str, seconds: Callable[[Fifth], float], limit: Limit) -> Figure:
        we, they = (median_ms([seconds(pair[side]) for pair in pairs]) for side in (0, 1))
        return Figure(what, we, "ms", they, limit)

    return [
        figure("accept a message, idle: median", lambda f: f.plain.acknowledged, Limit(5)),
        figure("message → answer, turn 5: median", lambda f: f.plain.answered, Limit(1.2, times_baseline=True)),
        figure("… with one tool call: median", lambda f: f.with_tool.answered, Limit(1.2, times_baseline=True)),
        figure("click → the tool starts: median", lambda f: f.click_to_tool, Limit(15)),
    ]


async def _long(ours: Open, theirs: Open, sizes: Sizes) -> list[Figure]:
    we, our_growth = await _long_conversation(ours, sizes)
    they, their_growth = await _long_conversation(theirs, sizes)
    n = sizes.turns
    tenth, last = (slice(max(0, n // 20 - 5), n // 20 + 5), slice(n - n // 10, n))
    return [
        Figure(
            f"message → answer, turn {n}: median",
            median_ms(we[last]),
            "ms",
            median_ms(they[last]),
            Limit(0.3, times_baseline=True),
        ),
        Figure(
            f"turn {n} : turn {n // 20} of one thread, medians",
            median_ms(we[last]) / median_ms(we[tenth]),
            "",
            median_ms(they[last]) / median_ms(they[tenth]),
            Limit(1.3),
        ),
        Figure(f"on disk per turn, turns {n // 2}–{n}", our_growth / 1000, "kB", their_growth / 1000, Limit(10)),
    ]


async def _long_conversation(opening: Open, sizes: Sizes) -> tuple[list[float], float]:
    """Seconds of each turn, and bytes a turn in its second half."""
    turns: list[Turn] = []
    half = sizes.turns // 2
    async with _client(opening) as (client, contestant), client.thread() as thread:
        turns += [await thread.turn() for _ in range(half)]
        before = contestant.stored()
        turns += [await thread.turn() for _ in range(sizes.turns - half)]
        return [t.answered for t in turns], (contestant.stored() - before) / (sizes.turns - half)


async def _throughput(ours: Open, theirs: Open, sizes: Sizes) -> Figure:
    rates = []
    for opening in (ours, theirs):
        async with _client(opening) as (client, _):
            await measures.fifth_turn(client, sizes)
            rates.append(await measures.throughput(client, sizes))
    return Figure(f"turns a second, {sizes.throughput_threads} threads (more is better)", rates[0], "/s", rates[1])


async def _load(ours: Open, theirs: Open, sizes: Sizes) -> Figure:
    acks = []
    for opening in (ours, theirs):
        async with _client(opening) as (client, _):
            await measures.fifth_turn(client, sizes)
            acks.append(await measures.load(client, sizes))
    what = f"accept a message, {sizes.load_rate} a second for {sizes.load_seconds:g} s: p99"
    return Figure(what, p99_ms(acks[0]), "ms", p99_ms(acks[1]), Limit(30))


async def _starting(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    theirs = await _starts(partial(contestants.baseline, pinned=False), sizes)
    plain = await _starts(contestants.product_as_made, sizes)
    remote = await _starts(contestants.product, sizes)
    seconds, memory = Limit(2.5), Limit(160)
    return [
        Figure("start, as `make run`: median", plain[0], "s", theirs[0], seconds),
        Figure("start, with a remote model, on one core: median", remote[0], "s", theirs[0]),
        Figure("idle memory, as `make run`", plain[1], "MB", theirs[1], memory),
        Figure("idle memory, with a remote model", remote[1], "MB", theirs[1]),
    ]


async def _starts(opening: Open, sizes: Sizes) -> tuple[float, float]:
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


@asynccontextmanager
async def _client(opening: Open) -> AsyncIterator[tuple[Client, Contestant]]:
    async with opening() as contestant, visiting(contestant.url) as client:
        yield client, contestant
