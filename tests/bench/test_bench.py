"""The bench runs and says what it found. Whether the figures are good is for `make bench` on a quiet machine."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path

import pytest

from bench.__main__ import BEGIN, END, write
from bench.cores import can_cap, no_more_than
from bench.figures import Figure, Limit, Ratio, Section, p99_ms, table
from bench.marks import RAN_AT, ran_at
from bench.model_server import answer

ROOT = Path(__file__).parents[2]


def test_a_figure_that_is_too_large_is_marked() -> None:
    shown = table(Section("", [Figure("accept", 6.0, "ms", 2.0, Limit(5))]))
    assert shown.splitlines()[2] == "| accept | 6.00 ms | 2.00 ms | 3.00 × | ≤ 5.00 ms | **no** |"


def test_a_figure_of_which_more_is_better_is_shown_so() -> None:
    shown = table(Section("", [Figure("turns", 130.0, "/s", 100.0, Ratio(least=1.4), wanted=120)], "bare agent"))
    assert shown.splitlines() == [
        "| measure | product | bare agent | ratio | limit | wanted | met |",
        "|---|--:|--:|--:|--:|--:|--:|",
        "| turns | 130 /s | 100 /s | 1.30 × | ≥ 1.4 × | ≥ 120 /s | **no** |",
    ]


def test_an_amount_that_must_hold_fails_the_bench_where_it_is_missed_by_more_than_a_tenth() -> None:
    assert not Figure("", 5.5, "ms", None, Limit(5, must_hold=True)).fails
    assert Figure("", 5.6, "ms", None, Limit(5, must_hold=True)).fails
    assert not Figure("", 100.0, "ms", None, Limit(5)).fails


@pytest.mark.skipif(not can_cap(), reason="no control groups can be made here")
async def test_a_process_gets_no_more_than_its_share_of_a_core() -> None:
    counting = (
        "import time\nend = time.monotonic() + 0.4\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    )
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", f"input()\n{counting}", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    with no_more_than(0.2, started.pid):
        output, _ = await started.communicate(b"\n")
    assert float(output) < 0.3
    living = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    with no_more_than(0.2, living.pid):
        pass  # it goes on, without a limit
    await living.communicate(b"\n")


def test_columns_in_which_nothing_stands_are_left_out() -> None:
    assert table(Section("", [Figure("import", 1.7, "s")])).splitlines()[0] == "| measure | product |"


def test_a_limit_can_be_relative_to_the_baseline() -> None:
    assert Figure("turn", 12.0, "ms", 10.0, Ratio(1.2)).met
    assert not Figure("turn", 12.1, "ms", 10.0, Ratio(1.2)).met
    assert not Figure("turn", 12.0, "ms", None, Ratio(1.2)).met


def test_the_bench_fails_where_a_ratio_is_missed_by_more_than_a_tenth() -> None:
    assert not Figure("turn", 10.9, "ms", 10.0, Ratio(1.0)).fails
    assert Figure("turn", 11.1, "ms", 10.0, Ratio(1.0)).fails
    assert not Figure("turns", 9.1, "/s", 10.0, Ratio(least=1.0)).fails
    assert Figure("turns", 8.9, "/s", 10.0, Ratio(least=1.0)).fails


def test_a_limit_that_depends_on_the_machine_fails_nothing() -> None:
    assert not Figure("accept", 50.0, "ms", 10.0, Limit(5)).fails
    assert not Figure("accept", 50.0, "ms", 10.0, wanted=5).fails


def test_what_has_no_limit_is_neither_met_nor_missed() -> None:
    assert Figure("throughput", 78.0, "/s").met is None


def test_the_tables_are_written_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n")
    write(page, "new")
    assert page.read_text() == f"Before.\n{BEGIN}\nnew\n{END}\nAfter.\n"


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("Before.")
    with pytest.raises(ValueError, match="has no lines"):
        write(page, "new")
    assert page.read_text() == "Before."


def test_there_are_marks_in_the_page_that_is_written() -> None:
    page = (ROOT / "docs/performance.md").read_text()
    assert page.count(BEGIN) == page.count(END) == 1


def test_the_answer_says_when_the_tool_ran() -> None:
    asked = [{"role": "user", "content": "write abc"}, {"role": "tool", "content": "Done: 12.345678 abc"}]
    text = answer({"messages": asked}).text
    assert text.endswith(f"abc, {RAN_AT} 12.345678")
    assert ran_at(text) == 12.345678


def test_an_answer_without_a_tool_says_no_time() -> None:
    with pytest.raises(ValueError, match="it ran no tool"):
        ran_at(answer({"messages": [{"role": "user", "content": "tell me about 12.345678"}]}).text)


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
    heads = [line.split("|")[2:4] for line in lines if line.startswith("| measure ")]
    beside_the_agent, beside_others = [" product ", " bare agent "], [" product ", " baseline "]
    assert heads == [
        beside_the_agent,
        [" product ", " SQLite "],
        [" product ", " without "],
        beside_the_agent,
        *[beside_others] * 3,
        *[[" product ", " limit "]] * 2,
        [" bundled server ", ""],
        [" by itself ", ""],
    ]
    assert [line.split("|")[1].strip().split(",")[0] for line in lines[2:5]] == [
        "acknowledged",
        "mention → answer",
        "… with one tool call over stdio",
    ]
    assert len(lines) == 180
    assert [line for line in lines if "→ another has begun it" in line]
