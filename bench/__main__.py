"""`python -m bench`: measure everything and print the table. `--smoke` only shows that each measure runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys

from bench.contestants import Fresh, shared, surroundings
from bench.cores import AROUND, can_pin, move_to
from bench.figures import Figure, table
from bench.measures import FULL, SMOKE
from bench.run import measure

CAPTION = """\
*Product*: Countersign as it is, everything durable (a commit with fsync before a message is acknowledged, checkpoints
and ledger at every step). *Baseline*: what one writes in an afternoon, `bench/baseline.py`: aiohttp, LangGraph's loop,
AsyncSqliteSaver and ChatOpenAI with their defaults but streaming, nothing kept before the acknowledgement, no Slack
library. Both are driven by the same client over HTTP and ask the same scripted model server, which streams its answer
at once. The product's tool is a real MCP server over stdio; the baseline's is a function in its own process."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="show that each measure runs; the figures mean nothing")
    figures = asyncio.run(_smoke() if parser.parse_args().smoke else _full())
    print(f"{_machine()}\n\n{table(figures)}\n\n{CAPTION}")


async def _full() -> list[Figure]:
    move_to(AROUND)
    async with surroundings() as around:
        return await measure(Fresh(around), FULL, _say)


async def _smoke() -> list[Figure]:
    async with shared() as contestants:
        return await measure(contestants, SMOKE, _say)


def _say(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


def _machine() -> str:
    cores = "each contestant on one core, the rest on another" if can_pin() else "not bound to cores"
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores; {cores}."


if __name__ == "__main__":
    main()
