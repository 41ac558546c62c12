"""As many threads at once as the event loop can take."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import replace

import pytest

from bot.turns import engine
from bot.turns.engine import (
    BUSY,
    BUSY_FOR_A_WHILE,
    EASY,
    FEWEST,
    FIRST,
    LATE,
    LONGEST_REST,
    MEASURE_EVERY,
    AdaptiveLimit,
    Crowd,
    LoopLoad,
    next_limit,
)
from bot.turns.replicas import Slots

CROWD = Crowd(arrivals=100.0, decisions=50.0)


IDLE = LoopLoad(late=0.0, busy=0.0, busy_for_a_while=0.0, arrivals=0.0, decisions=0.0)


@pytest.mark.parametrize(
    ("limit", "late", "then"),
    [(8, 2 * LATE, 4), (1, 2 * LATE, FEWEST), (8, (EASY + LATE) / 2, 8), (8, EASY / 2, 9), (64, 0.0, 64)],
)
def test_a_late_loop_halves_what_is_worked_on_and_an_easy_one_adds_to_it(limit: int, late: float, then: int) -> None:
    assert next_limit(limit, replace(IDLE, late=late, busy=1.0), most=64, crowd=CROWD) == then


@pytest.mark.parametrize(
    ("limit", "arrivals", "busy", "then"),
    [(8, 200.0, 1.0, 4), (1, 200.0, 1.0, FEWEST), (8, 200.0, BUSY / 2, 9), (8, 50.0, 1.0, 9)],
)
def test_a_busy_loop_works_on_less_while_there_is_a_crowd_and_never_because_turns_wait(
    limit: int, arrivals: float, busy: float, then: int
) -> None:
    load = replace(IDLE, arrivals=arrivals, busy=busy, busy_for_a_while=busy)
    assert next_limit(limit, load, most=64, crowd=CROWD) == then


@pytest.mark.parametrize(
    ("limit", "decisions", "busy", "late", "then"),
    [
        (8, 60.0, 0.5, 0.0, 4),
        (1, 60.0, 0.5, 0.0, 0),
        (8, 60.0, BUSY_FOR_A_WHILE, 0.0, 9),
        (8, 40.0, 0.5, 0.0, 9),
        (0, 40.0, 0.5, (EASY + LATE) / 2, FEWEST),
    ],
)
def test_while_many_decide_and_the_loop_computes_no_turn_begins(
    limit: int, decisions: float, busy: float, late: float, then: int
) -> None:
    load = replace(IDLE, late=late, decisions=decisions, busy_for_a_while=busy)
    assert next_limit(limit, load, most=64, crowd=CROWD) == then


async def test_however_many_decide_one_more_thread_is_worked_on_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_FOR_A_WHILE", 0.0)  # whatever share of the machine this process gets
    pace, begun = AdaptiveLimit(64, Crowd(arrivals=math.inf, decisions=0.0)), 0
    slow = asyncio.Event()

    async def decide() -> None:
        while True:
            pace.decided()
            pace.arrived()
            await asyncio.sleep(0)

    async def turn() -> None:
        nonlocal begun
        async with pace.place():
            begun += 1
            await slow.wait()

    deciding = asyncio.create_task(decide())
    turns = [asyncio.create_task(turn()) for _ in range(FIRST + 2)]
    async with asyncio.timeout(20):
        while pace.size > 0:
            await asyncio.sleep(0)
        while begun < len(turns):
            await asyncio.sleep(0)
    slow.set()
    deciding.cancel()
    await asyncio.gather(*turns, deciding, return_exceptions=True)
    await pace.stop()


async def test_while_many_arrive_and_the_loop_computes_fewer_threads_are_worked_on() -> None:
    pace, most_at_once, at_once = AdaptiveLimit(64), [], 0

    async def compute() -> None:
        nonlocal at_once
        async with pace.place():
            at_once += 1
            for _ in range(20):
                began = time.thread_time()
                while time.thread_time() - began < 0.0005:
                    pass
                pace.arrived()
                await asyncio.sleep(0)
            most_at_once.append(at_once)
            at_once -= 1

    await asyncio.gather(*(compute() for _ in range(100)))
    await pace.stop()
    assert most_at_once[0] == FIRST
    assert min(most_at_once[-50:]) == FEWEST


async def test_while_nobody_decides_a_late_loop_works_on_no_more_threads() -> None:
    pace, done, begun = AdaptiveLimit(64), asyncio.Event(), 0

    async def turn() -> None:
        nonlocal begun
        async with pace.place():
            begun += 1
            await done.wait()

    turns = [asyncio.create_task(turn()) for _ in range(FIRST + 2)]
    until = time.monotonic() + LONGEST_REST + 0.2
    while time.monotonic() < until:
        compute(1.5 * MEASURE_EVERY)
        await asyncio.sleep(0)
    assert begun == FIRST
    done.set()
    await asyncio.gather(*turns)
    await pace.stop()


async def test_what_others_worked_on_is_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several processes the one that accepts a decision need not be the one that works on its thread."""
    pace, loads = AdaptiveLimit(64, CROWD), []

    def noted(limit: int, load: LoopLoad, **_: object) -> int:
        loads.append(load)
        return limit

    monkeypatch.setattr(engine, "next_limit", noted)
    for _ in range(1_000):
        pace.arrived()
        pace.decided()
    async with pace.place(), asyncio.timeout(10):
        while not loads:
            await asyncio.sleep(MEASURE_EVERY)
    await pace.stop()
    assert (loads[0].arrivals, loads[0].decisions) == (0.0, 0.0)


async def test_whoever_waits_when_it_stops_is_let_in() -> None:
    pace = AdaptiveLimit(1)
    async with pace.place():
        waiting = [asyncio.create_task(_enter(pace)) for _ in range(3)]
        await asyncio.sleep(0)
        await pace.stop()
        await asyncio.gather(*waiting)


async def _enter(pace: AdaptiveLimit) -> None:
    async with pace.place():
        pass


def compute(seconds: float) -> None:
    """Holds the event loop for so long."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        pass


async def test_places_are_given_first_come_first_served_and_never_too_many() -> None:
    pace, order, inside = AdaptiveLimit(1), [], 0

    async def work(name: str) -> None:
        nonlocal inside
        async with pace.place():
            inside += 1
            assert inside == 1
            order.append(name)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work(name) for name in "abcd"))
    await pace.stop()
    assert order == list("abcd")


async def test_whoever_gives_up_waiting_leaves_the_place_to_the_next() -> None:
    pace, done = AdaptiveLimit(1), asyncio.Event()

    async def work() -> None:
        async with pace.place():
            done.set()

    async with pace.place():
        impatient, patient = asyncio.create_task(work()), asyncio.create_task(work())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
    await patient
    await pace.stop()
    assert done.is_set()


async def test_places_grow_while_everybody_waits_for_something_slow() -> None:
    pace, answer, begun = AdaptiveLimit(64), asyncio.Event(), []

    async def turn() -> None:
        async with pace.place():
            begun.append(1)
            await answer.wait()

    turns = [asyncio.create_task(turn()) for _ in range(6)]
    async with asyncio.timeout(10):
        while len(begun) < 6:
            await asyncio.sleep(0)
    answer.set()
    await asyncio.gather(*turns)
    await pace.stop()


async def test_no_more_places_are_claimed_than_threads_may_be_worked_on() -> None:
    pace = AdaptiveLimit(2)
    slots = Slots(pace)
    for _ in range(2):
        await slots.acquire()
    third = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    assert not third.done()
    slots.give_back()  # only posts are left in one of them
    await third
    slots.take_back()
    slots.release()  # it has ended, and there is still no more room
    fourth = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    assert not fourth.done()
    slots.release()
    await fourth


async def test_more_places_are_claimed_as_soon_as_more_threads_may_be_worked_on() -> None:
    pace = AdaptiveLimit(64)
    slots = Slots(pace)
    for _ in range(FIRST):
        await slots.acquire()
    async with pace.place(), asyncio.timeout(10):
        await slots.acquire()  # the loop has time, so the limit grows
    await pace.stop()
