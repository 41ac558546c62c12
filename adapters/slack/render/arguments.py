"""The arguments of a call: a part of them for a card, all of them for the pages of a modal. Literal everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import countOf
from typing import Any

from adapters.slack.render.blocks import Block, fields, flow, line, mrkdwn, plain, preformatted, rich_text, run
from bot.safe_text import (
    MOST_NAMED,
    cut_by_size,
    cut_lines,
    labels,
    visible,
    visible_excerpt,
    widest_in,
    written_arguments,
    written_value,
)

CARD_ARGUMENTS = 10
"""Arguments that a card shows."""
CARD_VALUE = 500
"""Characters of each."""
CARD_LINES = 12
"""Lines of each, since a card's buttons should stay in sight."""
PAGE_CHARACTERS = 12_000
"""Characters on a page of the modal that shows everything."""
_PAGE_BLOCKS = 90
_BOX = 2_700
"""Characters of one box on a page, so that a page holds four."""
_PAIRS = 5
"""Label and value pairs in a section (Slack: 10 fields)."""
_LABEL = 80
_LARGE = 20_000
"""Characters of a value that is broken between lines."""
_NOT_GIVEN = "(not given)"
_WORDS = re.compile(r"[^\W_]+(?: [^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """As much of the arguments as a card shows."""

    pairs: tuple[tuple[str, str], ...]
    """Label and beginning of the value."""
    unseen: str
    """What is not shown, in words; empty when everything is."""


def excerpt(arguments: Mapping[str, Any], most: int = CARD_ARGUMENTS, longest: int = CARD_VALUE) -> Excerpt:
    """The beginning of the first arguments. Raises nothing."""
    shown = {name: _beginning(written_value(value), longest) for name, value in islice(arguments.items(), most)}
    label = labels(shown)
    pairs = tuple((line(label[name], _LABEL), text) for name, (text, _) in shown.items())
    return Excerpt(pairs, _unseen(sum(is_cut for _, is_cut in shown.values()), len(arguments) - len(pairs)))


def edited_excerpt(asked: Mapping[str, Any], approved: Mapping[str, Any]) -> Excerpt:
    """The arguments of a call that was edited: "what was asked → what was approved", changes first."""
    names = dict.fromkeys(islice(chain(approved, asked), 2 * MOST_NAMED))
    looked_at = {name: (_written(asked, name), _written(approved, name)) for name in islice(names, MOST_NAMED)}
    count = len(approved) + len(asked) - countOf(map(approved.__contains__, asked), True)
    changes_first = sorted(looked_at, key=lambda name: looked_at[name][0] == looked_at[name][1])[:CARD_ARGUMENTS]
    label = labels(changes_first)
    half = CARD_VALUE // 2
    pairs, cut = [], 0
    for name in changes_first:
        before, after = looked_at[name]
        (old, old_is_cut), (new, new_is_cut) = _beginning(before, half), _beginning(after, half)
        pairs.append((line(label[name], _LABEL), new if before == after else f"{old} → {new}"))
        cut += old_is_cut or new_is_cut
    return Excerpt(tuple(pairs), _unseen(cut, count - len(pairs)))


def _beginning(text: str, longest: int) -> tuple[str, bool]:
    """At most `longest` characters and about 12 lines of a value, and whether that is not all of it."""
    return visible_excerpt(text, longest, CARD_LINES)


def _written(arguments: Mapping[str, Any], name: str) -> str:
    return written_value(arguments[name]) if name in arguments else _NOT_GIVEN


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


def argument_page(arguments: Mapping[str, Any], page: int) -> tuple[list[Block], int, int]:
    """All arguments, whole, on pages of at most 12,000 characters: the blocks of one page, its number from 0 and how
    many there are, at least one. `page` that does not exist is the nearest that does."""
    pages: list[list[tuple[str, str]]] = [[]]
    room = PAGE_CHARACTERS
    for label, text, size in _parts(arguments):
        needed = len(label) + size
        if pages[-1] and (needed > room or len(pages[-1]) == _PAGE_BLOCKS):
            pages.append([])
            room = PAGE_CHARACTERS
        pages[-1].append((label, text))
        room -= needed
    page = min(max(page, 0), len(pages) - 1)
    blocks = [rich_text(flow([run(label, "bold")]), preformatted(visible(text))) for label, text in pages[page]]
    return blocks or [rich_text(flow([run("There are no arguments.")]))], page, len(pages)


def _parts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Label, text and size of each box: one for a short value, several for a long one."""
    for name, value in written_arguments(arguments):
        first, *rest = list(_cut(value)) or [("(empty)", len("(empty)"))]
        label = line(name, 3 * _LABEL)
        yield label, *first
        yield from ((f"{label} (continued)", text, size) for text, size in rest)


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the characters that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) <= _LARGE:
        yield from ((text, len(text)) for text in cut_lines(visible(value), _BOX))
    else:
        yield from cut_by_size(value, _BOX, widest_in(value), longest=_BOX)


def _unseen(cut: int, left_out: int) -> str:
    parts = []
    if cut:
        parts.append(f"{cut} {'argument is' if cut == 1 else 'arguments are'} shortened")
    if left_out:
        parts.append(f"{left_out} more {'argument is' if left_out == 1 else 'arguments are'} left out")
    return " and ".join(parts)
