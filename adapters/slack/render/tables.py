"""Tables of a model → Slack's `table` blocks, or preformatted text where they do not fit into one."""

from __future__ import annotations

from itertools import zip_longest

from adapters.slack.render.blocks import Block, flow, rich_text, run
from adapters.slack.render.inline import Elements, size, styled, words
from adapters.slack.render.markdown import Grid

MOST_ROWS = 100
MOST_COLUMNS = 20
"""Of a table (Slack)."""
MOST_CHARACTERS = 9_500
"""Of all cells of a table together (Slack: 10,000)."""
_WIDEST = 80
"""Characters of a line up to which columns of preformatted text are lined up."""


def table_blocks(grid: Grid) -> tuple[Block, ...]:
    """The table as one block, or as several by rows, each with its head; none when it fits into no block."""
    head, *body = grid.rows
    room = MOST_CHARACTERS - _size(head)
    if len(head) > MOST_COLUMNS or any(_size(row) > room for row in body) or room < 0:
        return ()
    tables: list[list[tuple[Elements, ...]]] = [[]]
    taken = 0
    for row in body:
        if len(tables[-1]) == MOST_ROWS - 1 or taken + _size(row) > room:
            tables.append([])
            taken = 0
        tables[-1].append(row)
        taken += _size(row)
    return tuple(_table(head, rows, grid.aligns) for rows in tables)


def as_text(grid: Grid) -> str:
    """The table as lines of text, columns lined up where the lines stay short."""
    cells = [[words(cell).replace("\n", " ") for cell in row] for row in grid.rows]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    if sum(widths) + 3 * len(widths) > _WIDEST:
        widths = [0] * len(widths)
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    ruler = "-+-".join("-" * (width or 3) for width in widths)
    return "\n".join([lines[0], ruler, *lines[1:]])


def _size(row: tuple[Elements, ...]) -> int:
    return sum(max(size(cell), 1) for cell in row)


def _table(head: tuple[Elements, ...], rows: list[tuple[Elements, ...]], aligns: tuple[str, ...]) -> Block:
    bold = tuple(styled(cell, "bold") for cell in head)
    return {
        "type": "table",
        "column_settings": [{"align": align, "is_wrapped": True} for align in aligns],
        "rows": [[_cell(cell) for cell in row] for row in (bold, *rows)],
    }


def _cell(elements: Elements) -> Block:
    # A cell may not be empty (Slack).
    return rich_text(flow(elements or [run(" ")]))
