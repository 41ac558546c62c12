"""A model's Markdown → the parts of a rich text, of any length; `splitting` makes Slack messages of them.

CommonMark with tables and strike-through. HTML is text, images are links, and Slack's own markup means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from adapters.shared.markdown_cost import affordable
from adapters.slack.render.blocks import Block, run
from adapters.slack.render.inline import Elements, inline, joined, styled
from bot.safe_text import visible

_DEEPEST_NESTING = 60
"""Levels of Markdown; what is nested deeper the parser would drop."""
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST_NESTING}).enable(["table", "strikethrough"])
_DEEPEST = 8
"""Levels of a list (Slack)."""
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


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
class Quoted:
    """A paragraph of a quotation."""

    elements: Elements


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first row is its head. Every row has as many cells as the first."""

    rows: tuple[tuple[Elements, ...], ...]
    aligns: tuple[str, ...]
    """For each column `left`, `center` or `right`."""


Part = Flow | Listing | Code | Quoted | Rule | Grid


def parts(text: str) -> tuple[Part, ...]:
    """The parts of a Markdown text, in order. Raises nothing; none is empty.

    Text that is nested beyond reason, and what comes after as much as can be formatted in time, is shown as it was
    written.
    """
    shown = visible(text)
    end = affordable(shown)
    tokens = _PARSER.parse(shown[:end])
    if any(token.level >= _DEEPEST_NESTING - 1 for token in tokens):
        return (Code(shown),)
    formatted = (part for node in SyntaxTreeNode(tokens).children for part in _parts(node, 0))
    as_written = shown[end:].strip("\n")
    return (*formatted, *([Code(as_written)] if as_written.strip() else ()))


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
            yield Rule()
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


def _inline(node: SyntaxTreeNode) -> Elements:
    return joined(element for child in node.children for element in inline(child))


def _quoted(part: Part) -> Part:
    match part:
        case Flow():
            return Quoted(part.elements)
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
    box = _BOXES.get(first["text"][:4])
    if box is None or first["type"] != "text" or "style" in first:
        return elements
    return ({**first, "text": box + first["text"][4:]}, *elements[1:])


def _grid(node: SyntaxTreeNode) -> Grid:
    rows = [row for group in node.children for row in group.children]
    head = rows[0].children
    aligns = tuple(str(cell.attrs.get("style", "")).removeprefix("text-align:") or "left" for cell in head)
    return Grid(tuple(tuple(_inline(cell) for cell in row.children) for row in rows), aligns)
