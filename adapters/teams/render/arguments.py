"""The arguments of a call on the pages of a dialog that shows all of them. Literal everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adapters.shared.arguments import LARGE, LONGEST_LABEL, beginning_of, page_of
from adapters.shared.wording import line
from adapters.teams.render.answers import units
from adapters.teams.render.elements import Element, bold, rich, weight, words
from bot.characters import CleanParts
from bot.safe_text import cut_by_size, cut_lines, visible, written_arguments

PAGE_BYTES = 20 * 1024
"""Of what is on a page of the dialog that shows everything, so that there is space around it."""
_BOX_BYTES = 9 * 1024
_AROUND = 200
"""Bytes that a box takes without its text."""
_ESCAPED = 6
"""Bytes of a character that JSON escapes."""
_MARK = 24
"""Bytes of `⟨U+10FFFF⟩`, and some."""


def argument_page(arguments: Mapping[str, Any], number: int) -> tuple[list[Element], int, int]:
    """All arguments, whole, on pages of at most 20 KB: the elements of one page, its number from 0 and how many there
    are, at least one. A page that does not exist is the nearest that does."""
    page = page_of(_boxes(arguments), number, PAGE_BYTES)
    shown = [_box(label, text) for label, text in page.boxes]
    return shown or [rich(words("There are no arguments."))], page.number, page.count


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """A label and its value, or a part of a long one, and the bytes that they take at most."""
    for name, value in written_arguments(arguments):
        title = line(name, 3 * LONGEST_LABEL)
        shown, others = f"{title}\n", f"{title} (continued)\n"
        around, around_others = (weight(each) + _AROUND for each in (shown, others))
        for text, size in _cut(value):
            yield shown, text, weight(_box(shown, text)) + 2 if len(value) <= LARGE else around + size
            shown, around = others, around_others


def _box(title: str, text: str) -> Element:
    return rich(bold(title), words(visible(text), fontType="Monospace"), spacing="Medium")


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the bytes that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) > LARGE:
        longest = _BOX_BYTES // 2 if value.isascii() else _BOX_BYTES // _ESCAPED
        yield from cut_by_size(value, _BOX_BYTES, _widest_in(value), longest=longest)
    elif value.strip():
        yield from ((text, 0) for text in _fitting(visible(value), _BOX_BYTES - _AROUND))
    else:
        yield beginning_of(value, LONGEST_LABEL)[0], 0


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
