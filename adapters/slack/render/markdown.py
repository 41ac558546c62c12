"""A model's Markdown as the parts of a rich text, of any length; `splitting` makes messages of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from adapters.shared.markdown import BOXES, Run, blocks_in, parser, runs_in, table_as_text
from adapters.slack.render.blocks import LONGEST_URL, Block, flow, link, rich_text, run
from bot.safe_text import visible

_PARSER = parser()
_DEEPEST = 8
"""Levels of a list (Slack)."""
Elements = tuple[Block, ...]


def _inline(node: SyntaxTreeNode) -> Elements:
    """What a paragraph, heading or table cell says, in elements whose text is visible and not empty."""
    return joined(element for part in runs_in(node, LONGEST_URL) for element in _elements(part))


def _elements(part: Run) -> Iterator[Block]:
    if not part.url:
        yield run(part.text, *part.styles)
        return
    yield link(part.url, part.text, *part.styles)
    if part.host:
        yield run(f" ({part.host})", *(part.styles - {"code"}))


def joined(elements: Iterable[Block]) -> Elements:
    """The elements without empty ones, neighbours of the same style as one."""
    made: list[Block] = []
    append(made, elements)
    return tuple(made)


def append(made: list[Block], elements: Iterable[Block]) -> None:
    """Add elements to joined ones."""
    for _, group in groupby(filter(_text_of, elements), key=_look):
        first, *rest = group
        if first["type"] != "text":
            made += (first, *rest)
            continue
        last = made[-1] if made else {}
        if last.get("type") == "text" and last.get("style") == first.get("style"):
            made[-1] = {**last, "text": "".join(map(_text_of, (last, first, *rest)))}
        else:
            made.append({**first, "text": "".join(map(_text_of, (first, *rest)))} if rest else first)


def _text_of(element: Block) -> str:
    return str(element["text"])


def _look(element: Block) -> tuple[str, Any]:
    return element["type"], element.get("style")


def styled(elements: Iterable[Block], style: str) -> Elements:
    """The elements, all of them also in this style."""
    return joined({**element, "style": {**element.get("style", {}), style: True}} for element in elements)


def size(elements: Iterable[Block]) -> int:
    """Characters that elements hold: their text and, in links, the address."""
    return sum(len(element["text"]) + len(element.get("url", "")) for element in elements)


def words(elements: Iterable[Block]) -> str:
    """The text of elements, without styles and addresses."""
    return "".join(element["text"] for element in elements)


# --------------------------------------------------------------------------------------------- tables
# Slack's `table` blocks, or preformatted text where they do not fit.


MOST_ROWS = 100
MOST_COLUMNS = 20
"""Of a table (Slack)."""
MOST_CHARACTERS = 9_500
"""Of all cells of a table together (Slack: 10,000)."""


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
    """The table as lines of text."""
    return table_as_text([words(cell) for cell in row] for row in grid.rows)


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


# ------------------------------------------------- documents: the parts of a rich text, of any length


@dataclass(frozen=True, slots=True)
class Flow:
    """A paragraph or a heading."""

    elements: Elements
    gap: str = "\n\n"
    """What separates it from a paragraph after it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Items of a list on one level."""

    items: tuple[Elements, ...]
    style: str
    """`bullet` or `ordered`."""
    indent: int
    offset: int = 0
    """How many numbers come before the first item's."""
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text."""

    text: str


@dataclass(frozen=True, slots=True)
class QuotedParagraph:
    """A paragraph of a quotation."""

    elements: Elements


@dataclass(frozen=True, slots=True)
class HorizontalRule:
    """A line across."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first row is its head. Every row has as many cells as the first."""

    rows: tuple[tuple[Elements, ...], ...]
    aligns: tuple[str, ...]
    """For each column `left`, `center` or `right`."""


Part = Flow | Listing | Code | QuotedParagraph | HorizontalRule | Grid


def parts(text: str) -> tuple[Part, ...]:
    """The parts of a Markdown text, in order. Raises nothing; none is empty."""
    blocks, as_written = blocks_in(text, _PARSER)
    formatted = (part for node in blocks for part in _parts(node, 0))
    return (*formatted, *([Code(as_written)] if as_written else ()))


def _parts(node: SyntaxTreeNode, depth: int) -> Iterator[Part]:
    """`depth`: in how many lists the node is."""
    match node.type:
        case "heading":
            if elements := styled(_inline(node), "bold"):
                yield Flow(elements, gap="\n")
        case "fence" | "code_block":
            if code := visible(node.content.rstrip("\n")):
                yield Code(code)
        case "hr":
            yield HorizontalRule()
        case "blockquote":
            for child in node.children:
                yield from map(_quoted, _parts(child, depth))
        case "bullet_list" | "ordered_list":
            yield from _list(node, depth)
        case "table":
            yield _grid(node)
        case _:
            if elements := _inline(node) or joined([run(visible(node.content))]):
                yield Flow(elements)


def _quoted(part: Part) -> Part:
    match part:
        case Flow():
            return QuotedParagraph(part.elements)
        case Listing():
            return replace(part, quoted=True)
        case _:
            return part


def _list(node: SyntaxTreeNode, depth: int) -> Iterator[Part]:
    """A list, broken off wherever an item holds more than text, since Slack's items are running text alone."""
    ordered = node.type == "ordered_list"
    whole = Listing((), "ordered" if ordered else "bullet", min(depth, _DEEPEST))
    before = max(int(node.attrs.get("start", 1)) - 1, 0) if ordered else 0
    items: list[Elements] = []
    for item in node.children:
        texts, others = _split_item(item, depth)
        items.append(texts)
        if others:
            yield replace(whole, items=tuple(items), offset=before)
            yield from others
            before, items = before + (len(items) if ordered else 0), []
    if items:
        yield replace(whole, items=tuple(items), offset=before)


def _split_item(item: SyntaxTreeNode, depth: int) -> tuple[Elements, list[Part]]:
    """The text that an item begins with, and what comes after it in the item."""
    text: list[Block] = []
    others: list[Part] = []
    for child in item.children:
        for part in _parts(child, depth + 1):
            if isinstance(part, Flow) and not others:
                text += [run("\n"), *part.elements] if text else part.elements
            else:
                others.append(part)
    return _with_box(joined(text) or (run(" "),)), others


def _with_box(elements: Elements) -> Elements:
    """An item of a task list with a box before it."""
    first = elements[0]
    box = BOXES.get(first["text"][:4])
    if box is None or first["type"] != "text" or "style" in first:
        return elements
    return ({**first, "text": box + first["text"][4:]}, *elements[1:])


def _grid(node: SyntaxTreeNode) -> Grid:
    rows = [row for group in node.children for row in group.children]
    head = rows[0].children
    aligns = tuple(str(cell.attrs.get("style", "")).removeprefix("text-align:") or "left" for cell in head)
    return Grid(tuple(tuple(_inline(cell) for cell in row.children) for row in rows), aligns)
