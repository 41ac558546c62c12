"""The bench runs and says what it found. Whether the figures are good is for `make bench` on a quiet machine."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path

import pytest

from bench.figures import Figure, Limit, p99_ms, table

ROOT = Path(__file__).parents[2]


def test_a_figure_that_is_too_large_is_marked() -> None:
    shown = table([Figure("accept", 6.0, "ms", 2.0, Limit(5))])
    assert "| accept | 6.00 ms | 2.00 ms | 3.00 × | 5.00 ms | **no** |" in shown


def test_a_limit_can_be_relative_to_the_baseline() -> None:
    relative = Limit(1.2, times_baseline=True)
    assert Figure("turn", 12.0, "ms", 10.0, relative).met
    assert not Figure("turn", 12.1, "ms", 10.0, relative).met


def test_what_has_no_limit_is_neither_met_nor_missed() -> None:
    assert Figure("throughput", 78.0, "/s").met is None


def test_of_a_hundred_times_the_longest_is_the_99th() -> None:
    assert p99_ms([0.001] * 99 + [1.0]) == 1000


def test_all_of_it_can_be_imported() -> None:
    importlib.import_module("bench.__main__")


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_each_measure_of_the_bench_runs() -> None:
    bench = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench", "--smoke", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await bench.communicate()
    assert bench.returncode == 0
    lines = [line for line in output.decode().splitlines() if line.startswith("| ")]
    assert lines[0] == "| measure | product | baseline | ratio | at most | met |"
    assert [line.split("|")[1].strip().split(":")[0] for line in lines[1:4]] == [
        "accept a message, idle",
        "message → answer, turn 5",
        "… with one tool call",
    ]
    assert len(lines) == 89
