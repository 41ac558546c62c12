"""How long it takes until another process goes on with a turn whose own was killed or stopped in the middle of it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Literal

from bench.client import WITHIN
from bench.cluster import Cluster
from bench.contestants import ROOT
from bench.cores import move_to
from bench.replica import HELD
from bot.records.startup import upgrade_postgres

Harm = Literal["killed", "stopped"]
_SIGNAL = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}


class ReplicaProcess:
    """A process of `bench.replica`, and what it has told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._told: list[dict[str, Any]] = []
        self._arrived = asyncio.Condition()
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._arrived:
                self._told.append(json.loads(line))
                self._arrived.notify_all()
        async with self._arrived:
            self._told.append({"end": True})
            self._arrived.notify_all()

    def command(self, **what: str) -> None:
        """Have it do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")

    async def told(self, what: str, value: object) -> dict[str, Any]:
        """What it tells of this. Raises `RuntimeError` when it ends before."""
        async with asyncio.timeout(WITHIN), self._arrived:
            while True:
                for each in self._told:
                    if each.get(what) == value:
                        return each
                if self._told and "end" in self._told[-1]:
                    raise RuntimeError("a process of the bench has ended")
                await self._arrived.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def end(self) -> None:
        """Kill it, if it is there."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._listening


async def started(address: str) -> ReplicaProcess:
    """Another process on this database, which takes part by now."""
    pipe = asyncio.subprocess.PIPE
    command = sys.executable, "-m", "bench.replica", address
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    move_to(process=process.pid)
    made = ReplicaProcess(process)
    try:
        await made.told("ready", value=True)
    except BaseException:
        await made.end()
        raise
    return made


@asynccontextmanager
async def replica(address: str) -> AsyncIterator[ReplicaProcess]:
    """One for as long as it is used."""
    made = await started(address)
    try:
        yield made
    finally:
        await made.end()


async def starts_of_handlers(cluster: Cluster, count: int) -> tuple[list[float], list[float]]:
    """Seconds from when a message came until it was accepted, and until its handler had it; one after the other."""
    address = cluster.new_database()
    await asyncio.to_thread(upgrade_postgres, address)
    accepted, begun = [], []
    async with replica(address) as process:
        for number in range(count):
            key = f"m{number}"
            process.command(accept=key, place=f"T{number % 20}")
            came = await process.told("accepted", key)
            start = await process.told("begun", key)
            await process.told("ended", key)
            accepted.append(came["at"] - came["began"])
            begun.append(start["at"] - came["began"])
            await asyncio.sleep(0.02)  # its place is released meanwhile
    return accepted, begun


async def takeovers(cluster: Cluster, harm: Harm, count: int, pairs: int) -> list[float]:
    """Seconds of each, so many altogether, by so many pairs side by side on a database each."""
    shares = [count // pairs + (number < count % pairs) for number in range(pairs)]
    found = await asyncio.gather(*(_in_a_pair(cluster, harm, share) for share in shares if share))
    return [seconds for each in found for seconds in each]


async def _in_a_pair(cluster: Cluster, harm: Harm, count: int) -> list[float]:
    address = cluster.new_database()
    await asyncio.to_thread(upgrade_postgres, address)
    taken = []
    async with AsyncExitStack() as stack:
        pair = list(await asyncio.gather(started(address), started(address)))
        stack.push_async_callback(_end_all, pair)
        for number in range(count):
            key = f"{HELD} {harm} {number}"
            pair[0].command(accept=key, place=f"T{number}")
            beginning = {asyncio.create_task(each.told("begun", key)): each for each in pair}
            done, waiting = await asyncio.wait(beginning, return_when=asyncio.FIRST_COMPLETED)
            for each in waiting:
                each.cancel()
            victim = beginning[done.pop()]
            other = next(each for each in pair if each is not victim)
            harmed = time.monotonic()
            victim.send(_SIGNAL[harm])
            begun = await other.told("begun", key)
            taken.append(begun["at"] - harmed)
            other.command(let_go=key)
            await other.told("ended", key)
            if harm == "stopped":
                victim.send(signal.SIGCONT)
                await victim.told("broken_off", key)
            else:
                await victim.end()
                pair[pair.index(victim)] = await started(address)
    return taken


async def _end_all(processes: list[ReplicaProcess]) -> None:
    await asyncio.gather(*(each.end() for each in processes))
