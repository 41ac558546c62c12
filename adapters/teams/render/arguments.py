"""The arguments of a call: a part of them for a card, all of them for the pages of a dialog. Literal everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from operator import countOf
from typing import Any

from adapters.teams.render.answers import units
from adapters.teams.render.elements import Element, Room, bold, line, rich, weight, words
from bot.characters import CleanParts
from bot.safe_text import (
    MOST_NAMED,
    cut_by_size,
    cut_lines,
    labels,
    visible,
    visible_excerpt,
    written_arguments,
    written_value,
)

CARD_ARGUMENTS = 10
"""Arguments that a card shows."""
CARD_VALUE = 500
"""Characters of each."""
CARD_LINES = 12
"""Lines of each, since a card's buttons should stay in sight."""
PAGE_BYTES = 20 * 1024
"""Of what is on a page of the dialog that shows everything, so that there is room around it."""
_BOX_BYTES = 9 * 1024
_AROUND = 200
"""Bytes that a box takes without its text."""
_LABEL = 80
_LARGE = 20_000
"""Characters of a value that is broken between lines."""
_ESCAPED = 6
"""Bytes of a character that JSON escapes."""
_MARK = 24
"""Bytes of `⟨U+10FFFF⟩`, and some."""
_NOT_GIVEN = "(not given)"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """As much of the arguments as a card shows."""

    pairs: tuple[tuple[str, str], ...]
    """Label and beginning of the value."""
    unseen: str
    """What is not shown, in words; empty when everything is."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """Arguments as they were written, not visible yet: their labels and values, by name."""

    labels: Mapping[str, str]
    values: Mapping[str, str]
    left_out: int
    """How many more there are."""


def spelled(arguments: Mapping[str, Any], most: int = CARD_ARGUMENTS) -> Spelled:
    """The first arguments in words. Raises nothing."""
    values = {name: written_value(value) for name, value in islice(arguments.items(), most)}
    return Spelled(labels(values), values, len(arguments) - len(values))


def excerpt(arguments: Spelled, room: Room, longest: int = CARD_VALUE) -> Excerpt:
    """The beginning of those values."""
    shown = {name: _beginning(value, room.of(longest)) for name, value in arguments.values.items()}
    pairs = tuple((room.line(arguments.labels[name], _LABEL), text) for name, (text, _) in shown.items())
    return Excerpt(pairs, _unseen(sum(is_cut for _, is_cut in shown.values()), arguments.left_out))


def edits(asked: Mapping[str, Any], approved: Mapping[str, Any]) -> Callable[[Room], Excerpt]:
    """The arguments of a call that was edited: "what was asked → what was approved", changes first."""
    names = dict.fromkeys(islice(chain(approved, asked), 2 * MOST_NAMED))
    looked_at = {name: (_written(asked, name), _written(approved, name)) for name in islice(names, MOST_NAMED)}
    count = len(approved) + len(asked) - countOf(map(approved.__contains__, asked), True)
    changes_first = sorted(looked_at, key=lambda name: looked_at[name][0] == looked_at[name][1])[:CARD_ARGUMENTS]
    label = labels(changes_first)

    def excerpted(room: Room) -> Excerpt:
        half = room.of(CARD_VALUE // 2)
        pairs, cut = [], 0
        for name in changes_first:
            before, after = looked_at[name]
            (old, old_is_cut), (new, new_is_cut) = _beginning(before, half), _beginning(after, half)
            pairs.append((room.line(label[name], _LABEL), new if before == after else f"{old} → {new}"))
            cut += old_is_cut or new_is_cut
        return Excerpt(tuple(pairs), _unseen(cut, count - len(pairs)))

    return excerpted


def _beginning(text: str, longest: int) -> tuple[str, bool]:
    """At most `longest` characters and about 12 lines of a value, and whether that is not all of it."""
    return visible_excerpt(text, longest, CARD_LINES)


def _written(arguments: Mapping[str, Any], name: str) -> str:
    return written_value(arguments[name]) if name in arguments else _NOT_GIVEN


def argument_page(arguments: Mapping[str, Any], page: int) -> tuple[list[Element], int, int]:
    """All arguments, whole, on pages of at most 20 KB: the elements of one page, its number from 0 and how many there
    are, at least one. `page` that does not exist is the nearest that does."""
    pages: list[list[tuple[str, str]]] = [[]]
    room = PAGE_BYTES
    for title, text, needed in _boxes(arguments):
        if pages[-1] and needed > room:
            pages.append([])
            room = PAGE_BYTES
        pages[-1].append((title, text))
        room -= needed
    page = min(max(page, 0), len(pages) - 1)
    return [_box(*each) for each in pages[page]] or [rich(words("There are no arguments."))], page, len(pages)


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """A label and its value, or a part of a long one, and the bytes that they take at most."""
    for name, value in written_arguments(arguments):
        title = line(name, 3 * _LABEL)
        shown, others = f"{title}\n", f"{title} (continued)\n"
        around, around_others = (weight(each) + _AROUND for each in (shown, others))
        for text, size in _cut(value):
            yield shown, text, weight(_box(shown, text)) + 2 if len(value) <= _LARGE else around + size
            shown, around = others, around_others


def _box(title: str, text: str) -> Element:
    return rich(bold(title), words(visible(text), fontType="Monospace"), spacing="Medium")


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the bytes that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) > _LARGE:
        longest = _BOX_BYTES // 2 if value.isascii() else _BOX_BYTES // _ESCAPED
        yield from cut_by_size(value, _BOX_BYTES, _widest_in(value), longest=longest)
    elif value.strip():
        yield from ((text, 0) for text in _fitting(visible(value), _BOX_BYTES - _AROUND))
    else:
        yield _beginning(value, _LABEL)[0], 0


def _widest_in(text: str) -> Callable[[int, int], int]:
    """Bytes that what stands from one place to another takes at most when it is visible; to be asked from left to
    right."""
    clean = CleanParts(text).is_clean

    def widest(start: int, end: int) -> int:
        if not clean(start, end):
            return _MARK * (end - start)
        part = text[start:end]
        # Blanks at the beginning of a line, and the second of two, become hard ones.
        if part.isascii():
            return len(part) * (_ESCAPED if "  " in part or "\n " in part else 2)
        return units(part) * _ESCAPED

    return widest


def _fitting(text: str, longest: int) -> Iterator[str]:
    for part in cut_lines(text, longest):
        if weight({"inlines": words(part)}) <= _BOX_BYTES:
            yield part
        else:
            yield from _fitting(part, len(part) // 2)


def _unseen(cut: int, left_out: int) -> str:
    parts = []
    if cut:
        parts.append(f"{cut} {'argument is' if cut == 1 else 'arguments are'} shortened")
    if left_out:
        parts.append(f"{left_out} more {'argument is' if left_out == 1 else 'arguments are'} left out")
    return " and ".join(parts)
