"""Measures the product beside what it is compared with, and prints tables in Markdown.

`python -m bench`: everything. `python -m bench slack`: only the product in Slack beside the bare agent. `… postgres`:
only what it does on PostgreSQL. `… telemetry`: only what traces and metrics cost.

`--write FILE`: put the tables into FILE, too, between its two marks. `--smoke` only shows that each measure runs. Ends
with status 1 where a ratio, or what has to hold on PostgreSQL, is missed by more than a tenth; other figures in their
own unit, which depend on the machine, are only marked.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.contestants import Contestants, Fresh, shared, surroundings
from bench.cores import AROUND, can_pin, move_to
from bench.figures import Section, table
from bench.measures import FULL, SMOKE, Sizes
from bench.run import measure_in_slack, measure_on_postgresql, measure_the_rest, measure_with_telemetry

BEGIN, END = "<!-- measured: written by python -m bench --write -->", "<!-- end of what is measured -->"
_BEGAN = time.monotonic()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("only", nargs="?", choices=["slack", "postgres", "telemetry"], help="measure only this")
    parser.add_argument("--smoke", action="store_true", help="show that each measure runs; the figures mean nothing")
    parser.add_argument("--write", metavar="FILE", type=Path, help="put the tables into this file, too")
    arguments = parser.parse_args()
    machine = _machine()
    sections = asyncio.run((_smoke if arguments.smoke else _full)(arguments.only))
    shown = "\n\n".join([machine, *(f"### {s.title}\n\n{table(s)}" for s in sections)])
    print(shown)
    if arguments.write is not None:
        write(arguments.write, shown)
    missed = [f.what for section in sections for f in section.figures if f.fails]
    if missed and not arguments.smoke:
        sys.exit("Missed by more than a tenth: " + "; ".join(missed))


async def _full(only: str | None) -> Sequence[Section]:
    move_to(AROUND)
    async with surroundings() as around:
        return await _measure(Fresh(around), FULL, only)


async def _smoke(only: str | None) -> Sequence[Section]:
    async with shared() as contestants:
        return await _measure(contestants, SMOKE, only)


async def _measure(contestants: Contestants, sizes: Sizes, only: str | None) -> Sequence[Section]:
    sections = []
    if only in {None, "slack"}:
        sections.append(await measure_in_slack(contestants, sizes, _say))
    if only in {None, "postgres"}:
        sections.append(await measure_on_postgresql(contestants, sizes, _say))
    if only in {None, "telemetry"}:
        sections.append(await measure_with_telemetry(contestants, sizes, _say))
    if only is None:
        sections += await measure_the_rest(contestants, sizes, _say)
    return sections


def _say(what: str) -> None:
    print(f"{time.monotonic() - _BEGAN:4.0f} s … {what}", file=sys.stderr, flush=True)


def write(file: Path, shown: str) -> None:
    """Replace what stands between the marks of a file.

    Raises:
        ValueError: The marks are not there.
    """
    before, begin, rest = file.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{file} has no lines {BEGIN} and {END}")
    file.write_text(f"{before}{BEGIN}\n{shown}\n{END}{after}")


def _machine() -> str:
    """When and where, with what may disturb the figures: the load before the run, and how long the disk takes."""
    cores = "each contestant on one core, the rest on another" if can_pin() else "not bound to cores"
    load = f", load {os.getloadavg()[0]:.1f} before the run" if hasattr(os, "getloadavg") else ""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {_processor()}, {os.cpu_count()} cores ({cores}){load}. "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}. "
        f"An fsync of a few bytes takes {_fsync() * 1000:.2f} ms."
    )


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", described.read_text(), re.MULTILINE) if described.exists() else None
    return found[1] if found else platform.machine()


def _fsync() -> float:
    """Median seconds, where the contestants have their files."""
    seconds = []
    with tempfile.TemporaryFile() as file:
        for _ in range(50):
            file.write(b"a few bytes")
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
