"""Tries how well a language model works in the product, and prints tables in Markdown.

`python -m evals`: the model of the settings (LLM_MODEL and its key, of the environment or .env), or the demo model. The
result is written to data/evals, so that another run can be compared with it. Ends with status 1 where a call that
nobody approved has run, or where a comparison finds something that was right before and is not now, and with 2 where
nothing could be tried.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bot.settings import SettingsError, load_settings
from evals.data import ROOT
from evals.product import StartError
from evals.reading import SET, SetError, load_set
from evals.recording import RecordingError
from evals.results import ResultError, RunResult, compare, injection_table, read_result, table
from evals.running import AskedModel, configured, only, recorded, replayed, run, write_file

BEGIN, END = "<!-- found: written by python -m evals --write -->", "<!-- end of what was found -->"
RESULTS = ROOT / "data" / "evals"


def main(arguments: Sequence[str] | None = None, python: Sequence[str] = (sys.executable,)) -> int:
    """The command; its exit status. `python` begins the command lines of the processes that it starts."""
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="hold only these conversations and injections")
    parser.add_argument("--set", type=Path, default=SET, metavar="FOLDER", help="another set than the project's own")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--record", type=Path, metavar="FILE", help="write the model's answers into this file")
    source.add_argument("--replay", type=Path, metavar="FILE", help="take the answers of this file instead of a model")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the result is written")
    parser.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        metavar="RESULT",
        help="compare with this result; two: only those with each other",
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page, too")
    options = parser.parse_args(arguments)
    if options.compare and len(options.compare) > 2:
        parser.error("--compare takes one result, or two")
    try:
        return _done(options, python)
    except (SetError, SettingsError, StartError, RecordingError, ResultError, ValueError) as error:
        print(f"evals: {error}", file=sys.stderr)
        return 2


def _done(options: argparse.Namespace, python: Sequence[str]) -> int:
    if options.compare and len(options.compare) == 2:
        return _compared(*map(read_result, options.compare))
    old = read_result(options.compare[0]) if options.compare else None
    tried = load_set(options.set)
    if options.only:
        tried = only(tried, options.only)

    def say(line: str) -> None:
        print(f"… {line}", file=sys.stderr, flush=True)

    async def hold() -> RunResult:
        async with _model(options) as model:
            return await run(model, tried, say, options.set, python)

    result = asyncio.run(hold())
    name = f"{result.at[:19].replace(':', '')}-{result.model.replace('/', '-').replace(':', '-')}.json"
    out = options.out or RESULTS / name
    write_file(out, result.written())
    print(f"{shown(result)}\n\nWritten to {out}")
    if options.write is not None:
        write(options.write, shown(result))
    status = _compared(old, result) if old is not None else 0
    if result.has_run_unapproved:
        return 1
    if result.is_without_any_end:
        print("evals: nothing came to an end: look at what is told of each, above", file=sys.stderr)
        return 2
    return status


def _model(options: argparse.Namespace) -> AbstractAsyncContextManager[AskedModel]:
    if options.replay is not None:
        return replayed(options.replay)
    settings = load_settings(ROOT / ".env")
    return configured(settings) if options.record is None else recorded(settings, options.record)


def _compared(old: RunResult, new: RunResult) -> int:
    comparison = compare(old, new)
    print(comparison.shown())
    return 1 if comparison.is_worse else 0


def shown(result: RunResult) -> str:
    """A result in Markdown."""
    said = f"Set {result.fingerprint}, {result.at[:10]}"
    said += f", recorded in {result.recording}." if result.recording else "."
    tables = [table([result])] if result.conversations else []
    tables += [injection_table([result])] if result.injections else []
    return "\n\n".join([said, *tables])


def write(file: Path, tables: str) -> None:
    """Replace what stands between the marks of a page. Raises `ValueError` where they are not there."""
    before, begin, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{file} has no lines {BEGIN} and {END}")
    file.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
