"""Answers as Slack messages: a model's Markdown as parts of a rich text, split at Slack's limits, and streamed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from adapters.shared.markdown import BOXES, Run, blocks_in, parser, runs_in, table_as_text
from adapters.slack.render.blocks import (
    LONGEST_TEXT,
    LONGEST_URL,
    MOST_BLOCKS,
    Block,
    divider,
    escape,
    flow,
    link,
    preformatted,
    rich_text,
    run,
)
from bot.safe_text import cut_lines, cut_text, visible

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
    for _, group in groupby(filter(_text_of, elements), key=_kind_and_style):
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


def _kind_and_style(element: Block) -> tuple[str, Any]:
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


# ------------------------------------------------------------------ tables
# Slack's `table` blocks, or preformatted text where they do not fit.
MOST_ROWS = 100
MOST_COLUMNS = 20
"""Columns of a table (Slack)."""
MOST_TABLE_CHARACTERS = 9_500
"""Characters of all cells of a table together (Slack: 10,000)."""


def table_blocks(grid: Grid) -> tuple[Block, ...]:
    """The table as one block, or as several by rows, each with its head; none when it fits into no block."""
    head, *body = grid.rows
    left = MOST_TABLE_CHARACTERS - _size(head)
    if len(head) > MOST_COLUMNS or any(_size(row) > left for row in body) or left < 0:
        return ()
    tables: list[list[tuple[Elements, ...]]] = [[]]
    taken = 0
    for row in body:
        if len(tables[-1]) == MOST_ROWS - 1 or taken + _size(row) > left:
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
    quoted: bool = False


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
class HorizontalRule:
    """A line across."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first row is its head. Every row has as many cells as the first."""

    rows: tuple[tuple[Elements, ...], ...]
    aligns: tuple[str, ...]
    """Alignment of each column: `left`, `center` or `right`."""


Part = Flow | Listing | Code | HorizontalRule | Grid


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
                for part in _parts(child, depth):
                    yield replace(part, quoted=True) if isinstance(part, Flow | Listing) else part
        case "bullet_list" | "ordered_list":
            yield from _listings(node, depth)
        case "table":
            yield _grid(node)
        case _:
            if elements := _inline(node) or joined([run(visible(node.content))]):
                yield Flow(elements)


def _listings(node: SyntaxTreeNode, depth: int) -> Iterator[Part]:
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
            if isinstance(part, Flow) and not part.quoted and not others:
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


# ------------------------------------------------------------------ what does not change any more
_PLAIN_LINE = re.compile(r"[^\W\d_][\w ,;.?!'’\"()%€$–—-]*")
"""The beginning of a line that is words and nothing else: what follows cannot make markup of it."""


def stable(text: str) -> str:
    """The beginning of a text whose rendering cannot change as more is written: its complete lines, and the complete
    words of the last line while that has no markup."""
    lines, newline, last = text.rpartition("\n")
    if not _PLAIN_LINE.fullmatch(last):
        return lines + newline
    words, _, _ = last.rpartition(" ")
    return lines + newline + words


def cut_at_line(text: str, limit: int) -> str:
    """Returns at most `limit` characters of a text, whole lines only."""
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit) + 1]


# -------------------------------------------- finished posts: as few messages as Slack's limits allow
# Nothing is lost: paragraphs break between words, code between lines (and goes on as code), lists between items, tables
# between rows. A table ends its message, because Slack shows it below everything else in it, one for each message.
MOST_CHARACTERS = 12_000
"""Characters in the blocks of one message: Slack refuses somewhat above 13,000, which is documented nowhere."""
_MOST_TABLES = 5
"""Messages that may end in a table; further tables are shown as text, since nobody wants a message for each."""
_SPARE_BLOCKS = 3
"""Blocks left free for what is put above and under an answer."""
_MOST_OFFSET = 100_000
"""The highest number that a list goes on from."""
_PARAGRAPH = "\n\n"
_RUNNING = ("rich_text_section", "rich_text_quote")


class MessageBuilder:
    """Messages being filled with rich text, tables and lines."""

    def __init__(self) -> None:
        self._pages: list[list[Block]] = [[]]
        self._open: list[Block] = []
        """Parts of the rich text that is being filled; it is the next block of the last page."""
        self._gap = ""
        """What separates the last part from one of the same kind after it."""
        self._last = 0
        """Characters of the last part."""
        self._size = 0

    def add(self, part: Block, gap: str) -> None:
        """Add a part of a rich text, on the next page where this one is full."""
        needed = size_of(part)
        self._turn_if_full(needed)
        last = self._open[-1] if self._open else {}
        if part["type"] == last.get("type") and part["type"] in _RUNNING:
            if self._last + needed <= LONGEST_TEXT:
                append(last["elements"], [run(self._gap), *part["elements"]])
                self._last += len(self._gap) + needed
            else:
                self._begin(self._gap[1:], part)
        elif part["type"] == "rich_text_section" and last.get("type") == "rich_text_list":
            self._begin("\n", part)
        else:
            self._begin("", part)
        self._gap = gap

    def _begin(self, before: str, part: Block) -> None:
        if part["type"] in _RUNNING:
            elements: list[Block] = []
            append(elements, [run(before), *part["elements"]])
            part = {**part, "elements": elements}
        self._open.append(part)
        self._last = size_of(self._open[-1])

    def rule(self) -> None:
        """Add a line across, unless the page begins here."""
        self._close()
        if self._pages[-1] and len(self._pages[-1]) + 1 + _SPARE_BLOCKS < MOST_BLOCKS:
            self._pages[-1].append(divider())

    def table(self, block: Block) -> None:
        """Add a table, which is the last thing on its page."""
        elements = (element for row in block["rows"] for cell in row for element in cell["elements"])
        self._turn_if_full(sum(size_of(element) for element in elements))
        self._close()
        self._pages[-1].append(block)
        self._turn()

    def done(self) -> list[list[Block]]:
        """The pages that hold something."""
        self._close()
        return [page for page in self._pages if page]

    def _turn_if_full(self, needed: int) -> None:
        blocks = len(self._pages[-1]) + bool(self._open)
        if self._size + needed + 2 > MOST_CHARACTERS or blocks + _SPARE_BLOCKS >= MOST_BLOCKS:
            self._turn()
        self._size += needed + 2  # what may be put between two parts

    def _turn(self) -> None:
        self._close()
        self._pages.append([])
        self._size = 0

    def _close(self) -> None:
        if self._open:
            self._pages[-1].append(rich_text(*self._open))
            self._open = []


def pages(parts: Iterable[Part]) -> list[list[Block]]:
    """The blocks of each message; empty when there is nothing to say."""
    filled = MessageBuilder()
    tables = 0
    for part in parts:
        blocks = table_blocks(part) if isinstance(part, Grid) else ()
        if isinstance(part, HorizontalRule):
            filled.rule()
        elif blocks and tables + len(blocks) <= _MOST_TABLES:
            tables += len(blocks)
            for block in blocks:
                filled.table(block)
        else:
            for one, gap in _rich_parts(part):
                filled.add(one, gap)
    return filled.done()


def size_of(part: Block) -> int:
    """Characters in a part of a rich text, addresses included."""
    return sum(size(item.get("elements", [item])) for item in part["elements"])


def _rich_parts(part: Part) -> Iterator[tuple[Block, str]]:
    """Each with the gap to a part of the same kind after it: none within a paragraph that had to be cut."""
    match part:
        case Flow(quoted=True):
            for elements in cut(part.elements):
                yield {"type": "rich_text_quote", "elements": list(elements)}, _PARAGRAPH
        case Flow():
            *beginning, last = map(flow, cut(part.elements))
            yield from ((one, "") for one in beginning)
            yield last, part.gap
        case Code():
            yield from ((preformatted(text), "") for text in cut_lines(part.text, LONGEST_TEXT))
        case Listing():
            yield from ((one, _PARAGRAPH) for one in _lists(part))
        case Grid():
            yield from ((preformatted(text), "") for text in cut_lines(as_text(part), LONGEST_TEXT))
        case HorizontalRule():
            return


def _lists(listing: Listing) -> Iterator[Block]:
    """The list in parts; what does not fit into an item follows it as a paragraph."""
    items: list[Elements] = []
    before, taken = listing.offset, 0
    for item in listing.items:
        first, *rest = cut(item)
        needed = size(first)
        if items and taken + needed > LONGEST_TEXT:
            yield _list(listing, items, before)
            before, items, taken = before + len(items), [], 0
        items.append(first)
        taken += needed
        if rest:
            yield _list(listing, items, before)
            before, items, taken = before + len(items), [], 0
            yield from map(flow, rest)
    if items:
        yield _list(listing, items, before)


def _list(listing: Listing, items: Sequence[Elements], before: int) -> Block:
    made: Block = {"type": "rich_text_list", "style": listing.style, "elements": [flow(item) for item in items]}
    if listing.indent:
        made["indent"] = listing.indent
    if listing.style == "ordered" and before:
        made["offset"] = min(before, _MOST_OFFSET)
    if listing.quoted:
        made["border"] = 1
    return made


# ------------------------------------------------------------------ cutting
def cut(elements: Elements) -> list[Elements]:
    """The elements in groups of at most `LONGEST_TEXT` characters. Links stay whole."""
    groups: list[list[Block]] = [[]]
    left = LONGEST_TEXT
    for element in chain.from_iterable(_short_elements(element) for element in elements):
        if size([element]) > left and groups[-1]:
            groups.append([])
            left = LONGEST_TEXT
        groups[-1].append(element)
        left -= size([element])
    return [tuple(group) for group in groups]


def _short_elements(element: Block) -> Iterator[Block]:
    if element["type"] != "text" or len(element["text"]) <= LONGEST_TEXT:
        yield element
    else:
        yield from ({**element, "text": text} for text in cut_text(element["text"], LONGEST_TEXT))


# ------------------------------------------------------ text that is still being written, for streams
# Slack parses it, so it is defused rather than parsed: what is streamed is shown for seconds only. Where that changed
# anything (`file.py` and `evil.example` both get a blank, since either may be a host), the finished post replaces the
# stream with what `markdown` makes of the text as it was written; a stream stays only where it reads as that does.
# Nothing in it may ping, load an image, or hide where a link leads. Nor may anything in it be an address: a stream
# cannot be told not to unfurl, and Slack, which fetches what it unfurls, would carry out whatever a prompt was made to
# write into it.
_LINK = re.compile(
    r"!?\[(?P<label>[^\[\]]*)\]\(\s*(?P<url>(?:https?://|mailto:)[^\s()]+)(?:\s[^()]*)?\)", re.IGNORECASE
)
"""A whole link or image; both are shown as "label (address)"."""
_HALF_LINK = re.compile(r"\](?=[(\[:])")
"""Where Markdown would join a label to an address, wherever the rest of it is. A space in between undoes that."""
_BARE_SITE = re.compile(r"(?<=\w)[.\u3002\uff0e\uff61](?=[^\W\d_]{2}|xn--)", re.IGNORECASE)
"""The dot before what could be the last part of a host: Slack makes links of addresses without a scheme, too."""
_CALL_TO_ALL = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)


def streamable(text: str) -> str:
    """The text, perhaps cut anywhere, safe to append to a stream. Raises nothing.

    Line by line, so that what was streamed stays true: when `a` ends in a newline, `streamable(a + b)` begins with
    `streamable(a)`.
    """
    return "\n".join(map(_line, text.replace("\r\n", "\n").split("\n")))


def _line(text: str) -> str:
    if not text:
        return text
    shown = _LINK.sub(lambda found: f"{found['label']} ({found['url']})".lstrip(), visible(text))
    shown = _BARE_SITE.sub(r"\g<0> ", _HALF_LINK.sub("] ", shown).replace("://", ": //"))
    return escape(_CALL_TO_ALL.sub("@ ", shown))
