"""The product in Slack beside the bare agent, as Slack sees both."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench import measures
from bench.client import Thread
from bench.contestants import Contestant, Contestants, Opening
from bench.figures import Figure, Limit, Ratio, median_ms, p99_ms
from bench.marks import READ
from bench.measures import Fifth, Sizes, Work
from bench.slack_client import SlackClient, in_slack

MB = 1_000_000
Open = Callable[[], Opening]


@dataclass(frozen=True, slots=True)
class Visit:
    """A person at a contestant that has loaded what it needs."""

    client: SlackClient
    contestant: Contestant
    first_answer: float
    """Seconds from the start of the process to its first answer, asked for as soon as it was healthy."""


@dataclass(frozen=True, slots=True)
class Both:
    """How the product and the bare agent are opened, both in the same Slack."""

    contestants: Contestants

    def product(self) -> Opening:
        """The product in Slack alone."""
        return self.contestants.product(chat=self.contestants.around.slack.variables())

    def bare_agent(self) -> Opening:
        """The agent of an afternoon."""
        return self.contestants.bare_agent()

    def openings(self) -> tuple[Open, Open]:
        """The product first, as in all figures."""
        return self.product, self.bare_agent

    @asynccontextmanager
    async def visit(self, opening: Open) -> AsyncIterator[Visit]:
        """Open a contestant, and have a first turn with it."""
        async with opening() as contestant, in_slack(self.contestants.around.slack, contestant.url) as client:
            async with client.thread() as thread:
                first = await thread.turn()
            yield Visit(client, contestant, contestant.started_in + first.answered)


async def beside_the_bare_agent(contestants: Contestants, sizes: Sizes, say: Callable[[str], None]) -> list[Figure]:
    """The first table of docs/performance.md."""
    both = Both(contestants)
    say("in Slack: more than can be handled")
    acknowledged, answered, memory = await _load(both, sizes)
    say("in Slack: conversations")
    conversations = await _conversations(both, sizes, say)
    say("in Slack: starting")
    started, idle = await _starting(both, sizes)
    return [acknowledged, *conversations, started, answered, idle, memory]


async def _conversations(both: Both, sizes: Sizes, say: Callable[[str], None]) -> list[Figure]:
    """One by one and many at once, taken in turns from two processes."""
    pairs: list[tuple[Fifth, Fifth]] = []
    async with AsyncExitStack() as stack:
        ours, theirs = [await stack.enter_async_context(both.visit(opening)) for opening in both.openings()]
        for number in range(sizes.warm_ups + sizes.conversations):
            pair = (await measures.fifth_turn(ours.client, sizes), await measures.fifth_turn(theirs.client, sizes))
            if number >= sizes.warm_ups:
                pairs.append(pair)
        say("in Slack: many conversations at once")
        plain = await works(ours, theirs, Thread.turn, sizes, sizes.rounds)
        with_tool = await works(ours, theirs, lambda thread: thread.turn(READ), sizes, 1)
        clicks = await works(ours, theirs, lambda thread: measures.click(thread, sizes.pause_seconds), sizes, 1)

    def figure(what: str, wanted: float | None, limit: Limit | Ratio, seconds: Callable[[Fifth], float]) -> Figure:
        we, they = (median_ms([seconds(pair[side]) for pair in pairs]) for side in (0, 1))
        return Figure(what, we, "ms", they, limit, wanted)

    def cpu(of: str, works: tuple[Work, Work], limit: Ratio | None = None, wanted: float | None = None) -> Figure:
        return Figure(f"CPU seconds per 1,000 {of}", works[0].cpu, "s", works[1].cpu, limit, wanted)

    return [
        figure("acknowledged, idle", None, Limit(5), lambda f: f.plain.acknowledged),
        figure("mention → answer, turn 5", 12, Ratio(0.8), lambda f: f.plain.answered),
        figure("… with one tool call over stdio", 25, Ratio(0.7), lambda f: f.with_tool.answered),
        figure("mention → card shown", 14, Ratio(0.96), lambda f: f.click.card),
        figure("click → acknowledged", 5, Ratio(0.37), lambda f: f.click.acknowledged),
        figure("click → card changed", 8, Ratio(2.05), lambda f: f.click.changed),
        figure("click → the tool has run", 8, Ratio(0.7), lambda f: f.click.ran),
        figure("click → answer", 22, Ratio(0.72), lambda f: f.click.answered),
        Figure(
            f"turns a second, {sizes.throughput_threads} threads",
            plain[0].rate,
            "/s",
            plain[1].rate,
            Ratio(least=1.4),
            wanted=120,
        ),
        cpu("turns", plain, Ratio(0.65), wanted=9),
        cpu("turns with a tool call", with_tool),
        cpu("approvals, from the message to the answer", clicks),
    ]


async def works(
    ours: Visit,
    theirs: Visit,
    act: Callable[[Thread], Awaitable[object]],
    sizes: Sizes,
    rounds: int,
) -> tuple[Work, Work]:
    """Medians of some rounds, taken in turns."""
    taken: tuple[list[Work], list[Work]] = ([], [])
    for _ in range(rounds):
        for works, visit in zip(taken, (ours, theirs), strict=True):
            works.append(await measures.work(visit.client, visit.contestant.process.pid, act, sizes))
    we, they = (
        Work(
            statistics.median(w.rate for w in works),
            statistics.median(w.cpu for w in works),
            sum(w.done for w in works),
        )
        for works in taken
    )
    return we, they


async def _load(both: Both, sizes: Sizes) -> tuple[Figure, Figure, Figure]:
    """Acknowledgements of more than can be handled, and the memory after it; before it, the first answer."""
    acks: list[Sequence[float]] = []
    answers: list[float] = []
    memory: list[float] = []
    for opening in both.openings():
        async with both.visit(opening) as visit:
            answers.append(visit.first_answer)
            acks.append(await measures.load(visit.client, sizes))
            await asyncio.sleep(sizes.settle_seconds)
            memory.append(visit.contestant.memory() / MB)
    what = f"{sizes.load_rate} mentions a second for {sizes.load_seconds:g} s"
    return (
        Figure(f"acknowledged, {what}: p99", p99_ms(acks[0]), "ms", p99_ms(acks[1]), Ratio(0.04), wanted=15),
        Figure("start to the first answer, once", answers[0], "s", answers[1]),
        Figure(f"memory after {what}", memory[0], "MB", memory[1], Ratio(0.7), wanted=180),
    )


async def _starting(both: Both, sizes: Sizes) -> tuple[Figure, Figure]:
    """From an empty folder to the first healthy answer, on one core, and the memory a while after."""
    seconds: tuple[list[float], list[float]] = ([], [])
    memory: tuple[list[float], list[float]] = ([], [])
    for _ in range(sizes.starts):
        for side, opening in enumerate(both.openings()):
            async with opening() as contestant:
                seconds[side].append(contestant.started_in)
                await asyncio.sleep(sizes.settle_seconds)
                memory[side].append(contestant.memory() / MB)
    started, idle = ([statistics.median(side) for side in sides] for sides in (seconds, memory))
    return (
        Figure("start to healthy", started[0], "s", started[1], Ratio(0.43), wanted=1.5),
        Figure("memory when idle", idle[0], "MB", idle[1], Ratio(1.07), wanted=140),
    )
