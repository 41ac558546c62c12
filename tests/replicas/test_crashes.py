"""Rules 1, 2 and 4: a replica dies, or stands still for longer than others wait for it, at each of its writes.

People go on meanwhile, at both replicas: with messages and their duplicates, decisions that contradict each other,
double clicks, stops and answers. Who comes back after others have taken over changes nothing of theirs.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.replicas.crash_points import FOLDER, WRITES, CrashPoint, arm, disarm, make_notes, who_got_there
from tests.replicas.load import Load, loaded
from tests.replicas.processes import Replica, replicas
from tests.support.product import ProductFolder

pytestmark = [pytest.mark.kills, pytest.mark.timeout(1_800)]

FEW_THREADS, MANY_THREADS = 4, 8
STILL_SECONDS = 8.0
"""Seconds that a replica stands still: longer than it takes others to take it for dead, and to take over."""
REACHED_WITHIN = 60.0
"""Seconds within which some replica gets to any point."""
TAKEN_OVER_WITHIN = 30.0
"""Seconds within which something is shown again, with half of the processes gone, on a machine that runs many tests."""
FEW_DEATHS, FEW_STOPS = 2, 1
LATEST = 4
"""How often a point may have been passed before something happens there."""
ALL = [
    CrashPoint(write, side, action)
    for write in WRITES
    for side, action in itertools.product(("before", "after"), ("dies", "stands still"))
]


async def test_nothing_is_lost_or_done_twice_at_whichever_write_a_replica_dies_or_stands_still(
    home: ProductFolder,
    address: str,
    seed: int,
    tries: Callable[[int, int], int],
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    threads = tries(FEW_THREADS, MANY_THREADS)
    points = _few(seed) if not pytestconfig.getoption("--long") else _share(seed, pytestconfig)
    await asyncio.to_thread(make_notes, address)
    program = ("-m", "tests.replicas.crash_points")
    async with replicas(home, address, program=program, **{FOLDER: str(home.folder)}) as pair:
        await asyncio.gather(*(replica.up() for replica in pair))
        async with loaded(pair, address, threads, seed) as load:
            for point in points:
                print(point, flush=True)
                await _crash(pair, home.folder, point, load)
            await load.ends()
            figures = await load.check(home, address)
    print(seed, figures)
    record_property("crashes", figures)
    assert load.refused == []
    assert figures["effects"] >= threads, "so few effects prove nothing"


def _few(seed: int) -> list[CrashPoint]:
    rng = random.Random(seed)
    every = _shuffled(rng)
    deaths = [point for point in every if point.action == "dies"][:FEW_DEATHS]
    stops = [point for point in every if point.action == "stands still"][:FEW_STOPS]
    return rng.sample([*deaths, *stops], FEW_DEATHS + FEW_STOPS)


def _share(seed: int, pytestconfig: pytest.Config) -> list[CrashPoint]:
    """Of all points, so that all rounds together take each of them once."""
    first, rounds = (pytestconfig.getoption(name) for name in ("--seed", "--rounds"))
    return _shuffled(random.Random(first))[seed - first :: rounds]


def _shuffled(rng: random.Random) -> list[CrashPoint]:
    return [replace(point, left=rng.randrange(LATEST)) for point in rng.sample(ALL, len(ALL))]


async def _crash(pair: Sequence[Replica], folder: Path, point: CrashPoint, load: Load) -> None:
    """Have it happen, and wait until both replicas work again. After one has stood still the other one dies, so that
    all depends on the one that came back."""
    arm(folder, point)
    hit, other = await _who_got_there(pair, folder, point)
    if point.action == "dies":
        await hit.wait()
        await hit.up()
        return
    async with asyncio.timeout(REACHED_WITHIN):
        while not hit.stands_still:
            await asyncio.sleep(0.01)
    await asyncio.sleep(STILL_SECONDS)
    hit.go_on()
    await hit.ready()
    assert await load.gets_on(1, TAKEN_OVER_WITHIN), f"nothing happens any more after {point}"
    await other.kill()
    assert await load.gets_on(1, TAKEN_OVER_WITHIN), f"{hit.name} does nothing after {point}"
    await other.up()


async def _who_got_there(pair: Sequence[Replica], folder: Path, point: CrashPoint) -> tuple[Replica, Replica]:
    """The replica that has got to the point, and the other one."""
    try:
        async with asyncio.timeout(REACHED_WITHIN):
            while (pid := who_got_there(folder)) is None:
                await asyncio.sleep(0.02)
    except TimeoutError:
        disarm(folder)
        raise AssertionError(f"nobody got to {point}") from None
    first, second = pair
    return (first, second) if first.pid == pid else (second, first)
