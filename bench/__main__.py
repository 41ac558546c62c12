"""`python -m bench`: measure everything and print the table. `--quick` only shows that it runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys

from bench.contestants import model_server
from bench.cores import AROUND, can_pin, move_to
from bench.figures import table
from bench.measures import FULL, QUICK, Sizes
from bench.run import measure

CAPTION = """\
*House*: Countersign as it is, everything durable (a commit with fsync before a message is acknowledged, checkpoints
and ledger at every step). *Baseline*: what one writes in an afternoon, `bench/baseline.py`: aiohttp, LangGraph's loop,
AsyncSqliteSaver and ChatOpenAI with their defaults but streaming, nothing kept before the acknowledgement, no Slack
library. Both are driven by the same client over HTTP and ask the same scripted model server, which streams its answer
at once. The house's tool is a real MCP server over stdio; the baseline's is a function in its own process."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it runs; the figures mean nothing")
    sizes = QUICK if parser.parse_args().quick else FULL
    move_to(AROUND)
    asyncio.run(_run(sizes))


async def _run(sizes: Sizes) -> None:
    async with model_server() as model_url:
        figures = await measure(model_url, sizes, lambda what: print(f"… {what}", file=sys.stderr, flush=True))
    print(f"{_machine()}\n\n{table(figures)}\n\n{CAPTION}")


def _machine() -> str:
    cores = "each contestant on one core, the rest on another" if can_pin() else "not bound to cores"
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores; {cores}."


if __name__ == "__main__":
    main()
