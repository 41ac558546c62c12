"""The arguments of a call as blocks: pairs on a card, lines in a list, all of them on the pages of a modal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapters.shared.arguments import LARGE, LONGEST_LABEL, page_of
from adapters.shared.wording import line
from adapters.slack.render.blocks import Block, fields, flow, mrkdwn, plain, preformatted, rich_text, run, sentence
from bot.safe_text import cut_by_size, cut_lines, visible, widest_in, written_arguments

PAGE_CHARACTERS = 12_000
"""Characters on a page of the modal that shows everything."""
_PAGE_BLOCKS = 90
_BOX = 2_700
"""Characters of one box on a page, so that a page holds four."""
_PAIRS = 5
"""Label and value pairs in a section (Slack: 10 fields)."""
_WORDS = re.compile(r"[^\W_]+(?: [^\W_]+)*")


def pair_blocks(pairs: Sequence[tuple[str, str]]) -> list[Block]:
    """Labels and values in two columns."""
    groups = (pairs[start : start + _PAIRS] for start in range(0, len(pairs), _PAIRS))
    return [fields(text for name, value in group for text in (_label(name), plain(value))) for group in groups]


def _label(name: str) -> Block:
    """Bold, where nothing in it could be taken for formatting."""
    return mrkdwn(f"*{name}*") if _WORDS.fullmatch(name) else plain(name)


def summary(pairs: Sequence[tuple[str, str]]) -> list[Block]:
    """The same as elements of a rich text, one line each, where columns would take too much room."""
    return [element for label, value in pairs for element in (run(f"\n{label}: ", "bold"), run(value))]


def argument_page(arguments: Mapping[str, Any], number: int) -> tuple[list[Block], int, int]:
    """All arguments, whole, on pages of at most 12,000 characters: the blocks of one page, its number from 0 and how
    many there are, at least one. A page that does not exist is the nearest that does."""
    boxes = ((label, text, len(label) + size) for label, text, size in _boxes(arguments))
    page = page_of(boxes, number, PAGE_CHARACTERS, _PAGE_BLOCKS)
    blocks = [rich_text(flow([run(label, "bold")]), preformatted(visible(text))) for label, text in page.boxes]
    return blocks or [sentence("There are no arguments.")], page.number, page.count


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Label, text and size of each box: one for a short value, several for a long one."""
    for name, value in written_arguments(arguments):
        first, *rest = list(_cut(value)) or [("(empty)", len("(empty)"))]
        label = line(name, 3 * LONGEST_LABEL)
        yield label, *first
        yield from ((f"{label} (continued)", text, size) for text, size in rest)


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the characters that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) <= LARGE:
        yield from ((text, len(text)) for text in cut_lines(visible(value), _BOX))
    else:
        yield from cut_by_size(value, _BOX, widest_in(value), longest=_BOX)
