"""The same conversations in Slack: beside the web page, and beside a Bolt app that only acknowledges."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from bench import measures
from bench.client import visiting
from bench.contestants import Contestant, Contestants
from bench.figures import Figure, Limit, median_ms, p99_ms
from bench.measures import Fifth, Sizes
from bench.slack_client import SlackApi, SlackClient, in_slack


async def in_slack_and_at_the_page(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Turns and clicks, taken in turns from two products."""
    pairs: list[tuple[Fifth, Fifth]] = []
    async with AsyncExitStack() as stack:
        api = contestants.around.slack
        page = await stack.enter_async_context(contestants.product())
        there = await stack.enter_async_context(contestants.product(chat=api.variables()))
        at_page = await stack.enter_async_context(visiting(page.url))
        by_mention = await stack.enter_async_context(in_slack(there.url, api))
        for number in range(sizes.warm_ups + sizes.conversations):
            pair = (await measures.fifth_turn(by_mention, sizes), await measures.fifth_turn(at_page, sizes))
            if number >= sizes.warm_ups:
                pairs.append(pair)

    def figure(what: str, seconds: Callable[[Fifth], float]) -> Figure:
        ours, theirs = (median_ms([seconds(pair[side]) for pair in pairs]) for side in (0, 1))
        return Figure(f"{what} (baseline: the web page)", ours, "ms", theirs)

    return [
        figure("Slack: accept a mention, idle: median", lambda f: f.plain.acknowledged),
        figure("Slack: mention → answer, turn 5: median", lambda f: f.plain.answered),
        figure("Slack: … with one tool call: median", lambda f: f.with_tool.answered),
        figure("Slack: click → the tool starts: median", lambda f: f.click_to_tool),
    ]


async def beside_bolt(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Acknowledgements under load."""
    acks: list[Sequence[float]] = []
    api = contestants.around.slack
    for opening in (contestants.product(chat=api.variables()), contestants.bare_bolt()):
        async with opening as contestant, _warm(contestant, api) as client:
            acks.append(await measures.load(client, sizes))
    what = f"Slack: accept a mention, {sizes.load_rate} a second for {sizes.load_seconds:g} s (baseline: bare Bolt)"
    return [
        Figure(f"{what}: median", median_ms(acks[0]), "ms", median_ms(acks[1])),
        Figure(f"{what}: p99", p99_ms(acks[0]), "ms", p99_ms(acks[1]), Limit(100)),
    ]


@asynccontextmanager
async def _warm(contestant: Contestant, api: SlackApi) -> AsyncIterator[SlackClient]:
    """A client whose first events, which load what is needed, are over."""
    async with in_slack(contestant.url, api) as client:
        for number in range(5):
            await client.send(f"slack:warm{number}", "tell me about warming up")
        yield client
