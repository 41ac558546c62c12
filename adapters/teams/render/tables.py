"""Tables of a model → preformatted text, since messages in Teams have no tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

_WIDEST = 80
"""Characters of a line up to which columns are lined up."""


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """The table as lines of text, columns lined up where the lines stay short; the first row is its head."""
    cells = [[cell.replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    if sum(widths) + 3 * len(widths) > _WIDEST:
        widths = [0] * len(widths)
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    ruler = "-+-".join("-" * (width or 3) for width in widths)
    return "\n".join([lines[0], ruler, *lines[1:]])
