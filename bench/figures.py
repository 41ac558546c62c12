"""What came out, and how it is shown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure must not exceed."""

    most: float
    times_baseline: bool = False
    """Whether `most` is a ratio to the baseline rather than in the figure's own unit."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    product: float
    unit: str
    baseline: float | None = None
    limit: Limit | None = None

    @property
    def ratio(self) -> float | None:
        """Product by baseline."""
        return self.product / self.baseline if self.baseline else None

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept; `None`: there is none."""
        if self.limit is None:
            return None
        value = self.ratio if self.limit.times_baseline else self.product
        return value is not None and value <= self.limit.most


def table(figures: Sequence[Figure]) -> str:
    """The figures in Markdown."""
    lines = ["| measure | product | baseline | ratio | at most | met |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join([*lines, *(_line(f) for f in figures)])


def _line(f: Figure) -> str:
    baseline = _amount(f.baseline, f.unit) if f.baseline is not None else "–"
    ratio = f"{f.ratio:.2f} ×" if f.ratio is not None else "–"
    limit, met = "–", "–"
    if f.limit is not None:
        limit = f"{f.limit.most:g} ×" if f.limit.times_baseline else _amount(f.limit.most, f.unit)
        met = "yes" if f.met else "**no**"
    return f"| {f.what} | {_amount(f.product, f.unit)} | {baseline} | {ratio} | {limit} | {met} |"


def _amount(value: float, unit: str) -> str:
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}".strip()


def median_ms(seconds: Sequence[float]) -> float:
    """Median, in milliseconds."""
    return statistics.median(seconds) * 1000


def p99_ms(seconds: Sequence[float]) -> float:
    """The 99th of a hundred, in milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * 0.99))] * 1000
