"""The limits that tests set say what is slow, whatever the machine does besides."""

from __future__ import annotations

import asyncio
import gc
import json
import time

import pytest

from tests.support.cpu import at_most_cpu, how_much_slower, quickest
from tests.support.parsing import parsed_as_json
from tests.support.waiting import at_most_waiting


def work() -> None:
    """It takes some 10 ms, and has to do with the machine what the measure of its speed has."""
    how_much_slower(time.thread_time, during=0.007)


def test_who_takes_more_than_the_limit_is_told_how_much_and_how_slow_the_machine_was() -> None:
    passed = [0.0]
    with (
        pytest.raises(AssertionError, match=r"took \d+\.\d{3} s of CPU, and may take 0.5 s; .* \d+\.\d times as slow"),
        at_most_cpu(0.5, lambda: passed[0] + time.thread_time()),
    ):
        passed[0] += 1_000


def test_a_machine_that_is_slower_has_as_much_more_time() -> None:
    with at_most_cpu(0.1, lambda: 50 * time.thread_time()):
        work()


def test_nothing_is_collected_meanwhile() -> None:
    with pytest.raises(ZeroDivisionError), at_most_cpu(1):
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
    assert quickest(lambda: gc.isenabled() and pytest.fail("it is collected")) < 1
    assert gc.isenabled()


async def test_who_waits_longer_than_the_limit_is_told() -> None:
    with pytest.raises(AssertionError, match=r"and may for 0\.1 s"):
        async with at_most_waiting(0.1):
            for _ in range(30):
                await asyncio.sleep(0.01)


async def test_a_machine_that_stalls_does_not_wait() -> None:
    async with at_most_waiting(0.2):
        await asyncio.sleep(0.01)
        time.sleep(0.3)
        await asyncio.sleep(0.01)


def test_what_is_parsed_is_counted_however_it_is_parsed() -> None:
    with parsed_as_json() as lengths:
        json.loads("[1]")
        json.loads(b'{"a": 1}', parse_constant=str)
        with pytest.raises(json.JSONDecodeError):
            json.JSONDecoder().decode("[")
    assert lengths == [3, 8, 1]
    json.loads("[]")
    assert len(lengths) == 3
