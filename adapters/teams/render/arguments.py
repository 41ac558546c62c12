"""The arguments of a call: a part of them for a card, all of them for the pages of a dialog. Literal everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adapters.teams.render.elements import Element, bold, rich, words
from adapters.teams.render.room import Room, weight
from adapters.teams.render.splitting import cut_lines
from adapters.teams.render.text import line
from bot.safe_text import argument_lines, labels, shorten

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
_COUNT = len("… (1,000,000 more characters)")
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
    """Arguments in words: their labels and their values, whole and visible, by name."""

    labels: Mapping[str, str]
    values: Mapping[str, str]


def spelled(arguments: Mapping[str, Any], most: int = CARD_ARGUMENTS) -> Spelled:
    """The arguments in words; all labels, and the values of the first. Raises nothing."""
    return Spelled(labels(arguments), _values(dict(islice(arguments.items(), most))))


def excerpt(arguments: Spelled, room: Room, longest: int = CARD_VALUE) -> Excerpt:
    """The beginning of those values."""
    longest, values = room.of(longest), arguments.values
    pairs = tuple((room.line(arguments.labels[name], _LABEL), beginning(values[name], longest)) for name in values)
    cut = sum(_is_cut(value, longest) for value in values.values())
    return Excerpt(pairs, _unseen(cut, len(arguments.labels) - len(pairs)))


def edits(asked: Mapping[str, Any], approved: Mapping[str, Any]) -> Callable[[Room], Excerpt]:
    """The arguments of a call that was edited: "what was asked → what was approved", changes first."""
    before, after = _values(asked), _values(approved)
    names = sorted(dict.fromkeys([*after, *before]), key=lambda name: before.get(name) == after.get(name))
    label = labels(names)

    def excerpted(room: Room) -> Excerpt:
        half = room.of(CARD_VALUE // 2)
        pairs, cut = [], 0
        for name in names[:CARD_ARGUMENTS]:
            old, new = before.get(name, _NOT_GIVEN), after.get(name, _NOT_GIVEN)
            change = beginning(new, half) if old == new else f"{beginning(old, half)} → {beginning(new, half)}"
            pairs.append((room.line(label[name], _LABEL), change))
            cut += _is_cut(old, half) or _is_cut(new, half)
        return Excerpt(tuple(pairs), _unseen(cut, len(names) - len(pairs)))

    return excerpted


def beginning(text: str, longest: int) -> str:
    """At most `longest` characters and about 12 lines, with the count of what is left out; never empty."""
    if not text.strip():
        return f"({len(text)} blanks)" if text else "(empty)"
    lines = text.split("\n", CARD_LINES)
    if len(lines) > CARD_LINES:
        longest = min(longest, len(text) - len(lines[-1]) + _COUNT)
    return shorten(text, longest)


def argument_pages(arguments: Mapping[str, Any]) -> list[list[Element]]:
    """All arguments, whole: elements for each page of at most 20 KB. At least one page."""
    pages: list[list[Element]] = [[]]
    room = PAGE_BYTES
    for element in _boxes(arguments):
        needed = weight(element) + 2
        if pages[-1] and needed > room:
            pages.append([])
            room = PAGE_BYTES
        pages[-1].append(element)
        room -= needed
    return pages if pages[0] else [[rich(words("There are no arguments."))]]


def _boxes(arguments: Mapping[str, Any]) -> Iterator[Element]:
    """A label and its value, or a part of a long one."""
    for name, value in argument_lines(arguments):
        title = line(name, 3 * _LABEL)
        for number, text in enumerate(_cut(value)):
            shown = f"{title} (continued)\n" if number else f"{title}\n"
            yield rich(bold(shown), words(text, fontType="Monospace"), spacing="Medium")


def _cut(value: str) -> Iterator[str]:
    """The value in parts that fit into a box, however many bytes its characters take."""
    yield from _fitting(value, _BOX_BYTES - _AROUND) if value.strip() else (beginning(value, _LABEL),)


def _fitting(text: str, longest: int) -> Iterator[str]:
    for part in cut_lines(text, longest):
        if weight({"inlines": words(part)}) <= _BOX_BYTES:
            yield part
        else:
            yield from _fitting(part, len(part) // 2)


def _is_cut(text: str, longest: int) -> bool:
    return len(text) > longest or text.count("\n") >= CARD_LINES


def _values(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, (_, value) in zip(arguments, argument_lines(arguments), strict=True)}


def _unseen(cut: int, left_out: int) -> str:
    parts = []
    if cut:
        parts.append(f"{cut} {'argument is' if cut == 1 else 'arguments are'} shortened")
    if left_out:
        parts.append(f"{left_out} more {'argument is' if left_out == 1 else 'arguments are'} left out")
    return " and ".join(parts)
