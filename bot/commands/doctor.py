"""`doctor`: whether all that an installation needs is there. It changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from io import TextIOWrapper
from typing import TextIO

from bot.findings import Finding, Health
from bot.safe_text import visible

_MARKS = {Health.FINE: "fine", Health.DOUBTFUL: "warning", Health.WRONG: "WRONG"}
LONGEST_LINE = 600
"""Characters; what a server says of itself may be longer."""


def report(findings: Sequence[Finding], out: TextIO, *, as_json: bool) -> int:
    """Write what was found; 1 when something is wrong. A warning alone is not."""
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # what is found is to be read where there are no such letters, too
    write = _as_json if as_json else _as_lines
    write(findings, out)
    return 1 if any(each.status is Health.WRONG for each in findings) else 0


def _as_json(findings: Sequence[Finding], out: TextIO) -> None:
    counts = {status.value: sum(each.status is status for each in findings) for status in Health}
    said = {"findings": [asdict(each) for each in findings], "counts": counts}
    out.write(json.dumps(said, indent=2) + "\n")


def _as_lines(findings: Sequence[Finding], out: TextIO) -> None:
    width = max((len(each.what) for each in findings), default=0)
    for each in findings:
        out.write(f"{_MARKS[each.status]:7}  {each.what:{width}}  {_line(each.where)}\n")
        if each.remedy:
            out.write(f"{'':7}  {'':{width}}  → {_line(each.remedy)}\n")
    wrong, doubtful = (sum(each.status is status for each in findings) for status in (Health.WRONG, Health.DOUBTFUL))
    out.write(f"{len(findings)} looked at, {wrong} wrong, {doubtful} with a warning.\n")


def _line(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
