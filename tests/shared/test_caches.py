from __future__ import annotations

import asyncio

import pytest

from adapters.shared.caches import MEMORY, Newest, Refusals, Remembered
from tests.support.moments import Moments


class Oracle:
    """Answers when it is let, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = "first"
        self.fails = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self, key: str) -> str:
        self.asked.append(key)
        answer = self.answer
        await self.gate.wait()
        if self.fails:
            raise ValueError("no answer")
        return f"{answer} {key}"


async def test_an_answer_is_asked_for_once_and_kept_for_its_time() -> None:
    oracle, moments = Oracle(), Moments()
    remembered = Remembered(keep=60, clock=moments.clock)
    assert [await remembered.get("a", oracle.ask), await remembered.get("a", oracle.ask)] == ["first a", "first a"]
    oracle.answer = "second"
    moments.now += 61
    assert remembered.known("a") is None
    assert remembered.known("a", stale=True) == "first a"
    assert await remembered.get("a", oracle.ask) == "second a"
    assert oracle.asked == ["a", "a"]


async def test_who_asks_at_the_same_time_shares_one_call() -> None:
    oracle = Oracle()
    remembered = Remembered(keep=60)
    answers = await asyncio.gather(*(remembered.get(key, oracle.ask) for key in "aabaa"))
    assert answers == ["first a", "first a", "first b", "first a", "first a"]
    assert oracle.asked == ["a", "b"]


async def test_who_gives_up_does_not_spoil_it_for_the_others() -> None:
    oracle = Oracle()
    oracle.gate.clear()
    remembered = Remembered(keep=60)
    impatient, patient = (asyncio.create_task(remembered.get("a", oracle.ask)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    oracle.gate.set()
    assert await patient == "first a"
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_a_failure_is_not_kept() -> None:
    oracle = Oracle()
    oracle.fails = True
    remembered = Remembered(keep=60)
    for _ in range(2):
        with pytest.raises(ValueError, match="no answer"):
            await remembered.get("a", oracle.ask)
    oracle.fails = False
    assert await remembered.get("a", oracle.ask) == "first a"


async def test_an_answer_that_was_on_its_way_when_things_changed_is_not_kept() -> None:
    oracle = Oracle()
    oracle.gate.clear()
    remembered = Remembered(keep=60)
    early = asyncio.create_task(remembered.get("a", oracle.ask))
    await asyncio.sleep(0.01)
    remembered.forget("a")
    oracle.gate.set()
    assert await early == "first a"
    oracle.answer = "second"
    assert remembered.known("a") is None
    assert await remembered.get("a", oracle.ask) == "second a"


async def test_only_so_many_are_kept_and_the_oldest_goes_first() -> None:
    oracle = Oracle()
    remembered = Remembered(keep=60, most=2)
    for key in "abc":
        await remembered.get(key, oracle.ask)
    assert [remembered.known(key) for key in "abc"] == [None, "first b", "first c"]


async def test_closing_ends_the_questions_that_are_under_way_the_forgotten_ones_too() -> None:
    oracle = Oracle()
    oracle.gate.clear()
    remembered = Remembered(keep=60)
    asking = [asyncio.create_task(remembered.get("a", oracle.ask))]
    await asyncio.sleep(0.01)
    remembered.forget_where(lambda _key: True)
    asking.append(asyncio.create_task(remembered.get("a", oracle.ask)))
    await asyncio.sleep(0.01)
    await remembered.close()
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2


def test_of_a_bounded_dictionary_the_entries_set_last_stay() -> None:
    newest: Newest[str, int] = Newest(2)
    newest["a"], newest["b"], newest["a"] = 1, 2, 3
    newest["c"] = 4
    assert dict(newest) == {"a": 3, "c": 4}


def test_a_refusal_holds_where_it_was_heard_and_for_its_time() -> None:
    moments = Moments()
    refusals: Refusals[str] = Refusals(moments.clock)
    refusals.remember("T1")
    assert (refusals.hold("T1"), refusals.hold("T2"), refusals.hold("T2", "T1")) == (True, False, True)
    moments.now += MEMORY
    assert not refusals.hold("T1")
