"""The measures, each as one function that drives a client. Times are seconds."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from bench.client import Client, Thread, Turn
from bench.marks import RAN_AT, READ, WRITE, ran_at

CARDS_AT_ONCE = 8


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
    throughput_seconds: float = 2.0
    throughput_threads: int = 32
    rest_seconds: float = 2.0
    """After many conversations, until their CPU is read: what is done after the answer is work, too, also what waits
    until nothing else is done."""
    rounds: int = 3
    """Of many conversations at once, taken in turns."""
    pairs: int = 5
    """Of processes whose CPU is compared. Two that are alike differ by up to a tenth, however long each is measured."""
    starts: int = 3
    settle_seconds: float = 2.0
    """After the start and after a load, until the memory of a process is read."""
    invokes: int = 200
    """Of one card, one after the other."""
    pending: int = 10_000
    """Approvals that wait."""
    post: int = 1_000_000
    """Characters of each hostile post."""
    rows: int = 1_000_000
    """In each table of the records."""
    idle_seconds: float = 9.0
    pause_seconds: float = 0.05
    """Nobody writes within the blink of an eye after the answer: what is measured does not meet the end of what was
    before it."""
    reading_seconds: float = 0.2
    """Nobody presses Approve on a card before having seen it; the turn that asked comes to rest meanwhile."""
    handler_starts: int = 200
    """One after the other."""
    replica_seconds: float = 6.0
    """Of many conversations at once, with one replica or two; `rounds` of each."""
    decisions: int = 1_000
    decision_rate: int = 100
    """A second."""
    takeovers: int = 50
    """After a kill, and as many after a stop."""
    takeover_pairs: int = 5
    """Side by side."""
    gateway_calls: int = 200
    """Through the gateway, and as many at the server itself."""
    gateway_waiting: int = 100
    """Calls that wait for people at a time."""
    gateway_wait_seconds: float = 10.0
    """In which the CPU of a process is read."""


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
    rest_seconds=0.0,
    rounds=1,
    pairs=1,
    starts=1,
    settle_seconds=0.0,
    invokes=5,
    pending=5,
    rows=1_000,
    post=50,
    idle_seconds=0.03,
    pause_seconds=0.0,
    reading_seconds=0.0,
    handler_starts=3,
    replica_seconds=0.5,
    decisions=4,
    takeovers=1,
    takeover_pairs=1,
    gateway_calls=2,
    gateway_waiting=2,
    gateway_wait_seconds=0.05,
)
"""Shows that everything runs; its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Click:
    """An approval. Seconds: `card` from the message, the others from the press on Approve."""

    card: float
    acknowledged: float
    changed: float
    """The card says that it is decided."""
    ran: float
    """The tool has been called."""
    answered: float


@dataclass(frozen=True, slots=True)
class Fifth:
    """The fifth turn of one conversation, and what follows it."""

    plain: Turn
    with_tool: Turn
    click: Click


async def fifth_turn(client: Client, sizes: Sizes) -> Fifth:
    """A conversation of four turns, then one that is measured, one with a tool call, one with an approval."""
    async with client.thread() as thread:
        for _ in range(4):
            await thread.turn()
        await asyncio.sleep(sizes.pause_seconds)
        plain = await thread.turn()
        await asyncio.sleep(sizes.pause_seconds)
        with_tool = await thread.turn(READ)
        await asyncio.sleep(sizes.pause_seconds)
        return Fifth(plain, with_tool, await click(thread, sizes.reading_seconds))


async def click(thread: Thread, reading_seconds: float) -> Click:
    """A message that asks for a tool which needs an approval, and the approval."""
    mark = uuid.uuid4().hex[:12]
    sent = time.monotonic()
    await thread.client.send(thread.thread_id, f"{WRITE} {mark}")
    card = await thread.until(lambda c: c["kind"] == "approval" and c["status"] == "pending")
    await asyncio.sleep(reading_seconds)
    clicked = time.monotonic()
    await thread.client.approve(card.content["id"])
    acknowledged = time.monotonic()
    changed = await thread.first(lambda c: c["kind"] == "approval" and c["status"] != "pending")
    answer = await thread.until(lambda c: c["kind"] == "said" and mark in c["text"])
    ran = ran_at(answer.content["text"])
    return Click(card.at - sent, acknowledged - clicked, changed.at - clicked, ran - clicked, answer.at - clicked)


@dataclass(frozen=True, slots=True)
class Work:
    """What one round of many conversations at once came to."""

    rate: float
    """A second."""
    cpu: float
    """Seconds of the contestant's own process, user and system, for a thousand."""
    done: int
    """All of them, with those after the time."""


async def work(client: Client, process: int, act: Callable[[Thread], Awaitable[object]], sizes: Sizes) -> Work:
    """Many conversations of five turns at once, each going on as soon as it is answered. `act`: one turn."""
    before = _cpu(process)
    in_time, all_of_them = await _talk(client, act, sizes.throughput_threads, sizes.throughput_seconds)
    await asyncio.sleep(sizes.rest_seconds)
    return Work(in_time / sizes.throughput_seconds, (_cpu(process) - before) / all_of_them * 1000, all_of_them)


async def rate(client: Client, act: Callable[[Thread], Awaitable[object]], threads: int, seconds: float) -> float:
    """Turns a second of so many conversations at once."""
    in_time, _ = await _talk(client, act, threads, seconds)
    return in_time / seconds


async def _talk(
    client: Client, act: Callable[[Thread], Awaitable[object]], threads: int, seconds: float
) -> tuple[int, int]:
    """Conversations at once, for so many seconds and to the ends of those that have begun. Returns the turns within the
    time, and all."""
    ends = time.monotonic() + seconds
    in_time = all_of_them = 0

    async def talk() -> None:
        nonlocal in_time, all_of_them
        while time.monotonic() < ends:
            async with client.thread() as thread:
                for _ in range(5):
                    await act(thread)
                    all_of_them += 1
                    in_time += time.monotonic() < ends

    await asyncio.gather(*(talk() for _ in range(threads)))
    return in_time, all_of_them


def _cpu(process: int) -> float:
    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)


async def decisions(client: Client, sizes: Sizes) -> Sequence[float]:
    """Seconds from when somebody was to press Approve, at a fixed rate whatever becomes of the presses before, until it
    was answered; each on a card of its own, all of which are there before. Returns when all is done."""
    async with AsyncExitStack() as stack:
        threads = [await stack.enter_async_context(client.thread()) for _ in range(sizes.decisions)]
        cards = await _cards(threads)
        began = time.monotonic() + 1.0

        async def decide(number: int, card: str) -> float:
            at = began + number / sizes.decision_rate
            await asyncio.sleep(at - time.monotonic())
            await client.approve(card)
            return time.monotonic() - at

        answered = await asyncio.gather(*(decide(number, card) for number, card in enumerate(cards)))
        for thread in threads:
            await thread.until(lambda c: c["kind"] == "said" and RAN_AT in c["text"])
        return answered


async def _cards(threads: Sequence[Thread]) -> Sequence[str]:
    """Has a call asked about in each thread, a few at a time. Returns the approvals."""
    few = asyncio.Semaphore(CARDS_AT_ONCE)

    async def asked(thread: Thread) -> str:
        async with few:
            await thread.client.send(thread.thread_id, f"{WRITE} {uuid.uuid4().hex[:12]}")
            card = await thread.until(lambda c: c["kind"] == "approval" and c["status"] == "pending")
            return str(card.content["id"])

    return await asyncio.gather(*(asked(thread) for thread in threads))


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
