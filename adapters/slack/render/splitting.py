"""Answers as Slack messages: text that is still being written, and finished text split at Slack's limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from adapters.slack.render.blocks import (
    LONGEST_TEXT,
    MOST_BLOCKS,
    Block,
    divider,
    escape,
    flow,
    preformatted,
    rich_text,
    run,
)
from adapters.slack.render.markdown import (
    Code,
    Elements,
    Flow,
    Grid,
    HorizontalRule,
    Listing,
    Part,
    QuotedParagraph,
    append,
    as_text,
    size,
    table_blocks,
)
from bot.safe_text import cut_lines, cut_text, visible

_PLAIN_LINE = re.compile(r"[^\W\d_][\w ,;.?!'’\"()%€$–—-]*")
"""The beginning of a line that is words and nothing else: what follows cannot make markup of it."""


def stable(text: str) -> str:
    """The beginning of a text whose look cannot change as more is written: its complete lines, and the complete words
    of the last line while that has no markup."""
    lines, newline, last = text.rpartition("\n")
    if not _PLAIN_LINE.fullmatch(last):
        return lines + newline
    words, _, _ = last.rpartition(" ")
    return lines + newline + words


def cut_at_line(text: str, limit: int) -> str:
    """At most `limit` characters of a text, whole lines only."""
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit) + 1]


# -------------------------------------------- finished posts: as few messages as Slack's limits allow
# Nothing is lost: paragraphs break between words, code between lines (and goes on as code), lists between items, tables
# between rows. A table ends its message, because Slack shows it below everything else in it, one for each message.

MOST_CHARACTERS = 12_000
"""Characters in the blocks of one message: Slack refuses somewhat above 13,000, which is documented nowhere."""
_MOST_TABLES = 5
"""Messages that may end in a table; further tables are shown as text, since nobody wants a message for each."""
_SPARE_BLOCKS = 2
"""Blocks left free for what is put under an answer."""
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
        self._make_room(needed)
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
        self._make_room(sum(size_of(element) for row in block["rows"] for cell in row for element in cell["elements"]))
        self._close()
        self._pages[-1].append(block)
        self._turn()

    def done(self) -> list[list[Block]]:
        """The pages that hold something."""
        self._close()
        return [page for page in self._pages if page]

    def _make_room(self, needed: int) -> None:
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
        case Flow():
            *beginning, last = map(flow, cut(part.elements))
            yield from ((one, "") for one in beginning)
            yield last, part.gap
        case QuotedParagraph():
            for elements in cut(part.elements):
                yield {"type": "rich_text_quote", "elements": list(elements)}, _PARAGRAPH
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


# ------------------------------------------------------------------------------------------------ cutting
def cut(elements: Elements, longest: int = LONGEST_TEXT) -> list[Elements]:
    """The elements in groups of at most `longest` characters. Links stay whole."""
    groups: list[list[Block]] = [[]]
    room = longest
    for element in chain.from_iterable(_short_elements(element, longest) for element in elements):
        if size([element]) > room and groups[-1]:
            groups.append([])
            room = longest
        groups[-1].append(element)
        room -= size([element])
    return [tuple(group) for group in groups]


def _short_elements(element: Block, longest: int) -> Iterator[Block]:
    if element["type"] != "text" or len(element["text"]) <= longest:
        yield element
    else:
        yield from ({**element, "text": text} for text in cut_text(element["text"], longest))


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
