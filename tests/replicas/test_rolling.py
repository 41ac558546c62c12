"""Replicas that are restarted one after another, while people write: nobody sees an error, and nothing is lost.

Rules 1 and 10.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.fakes.slack.server import FakeSlack
from tests.replicas.balancer import Balancer
from tests.replicas.channels import Channels
from tests.replicas.cluster import Cluster
from tests.replicas.held_model import HeldOnce
from tests.replicas.processes import Replica, replicas
from tests.support.one_way_proxy import BOTH_WAYS, proxied
from tests.support.product import ProductFolder

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]
ENDS_WITHIN = 10.0
"""Seconds that a replica may take to end."""


async def test_nobody_notices_that_replicas_are_restarted(
    slack_home: ProductFolder, address: str, slack: FakeSlack, tries: Callable[[int, int], int]
) -> None:
    async with replicas(slack_home, address) as pair:
        for each in pair:
            await each.begin()
        for each in pair:
            await each.ready()
        async with Balancer([each.url for each in pair]).running() as balancer:
            channels = Channels(slack, balancer.url)
            await balancer.until_known(*balancer.urls)
            async with writing(channels, balancer, a_second=tries(10, 20)):
                for number in range(tries(2, 12)):
                    await restart(pair[number % 2])
                    await balancer.until_known(*balancer.urls)
            await channels.all_answered(within=tries(30, 300))


async def test_a_replica_that_ends_takes_what_still_comes_and_hands_over_what_does_not_finish(
    slack_home: ProductFolder, address: str, slack: FakeSlack, held: HeldOnce
) -> None:
    async with replicas(slack_home, address) as (ending, other), aiohttp.ClientSession() as http:
        await ending.up()
        channels = Channels(slack, ending.url)
        assert await channels.write("hold-1") == 200
        await held.held.wait()
        await other.up()
        began = time.monotonic()
        ended = asyncio.create_task(ending.terminate())
        while (await said(http, ending))[0] != 503:
            await asyncio.sleep(0.01)
        assert time.monotonic() - began < 1.0
        assert await channels.write("late") == 200
        assert (await said(http, ending)) == (503, "close")
        assert await ended == 0
        assert time.monotonic() - began < ENDS_WITHIN
        await channels.all_answered(within=30)  # while the model still holds back its first answer


@pytest.mark.parametrize("how", ["killed", pytest.param("silent", marks=pytest.mark.long)])
async def test_a_replica_ends_in_time_while_postgresql_is_away(
    how: str, slack_home: ProductFolder, cluster: Cluster, address: str, slack: FakeSlack, held: HeldOnce
) -> None:
    async with proxied(address) as proxy, replicas(slack_home, proxy.address, count=1) as (replica,):
        await replica.up()
        channels = Channels(slack, replica.url)
        assert await channels.write("hold-1") == 200
        await held.held.wait()
        if how == "silent":
            proxy.hold_back(*BOTH_WAYS)
        else:
            await cluster.kill()
        began = time.monotonic()
        assert await replica.terminate() == 0
        print(f"ended in {time.monotonic() - began:.1f} s")
        assert time.monotonic() - began < ENDS_WITHIN
        proxy.let_through()
        await cluster.start()
        await replica.up()
        await channels.all_answered(within=30)


async def said(http: aiohttp.ClientSession, replica: Replica) -> tuple[int, str]:
    """Whether it is ready, and what it says of the connection."""
    async with http.get(f"{replica.url}/ready") as response:
        return response.status, response.headers.get("Connection", "")


async def restart(replica: Replica) -> None:
    """End it as Kubernetes does, and start it anew."""
    began = time.monotonic()
    assert await replica.terminate() == 0
    took = time.monotonic() - began
    await replica.up()
    print(f"{replica.name} ended in {took:.1f} s and was back {time.monotonic() - began - took:.1f} s later")
    assert took < ENDS_WITHIN


@asynccontextmanager
async def writing(channels: Channels, balancer: Balancer, a_second: int) -> AsyncIterator[None]:
    """People write so many messages a second within it, and Slack gets an answer to each in time."""
    tasks: set[asyncio.Task[int]] = set()

    async def write_on() -> None:
        began = time.monotonic()
        for number in range(1_000_000):
            await asyncio.sleep(max(0.0, began + number / a_second - time.monotonic()))
            tasks.add(asyncio.create_task(channels.write(f"m{number}")))

    writing_on = asyncio.create_task(write_on())
    try:
        yield
    finally:
        writing_on.cancel()
        await asyncio.gather(writing_on, *tasks, return_exceptions=True)
    assert balancer.errors == []
    assert {task.result() for task in tasks} == {200}
