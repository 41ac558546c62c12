"""The product on PostgreSQL, beside the same on SQLite; and what several processes of it on one PostgreSQL do."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from bench import measures
from bench.client import Thread
from bench.cluster import Cluster, cluster
from bench.contestants import Contestant, Contestants, model_server
from bench.cores import can_cap, no_more_than
from bench.figures import Figure, Limit, Ratio, median_ms, p99_ms
from bench.measures import Fifth, Sizes
from bench.slack_client import SlackClient, in_slack
from bench.takeover import Harm, starts_of_handlers, takeovers

MODEL_SECONDS = 0.3
TURNS_AT_ONCE = 4
"""In each replica, of those that are compared: few enough that what limits it is their number."""
SHARE = 0.5
"""Of a core, for each of those."""
Say = Callable[[str], None]


async def figures(contestants: Contestants, sizes: Sizes, say: Say) -> list[Figure]:
    """All of them, on one cluster."""
    say("PostgreSQL: starting")
    async with cluster() as postgresql:
        say("PostgreSQL: beside SQLite")
        beside = await _beside_sqlite(contestants, postgresql, sizes)
        say("PostgreSQL: the engine")
        accepted, begun = await starts_of_handlers(postgresql, sizes.handler_starts)
        engine = [
            Figure("the engine alone: message → accepted", median_ms(accepted), "ms"),
            Figure("… → its handler has it", median_ms(begun), "ms", None, Limit(12, must_hold=True)),
        ]
        say("PostgreSQL: one replica and two")
        two = await _two_replicas(contestants, postgresql, sizes)
        say("PostgreSQL: decisions")
        decided = await _decisions(contestants, postgresql, sizes)
        say("PostgreSQL: takeovers")
        taken = await _takeovers(postgresql, sizes)
    return [*beside, *engine, *two, *decided, *taken]


async def _beside_sqlite(contestants: Contestants, postgresql: Cluster, sizes: Sizes) -> list[Figure]:
    """Conversations taken in turns from two processes, one by one and then many at once."""
    variables = postgresql.variables(postgresql.new_database())
    slack = contestants.around.slack
    pairs: list[tuple[Fifth, Fifth]] = []
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(contestants.replica(variables))
        theirs = await stack.enter_async_context(contestants.product(chat=slack.variables()))
        clients = [await stack.enter_async_context(in_slack(slack, each.url)) for each in (ours, theirs)]
        for number in range(sizes.warm_ups * 3 + sizes.conversations):
            pair = [await measures.fifth_turn(client, sizes) for client in clients]
            if number >= sizes.warm_ups * 3:
                pairs.append((pair[0], pair[1]))

        async def works(act: Callable[[Thread], Awaitable[object]]) -> tuple[list[float], list[float], float]:
            """Rates and CPU seconds for a thousand, ours first; and the CPU seconds of PostgreSQL."""
            rates: tuple[list[float], list[float]] = ([], [])
            cpu: tuple[list[float], list[float]] = ([], [])
            backends = []
            for _ in range(sizes.rounds):
                for side, (client, process) in enumerate(zip(clients, (ours, theirs), strict=True)):
                    before = postgresql.cpu()
                    work = await measures.work(client, process.process.pid, act, sizes)
                    rates[side].append(work.rate)
                    cpu[side].append(work.cpu)
                    if side == 0:
                        backends.append((postgresql.cpu() - before) / work.done * 1000)
            return (
                [statistics.median(r) for r in rates],
                [statistics.median(c) for c in cpu],
                statistics.median(backends),
            )

        turns, of_turns, backends_of_turns = await works(Thread.turn)
        _, of_clicks, backends_of_clicks = await works(lambda thread: measures.click(thread, sizes.pause_seconds))

    def figure(what: str, seconds: Callable[[Fifth], float], limit: Limit | Ratio | None = None) -> Figure:
        we, they = (median_ms([seconds(pair[side]) for pair in pairs]) for side in (0, 1))
        return Figure(what, we, "ms", they, limit)

    return [
        figure("acknowledged, idle", lambda f: f.plain.acknowledged, Limit(5, must_hold=True)),
        figure("mention → answer, turn 5", lambda f: f.plain.answered, Ratio(1.6)),
        figure("… with one tool call over stdio", lambda f: f.with_tool.answered),
        figure("mention → card shown", lambda f: f.click.card),
        figure("click → acknowledged", lambda f: f.click.acknowledged),
        figure("click → the tool has run", lambda f: f.click.ran),
        figure("click → answer", lambda f: f.click.answered),
        Figure(f"turns a second, {sizes.throughput_threads} threads", turns[0], "/s", turns[1]),
        Figure("CPU seconds per 1,000 turns", of_turns[0], "s", of_turns[1]),
        Figure("… of PostgreSQL besides", backends_of_turns, "s"),
        Figure("CPU seconds per 1,000 approvals, from the message to the answer", of_clicks[0], "s", of_clicks[1]),
        Figure("… of PostgreSQL besides", backends_of_clicks, "s"),
    ]


async def _two_replicas(contestants: Contestants, postgresql: Cluster, sizes: Sizes) -> list[Figure]:
    """Two on one database beside one on another, each with the same share of a core and as many turns at once."""
    slack = contestants.around.slack
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(model_server(MODEL_SECONDS))

        async def replica(address: str) -> Contestant:
            variables = {**postgresql.variables(address), "TURN_CONCURRENCY": str(TURNS_AT_ONCE)}
            opened = await stack.enter_async_context(contestants.replica(variables, model_url=model))
            stack.enter_context(no_more_than(SHARE, opened.process.pid))
            return opened

        both, alone = postgresql.new_database(), postgresql.new_database()
        groups = [[await replica(both), await replica(both)], [await replica(alone)]]
        clients = [await stack.enter_async_context(in_slack(slack, *(each.url for each in group))) for group in groups]
        rates: tuple[list[float], list[float]] = ([], [])
        for number in range(1 + sizes.rounds):
            for side, client in enumerate(clients):
                rate = await _rate(client, len(groups[side]), sizes)
                if number:  # the first ones load what they need
                    rates[side].append(rate)
    capped = f"{SHARE:g} of a core each" if can_cap() else "no share of a core"
    how = f"the model takes {MODEL_SECONDS * 1000:g} ms, {TURNS_AT_ONCE} turns at once and {capped}"
    two, one = (statistics.median(each) for each in rates)
    return [Figure(f"turns a second of two replicas (baseline: of one); {how}", two, "/s", one, Ratio(least=1.7))]


async def _rate(client: SlackClient, replicas: int, sizes: Sizes) -> float:
    """Turns a second, with twice as many conversations as turns may run at once."""
    return await measures.rate(client, Thread.turn, 2 * TURNS_AT_ONCE * replicas, sizes.replica_seconds)


async def _decisions(contestants: Contestants, postgresql: Cluster, sizes: Sizes) -> list[Figure]:
    slack, address = contestants.around.slack, postgresql.new_database()
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(
                contestants.replica(postgresql.variables(address), model_url=contestants.around.model_url)
            )
            for _ in range(2)
        ]
        client = await stack.enter_async_context(in_slack(slack, *(each.url for each in opened)))
        for _ in range(sizes.warm_ups * 2):
            await measures.fifth_turn(client, sizes)
        # The first time, each connection still has to plan each statement.
        await measures.decisions(client, replace(sizes, decisions=sizes.decisions // 10))
        answered = await measures.decisions(client, sizes)
    what = f"a click that decides, {sizes.decision_rate} a second at two replicas: on disk and answered"
    return [
        Figure(f"{what}: median", median_ms(answered), "ms", None, Limit(19, must_hold=True)),
        Figure("… p99", p99_ms(answered), "ms", None, Limit(91, must_hold=True)),
    ]


async def _takeovers(postgresql: Cluster, sizes: Sizes) -> list[Figure]:
    """Of processes with the engine alone (`bench.replica`)."""
    found: list[Figure] = []
    harms: tuple[tuple[Harm, str], ...] = (("killed", "kill -9"), ("stopped", "SIGSTOP"))
    for harm, named in harms:
        seconds = await takeovers(postgresql, harm, sizes.takeovers, sizes.takeover_pairs)
        what = f"{named} in the middle of a turn → another has begun it, {len(seconds)} times: median"
        found += [
            Figure(what, statistics.median(seconds), "s", None, Limit(5, must_hold=True)),
            Figure("… the worst", max(seconds), "s", None, Limit(8, must_hold=True)),
        ]
        await asyncio.sleep(sizes.rest_seconds)
    return found
