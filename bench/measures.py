"""The measures, each as one function that drives a client. Times are seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench.client import Client, Thread, Turn
from bench.marks import READ, WRITE


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything is measured."""

    warm_ups: int = 1
    """Conversations before those that count, since the first one loads what is needed."""
    conversations: int = 20
    """In which the fifth turn is measured, one after the other."""
    turns: int = 200
    """Of the one long conversation."""
    load_seconds: float = 10.0
    load_rate: int = 200
    """Messages a second."""
    load_threads: int = 100
    throughput_seconds: float = 5.0
    throughput_threads: int = 32
    starts: int = 5
    settle_seconds: float = 2.0
    """After the start, until the memory of an idle process is read."""
    invokes: int = 200
    """Of one card, one after the other."""
    pending: int = 10_000
    """Approvals that wait."""
    post: int = 1_000_000
    """Characters of each hostile post."""
    rows: int = 1_000_000
    """In each table of the records."""
    idle_seconds: float = 9.0
    reading_seconds: float = 0.2
    """Nobody presses Approve on a card before having seen it; the turn that asked comes to rest meanwhile."""


FULL = Sizes()
SMOKE = Sizes(
    warm_ups=0,
    conversations=1,
    turns=10,
    load_seconds=0.1,
    load_rate=20,
    load_threads=2,
    throughput_seconds=0.1,
    throughput_threads=2,
    starts=1,
    settle_seconds=0.0,
    invokes=5,
    pending=5,
    rows=1_000,
    post=50,
    idle_seconds=0.03,
    reading_seconds=0.0,
)
"""Shows that everything runs; its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Fifth:
    """The fifth turn of one conversation, and what follows it."""

    plain: Turn
    with_tool: Turn
    click_to_tool: float


async def fifth_turn(client: Client, sizes: Sizes) -> Fifth:
    """A conversation of four turns, then one that is measured, one with a tool call, one with an approval."""
    async with client.thread() as thread:
        for _ in range(4):
            await thread.turn()
        plain = await thread.turn()
        with_tool = await thread.turn(READ)
        return Fifth(plain, with_tool, await _click(thread, sizes.reading_seconds))


async def _click(thread: Thread, reading_seconds: float) -> float:
    await thread.client.send(thread.thread_id, f"{WRITE} something")
    card = await thread.until(lambda c: c["kind"] == "approval" and c["status"] == "pending")
    await asyncio.sleep(reading_seconds)
    clicked = time.monotonic()
    await thread.client.approve(card.content["id"])
    card = await thread.until(lambda c: c["kind"] == "approval" and c["result"].startswith("Done: "))
    await thread.until(lambda c: c["kind"] == "said")
    # The tool's result is the moment at which it was called; the clock is the machine's, the same in every process.
    return float(card.content["result"].split()[1]) - clicked


async def throughput(client: Client, sizes: Sizes) -> float:
    """Turns a second with many conversations at once, each going on as soon as it is answered."""
    answered = 0

    async def talk(thread: Thread) -> None:
        nonlocal answered
        while True:
            await thread.turn()
            answered += 1

    async with AsyncExitStack() as stack:
        threads = [await stack.enter_async_context(client.thread()) for _ in range(sizes.throughput_threads)]
        talking = [asyncio.create_task(talk(thread)) for thread in threads]
        began = time.monotonic()
        await asyncio.sleep(sizes.throughput_seconds)
        count, seconds = answered, time.monotonic() - began
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
    return count / seconds


async def load(client: Client, sizes: Sizes) -> Sequence[float]:
    """Acknowledgement times of messages sent at a fixed rate, whatever becomes of the ones before."""

    async def send(number: int, at: float) -> float:
        await asyncio.sleep(at - time.monotonic())
        sent = time.monotonic()
        await client.send(f"web:load-{number % sizes.load_threads}", f"tell me about {number}")
        return time.monotonic() - sent

    began = time.monotonic() + 0.1
    count = int(sizes.load_rate * sizes.load_seconds)
    return await asyncio.gather(*(send(n, began + n / sizes.load_rate) for n in range(count)))
