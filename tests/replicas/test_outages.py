"""PostgreSQL is away for a while, another server takes its place, or nothing comes through one way: what cannot be kept
is refused, which Slack then sends again, and afterwards everything goes on by itself.

Rules 1, 4 and 10.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
import pytest

from adapters.shared.outages import AWAY
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.slack.server import FakeSlack
from tests.fakes.teams.server import ANA, FakeTeams, fake_teams
from tests.replicas.channels import SLACK_WAITS, Channels
from tests.replicas.cluster import Cluster
from tests.replicas.held_model import HeldOnce
from tests.replicas.processes import Replica, replicas
from tests.replicas.standby import standby_of
from tests.support.one_way_proxy import TO_CLIENT, TO_SERVER, proxied
from tests.support.product import ProductFolder
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.support.visitor import visiting
from tests.teams.product.conftest import connected

pytestmark = [pytest.mark.kills, pytest.mark.timeout(300)]
KNOWN_WITHIN = 8.0
"""Seconds in which a replica knows that the database is away, on a machine that runs many tests."""
BACK_WITHIN = 12.0
"""The same, that it is back."""
MOST_LINES = 25
"""Lines of warnings in the log of a replica, however long the database is away."""


@dataclass
class Watch:
    """Asks replicas how they are."""

    http: aiohttp.ClientSession

    async def status(self, replica: Replica, path: str) -> int:
        """What it answers."""
        async with self.http.get(replica.url + path) as response:
            return response.status

    async def until_ready(self, status: int, *among: Replica, within: float) -> float:
        """Wait until all of them answer so on `/ready`, while all answer `/health-check`; seconds that it took."""
        began = time.monotonic()
        async with asyncio.timeout(within):
            while [await self.status(each, "/ready") for each in among] != [status] * len(among):
                assert {await self.status(each, "/health-check") for each in among} == {200}
                await asyncio.sleep(0.05)
        return time.monotonic() - began


@asynccontextmanager
async def watching() -> AsyncIterator[Watch]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        yield Watch(http)


async def start(*among: Replica) -> None:
    for each in among:
        await each.begin()
    for each in among:
        await each.ready()


async def refused(channels: Channels, replica: Replica, key: str) -> asyncio.Task[None]:
    """Somebody writes, which is refused in time. Slack sends it again until it is taken."""
    channels.send_to = replica.url
    began = time.monotonic()
    assert await channels.write(key) == 503
    assert time.monotonic() - began < SLACK_WAITS
    return asyncio.create_task(channels.send_again(key))


def check_logs(among: Sequence[Replica]) -> None:
    """What went wrong is said once, and not each second."""
    for replica in among:
        lines = [json.loads(line) for line in replica.log().splitlines() if line.startswith("{")]
        told = Counter(each["message"] for each in lines if each["level"] in {"warning", "error", "critical"})
        assert told.total() <= MOST_LINES, told


@pytest.mark.parametrize("how", ["killed", pytest.param("ended well", marks=pytest.mark.long)])
async def test_while_postgresql_is_away_messages_are_refused_and_then_all_goes_on(
    how: str,
    slack_home: ProductFolder,
    cluster: Cluster,
    address: str,
    slack: FakeSlack,
    model: FakeOpenAI,
    held: HeldOnce,
    tries: Callable[[int, int], int],
) -> None:
    async with replicas(slack_home, address) as pair, watching() as watch:
        await start(*pair)
        channels = Channels(slack, pair[0].url)
        assert await channels.write("hold-1") == 200
        await held.held.wait()
        await (cluster.kill() if how == "killed" else cluster.end_well())
        went = time.monotonic()
        again = [await refused(channels, each, f"while-{each.name}") for each in pair]
        knew = await watch.until_ready(503, *pair, within=KNOWN_WITHIN)
        held.go_on.set()  # the turn goes on while nothing can be kept
        await asyncio.sleep(tries(4, 60) - (time.monotonic() - went))
        await cluster.start()
        back = time.monotonic()
        channels.send_to = pair[1].url
        await channels.write_until_taken("after")
        await channels.answered("after", within=BACK_WITHIN)
        answered = time.monotonic() - back
        await watch.until_ready(200, *pair, within=BACK_WITHIN)
        took = f"not ready after {knew:.1f} s; back: answer after {answered:.1f} s"
        print(f"away {back - went:.1f} s: {took}, ready after {time.monotonic() - back:.1f} s")
        await asyncio.gather(*again)
        await channels.all_answered(within=30)
        assert [each.code for each in pair] == [None, None]
        check_logs(pair)


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    """Teams."""
    async with fake_teams() as server:
        yield server
        assert server.product_mistakes == []


async def test_while_postgresql_is_away_the_page_and_teams_are_told_so_and_then_all_goes_on(
    slack_home: ProductFolder, cluster: Cluster, address: str, teams: FakeTeams
) -> None:
    """Both answered 500, with a traceback for each request."""
    slack_home.variables |= connected(teams) | {"WEB_ENABLED": "true"}
    async with replicas(slack_home, address, count=1) as (replica,), watching() as watch, AsyncExitStack() as stack:
        await start(replica)
        transport = HttpTransport(f"{replica.url}/api/messages", teams)
        somebody = TeamsPerson(teams, ANA, transport)
        ana = await stack.enter_async_context(visiting(replica.url))
        thread = await stack.enter_async_context(ana.thread())
        await thread.send("hey before")
        await thread.says("hello before")
        events = f"/api/events?thread={quote(thread.thread_id)}"
        message = f"/api/threads/{quote(thread.thread_id)}/messages"
        await cluster.kill()
        began = time.monotonic()
        said = await somebody.says(teams.channel, "hey teams")
        for _ in range(4):
            answers = [
                await ana.get("/api/threads"),
                await ana.get(events),
                await ana.get("/api/connections"),
                await ana.post(message, {"id": "while", "text": "hey while"}),
            ]
            assert [(each.status, each.body) for each in answers] == [(503, {"error": AWAY})] * 4
            assert {(await somebody.again(said)).status, said.status} == {503}
            assert {each.status for each in await somebody.installs()} == {503}
        print(f"29 requests refused in {time.monotonic() - began:.1f} s")
        await watch.until_ready(503, replica, within=KNOWN_WITHIN)
        await cluster.start()
        await watch.until_ready(200, replica, within=BACK_WITHIN)
        assert (await ana.post(message, {"id": "while", "text": "hey while"})).status == 202
        assert (await somebody.again(said)).status == 200
        await thread.says("hello while")
        await teams.until(lambda: any("hello teams" in m["text"] for m in teams.posts(said.conversation)))
        check_logs([replica])
        lines = [json.loads(line) for line in replica.log().splitlines() if line.startswith("{")]
        told = Counter(each["message"] for each in lines)
        assert 1 <= told["requests_refused"] <= 3, told  # causes: the connection that broke, and that there is none
        assert told["requests_taken_again"] == 1
        assert not [line for line in lines if line["message"] == "requests_refused" and "exception" in line]


async def test_another_server_takes_its_place(
    slack_home: ProductFolder, cluster: Cluster, address: str, slack: FakeSlack, model: FakeOpenAI, held: HeldOnce
) -> None:
    async with (
        standby_of(cluster) as standby,
        replicas(slack_home, standby.address_of_both(address)) as pair,
        watching() as watch,
    ):
        await start(*pair)
        channels = Channels(slack, pair[0].url)
        assert await channels.write("hold-1") == 200
        await held.held.wait()
        for number in range(5):
            assert await channels.write(f"before-{number}") == 200
        await cluster.kill()
        again = [await refused(channels, each, f"while-{each.name}") for each in pair]
        await watch.until_ready(503, *pair, within=KNOWN_WITHIN)
        await standby.promote()
        began = time.monotonic()
        held.go_on.set()
        await watch.until_ready(200, *pair, within=BACK_WITHIN)
        print(f"ready {time.monotonic() - began:.1f} s after the other server takes writes")
        await asyncio.gather(*again)
        channels.send_to = pair[1].url
        assert await channels.write("after") == 200
        await channels.all_answered(within=30)
        assert [each.code for each in pair] == [None, None]
        check_logs(pair)


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param((TO_CLIENT,), id="answers"),
        pytest.param((TO_SERVER,), id="requests", marks=pytest.mark.long),
        pytest.param((TO_SERVER, TO_CLIENT), id="both", marks=pytest.mark.long),
    ],
)
async def test_a_replica_that_reaches_postgresql_one_way_only_is_overtaken_and_comes_back(
    ways: tuple[str, ...],
    slack_home: ProductFolder,
    address: str,
    slack: FakeSlack,
    model: FakeOpenAI,
    held: HeldOnce,
) -> None:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(proxied(address))
        (near,) = await stack.enter_async_context(replicas(slack_home, address, count=1))
        far_home = ProductFolder(slack_home.folder / "far", dict(slack_home.variables))
        far_home.folder.mkdir()
        (far,) = await stack.enter_async_context(replicas(far_home, proxy.address, count=1))
        watch = await stack.enter_async_context(watching())
        await start(far)
        channels = Channels(slack, far.url)
        assert await channels.write("hold-1") == 200
        await held.held.wait()
        await start(near)

        proxy.hold_back(*ways)
        began = time.monotonic()
        late = asyncio.create_task(channels.write_until_taken("late"))
        await channels.answered("hold-1", within=20)
        print(f"overtaken and answered after {time.monotonic() - began:.1f} s")
        await watch.until_ready(503, far, within=KNOWN_WITHIN)
        assert await watch.status(near, "/ready") == 200
        await asyncio.sleep(max(0.0, began + 7 - time.monotonic()))
        proxy.let_through()
        began = time.monotonic()
        held.go_on.set()
        await watch.until_ready(200, far, within=20)
        print(f"ready again after {time.monotonic() - began:.1f} s")
        await late
        assert await near.terminate() == 0
        channels.send_to = far.url
        assert await channels.write("afterwards") == 200
        await channels.all_answered(within=30)
        print(f"answered again {time.monotonic() - began:.1f} s after the traffic flowed")
        check_logs([near, far])
