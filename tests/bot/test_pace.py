"""As many threads at once as the event loop can take."""

from __future__ import annotations

import asyncio
import time

import pytest

from bot.turns.engine import BUSY, CROWD, EASY, FEWEST, FIRST, LATE, AdaptiveLimit, LoopLoad, next_limit


@pytest.mark.parametrize(
    ("limit", "late", "then"),
    [(8, 2 * LATE, 4), (1, 2 * LATE, FEWEST), (8, (EASY + LATE) / 2, 8), (8, EASY / 2, 9), (64, 0.0, 64)],
)
def test_a_late_loop_halves_what_is_worked_on_and_an_easy_one_adds_to_it(limit: int, late: float, then: int) -> None:
    assert next_limit(limit, LoopLoad(late, busy=1.0, arrivals=0.0), most=64) == then


@pytest.mark.parametrize(
    ("arrivals", "busy", "then"),
    [(2 * CROWD, 1.0, 4), (2 * CROWD, BUSY / 2, 9), (CROWD / 2, 1.0, 9)],
)
def test_a_busy_loop_works_on_less_while_there_is_a_crowd_and_never_because_turns_wait(
    arrivals: float, busy: float, then: int
) -> None:
    assert next_limit(8, LoopLoad(0.0, busy, arrivals), most=64) == then


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
