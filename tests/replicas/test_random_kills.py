"""Rules 1, 2 and 4: replicas and PostgreSQL are killed at random moments, for minutes, and no conversation suffers.

Only in `make test-long`. `--seed` repeats what is killed in which order, `--rounds` says how often, for
`KILLING_SECONDS` each.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from tests.replicas.cluster import Cluster
from tests.replicas.crash_points import FOLDER, make_notes
from tests.replicas.load import Load, loaded
from tests.replicas.processes import Replica, replicas
from tests.support.product import ProductFolder

pytestmark = [pytest.mark.kills, pytest.mark.long, pytest.mark.timeout(1_800)]

KILLING_SECONDS = 120.0
THREADS = 8
MOST_SHOWN = 60
"""Posts and changes of posts that are shown between two kills, at most."""
LONGEST_LIFE = 15.0
"""Seconds until the next kill when nothing is shown."""
LONGEST_MOMENT = 0.3
"""Seconds more, at most, so that it is not always something that was just shown."""
LONGEST_AWAY = 3.0
"""Seconds that PostgreSQL is away, at most."""
LONGEST_STILL = 9.0
"""Seconds that a replica stands still, at most."""
AGAIN_WITHIN = 60.0
"""Seconds within which something is shown again after the last kill."""


async def test_every_conversation_ends_well_however_often_replicas_and_postgresql_are_killed(
    home: ProductFolder, cluster: Cluster, address: str, seed: int, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(seed)
    await asyncio.to_thread(make_notes, address)
    program, folder = ("-m", "tests.replicas.crash_points"), home.folder
    async with replicas(home, address, program=program, **{FOLDER: str(folder)}) as pair:
        await asyncio.gather(*(replica.up() for replica in pair))
        async with loaded(pair, address, THREADS, seed) as load:
            killed = await _kill_again_and_again(pair, cluster, load, rng)
            assert await load.gets_on(1, AGAIN_WITHIN), "nothing happens any more"
            await load.ends()
            figures = {"seed": seed, **killed, **await load.check(home, address)}
    print(figures)
    record_property("killed", figures)
    assert figures["effects"] >= THREADS, "so few effects prove nothing"


async def _kill_again_and_again(
    pair: Sequence[Replica], cluster: Cluster, load: Load, rng: random.Random
) -> Counter[str]:
    """For `KILLING_SECONDS`, kill or hold up something, and start it again. How often what was."""
    done: Counter[str] = Counter()
    ends = asyncio.get_running_loop().time() + KILLING_SECONDS
    while asyncio.get_running_loop().time() < ends:
        await load.gets_on(rng.randrange(MOST_SHOWN), LONGEST_LIFE)
        await asyncio.sleep(rng.uniform(0, LONGEST_MOMENT))
        what = rng.choice(["one", "one", "both", "still", "postgresql", "postgresql"])
        one = rng.choice(pair)
        done[what] += 1
        match what:
            case "one":
                await one.kill()
                await one.up()
            case "both":
                for replica in rng.sample(pair, 2):
                    await replica.kill()
                    await asyncio.sleep(rng.uniform(0, LONGEST_MOMENT))
                await asyncio.gather(*(replica.up() for replica in pair))
            case "still":
                one.stand_still()
                await asyncio.sleep(rng.uniform(0, LONGEST_STILL))
                one.go_on()
            case _:
                await cluster.kill()
                await asyncio.sleep(rng.uniform(0, LONGEST_AWAY))
                await cluster.start()
    await asyncio.gather(*(replica.ready() for replica in pair))
    return done
