"""The arguments of a call: a part of them for a card, all of them for the pages of a modal. Literal everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adapters.slack.render.blocks import Block, fields, flow, mrkdwn, plain, preformatted, rich_text, run
from adapters.slack.render.splitting import cut_lines
from adapters.slack.render.words import line
from bot.safe_text import argument_lines, labels, shorten

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
_COUNT = len("… (1,000,000 more characters)")
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
    label = labels(arguments)
    values = _values(dict(islice(arguments.items(), most)))
    pairs = tuple((line(label[name], _LABEL), beginning(value, longest)) for name, value in values.items())
    cut = sum(_is_cut(value, longest) for value in values.values())
    return Excerpt(pairs, _unseen(cut, len(arguments) - len(pairs)))


def edited_excerpt(asked: Mapping[str, Any], approved: Mapping[str, Any]) -> Excerpt:
    """The arguments of a call that was edited: "what was asked → what was approved", changes first."""
    before, after = _values(asked), _values(approved)
    names = sorted(dict.fromkeys([*after, *before]), key=lambda name: before.get(name) == after.get(name))
    label = labels(names)
    half = CARD_VALUE // 2
    pairs, cut = [], 0
    for name in names[:CARD_ARGUMENTS]:
        old, new = before.get(name, _NOT_GIVEN), after.get(name, _NOT_GIVEN)
        change = beginning(new, half) if old == new else f"{beginning(old, half)} → {beginning(new, half)}"
        pairs.append((line(label[name], _LABEL), change))
        cut += _is_cut(old, half) or _is_cut(new, half)
    return Excerpt(tuple(pairs), _unseen(cut, len(names) - len(pairs)))


def beginning(text: str, longest: int) -> str:
    """At most `longest` characters and about 12 lines, with the count of what is left out; never empty."""
    if not text.strip():
        return f"({len(text)} blanks)" if text else "(empty)"
    lines = text.split("\n", CARD_LINES)
    if len(lines) > CARD_LINES:
        longest = min(longest, len(text) - len(lines[-1]) + _COUNT)
    return shorten(text, longest)


def _is_cut(text: str, longest: int) -> bool:
    return len(text) > longest or text.count("\n") >= CARD_LINES


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


def argument_pages(arguments: Mapping[str, Any]) -> list[list[Block]]:
    """All arguments, whole: blocks for each page of at most 12,000 characters. At least one page."""
    pages: list[list[Block]] = [[]]
    room = PAGE_CHARACTERS
    for label, text in _shown_parts(arguments):
        needed = len(label) + len(text)
        if pages[-1] and (needed > room or len(pages[-1]) == _PAGE_BLOCKS):
            pages.append([])
            room = PAGE_CHARACTERS
        pages[-1].append(rich_text(flow([run(label, "bold")]), preformatted(text)))
        room -= needed
    return pages if pages[0] else [[rich_text(flow([run("There are no arguments.")]))]]


def _values(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, (_, value) in zip(arguments, argument_lines(arguments), strict=True)}


def _shown_parts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of each box: one for a short value, several for a long one."""
    for name, value in argument_lines(arguments):
        first, *rest = list(cut_lines(value, _BOX)) or ["(empty)"]
        label = line(name, 3 * _LABEL)
        yield label, first
        yield from ((f"{label} (continued)", text) for text in rest)


def _unseen(cut: int, left_out: int) -> str:
    parts = []
    if cut:
        parts.append(f"{cut} {'argument is' if cut == 1 else 'arguments are'} shortened")
    if left_out:
        parts.append(f"{left_out} more {'argument is' if left_out == 1 else 'arguments are'} left out")
    return " and ".join(parts)
