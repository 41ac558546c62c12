"""What came out, and how it is shown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

NOISE = 0.1
"""By how much of itself a ratio may be missed before the bench fails: two runs of one machine differ by less."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure must not exceed, in its own unit. Missed, it is marked: another machine has other figures."""

    most: float
    must_hold: bool = False
    """Whether the bench fails where it is missed by more than a tenth."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What product by baseline must keep to. It holds on any machine, so that the bench fails where it is missed."""

    most: float = math.inf
    least: float = 0.0

    def met(self, ratio: float) -> bool:
        """Whether it is kept."""
        return self.least <= ratio <= self.most

    def with_noise(self) -> Ratio:
        """What must be kept by a run that is a little unlucky."""
        return Ratio(self.most * (1 + NOISE), self.least * (1 - NOISE))


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table."""

    what: str
    product: float
    unit: str
    baseline: float | None = None
    limit: Limit | Ratio | None = None
    wanted: float | None = None
    """What it is to be in its own unit on the machine of docs/performance.md. Only shown."""

    @property
    def ratio(self) -> float | None:
        """Product by baseline."""
        return self.product / self.baseline if self.baseline else None

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept; `None`: there is none."""
        match self.limit:
            case None:
                return None
            case Limit(most):
                return self.product <= most
            case Ratio() as limit:
                return self.ratio is not None and limit.met(self.ratio)

    @property
    def fails(self) -> bool:
        """Whether what has to be kept is missed by more than noise explains."""
        match self.limit:
            case Ratio() as limit:
                return not replace(self, limit=limit.with_noise()).met
            case Limit(most, must_hold=True):
                return self.product > most * (1 + NOISE)
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Section:
    """Figures that are read together."""

    title: str
    figures: Sequence[Figure]
    baseline: str = "baseline"
    """What the figures are beside, as the head of its column."""
    measured: str = "product"
    """The head of their own."""


def table(section: Section) -> str:
    """The figures in Markdown, without the columns that would be empty."""
    columns = [(head, [of(f) for f in section.figures]) for head, of in _columns(section)]
    columns = [column for column in columns if set(column[1]) != {"–"}]
    heads, rules = [head for head, _ in columns], ["---", *["--:"] * (len(columns) - 1)]
    rows = zip(*(cells for _, cells in columns), strict=True)
    return "\n".join(
        ["| " + " | ".join(heads) + " |", f"|{'|'.join(rules)}|", *(f"| {' | '.join(row)} |" for row in rows)]
    )


def _columns(section: Section) -> list[tuple[str, Callable[[Figure], str]]]:
    return [
        ("measure", lambda f: f.what),
        (section.measured, lambda f: _amount(f.product, f.unit)),
        (section.baseline, lambda f: "–" if f.baseline is None else _amount(f.baseline, f.unit)),
        ("ratio", lambda f: "–" if f.ratio is None else f"{f.ratio:.2f} ×"),
        ("limit", _limit),
        ("wanted", _wanted),
        ("met", lambda f: "–" if f.met is None else "yes" if f.met else "**no**"),
    ]


def _wanted(f: Figure) -> str:
    return "–" if f.wanted is None else f"{'≥' if _more_is_better(f) else '≤'} {f.wanted:g} {f.unit}"


def _limit(f: Figure) -> str:
    match f.limit:
        case None:
            return "–"
        case Limit(most):
            return f"≤ {_amount(most, f.unit)}"
        case Ratio(most, least):
            return f"≥ {least:g} ×" if _more_is_better(f) else f"≤ {most:g} ×"


def _more_is_better(f: Figure) -> bool:
    return isinstance(f.limit, Ratio) and f.limit.least > 0


def _amount(value: float, unit: str) -> str:
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}".strip()


def median_ms(seconds: Sequence[float]) -> float:
    """Median, in milliseconds."""
    return statistics.median(seconds) * 1000


def p99_ms(seconds: Sequence[float]) -> float:
    """The 99th of a hundred, in milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * 0.99))] * 1000
