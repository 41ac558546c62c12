"""The arguments of a call for people: a part of them for a card, all of them on the pages of a dialog. Literal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from operator import countOf
from typing import Any

from adapters.shared.wording import WHOLE, Space, call_name
from bot.card_masks import fingerprint_in_words
from bot.domain import ApprovalView, ClarificationView
from bot.safe_text import MOST_NAMED, labels, visible_excerpt, written_value

CARD_ARGUMENTS = 10
"""Arguments that a card shows."""
CARD_VALUE = 500
"""Characters of each."""
CARD_LINES = 12
"""Lines of each, since a card's buttons should stay in sight."""
LONGEST_ARGUMENT_NAME = 80
_ASKED_IN_ARGUMENTS = 5
"""Arguments of the call in whose course a tool asks, on one line beside the question."""
_ASKED_IN_VALUE = 120
"""Characters of each."""
_ASKED_IN = 500
"""Characters of all."""
LARGE = 20_000
"""Characters of a value that is broken between lines; a longer one is broken as it comes."""
_NOT_GIVEN = "(not given)"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of the arguments that a card shows."""

    pairs: tuple[tuple[str, str], ...]
    """Label and beginning of the value."""
    unseen: str
    """What is not shown, in words; empty when everything is."""


Excerpts = Callable[[Space], Excerpt]
"""Makes an excerpt for a space. What does not depend on the space is worked out before."""


def excerpt(arguments: Mapping[str, Any], most: int = CARD_ARGUMENTS, longest: int = CARD_VALUE) -> Excerpt:
    """Returns the beginning, `longest` characters each, of the first `most` arguments. Raises nothing."""
    return excerpts(arguments, most, longest)(WHOLE)


def excerpts(arguments: Mapping[str, Any], most: int = CARD_ARGUMENTS, longest: int = CARD_VALUE) -> Excerpts:
    """Returns what makes `excerpt` for any space."""
    values = {name: written_value(value) for name, value in islice(arguments.items(), most)}
    label = labels(values)

    def within(space: Space) -> Excerpt:
        shown = {name: beginning_of(value, space.of(longest)) for name, value in values.items()}
        pairs = tuple((space.line(label[name], LONGEST_ARGUMENT_NAME), text) for name, (text, _) in shown.items())
        return Excerpt(pairs, _unseen(sum(is_cut for _, is_cut in shown.values()), len(arguments) - len(values)))

    return within


def excerpts_of_approval(view: ApprovalView) -> Excerpts:
    """Returns what makes the excerpt for an approval's card: of a call that was edited, what was asked → what it
    was changed to, changes first."""
    if view.asked_arguments is None or view.status == "pending":
        return excerpts(view.arguments)
    asked, approved = view.asked_arguments, view.arguments
    names = dict.fromkeys(islice(chain(approved, asked), 2 * MOST_NAMED))
    both = {name: (_written(asked, name), _written(approved, name)) for name in islice(names, MOST_NAMED)}
    count = len(approved) + len(asked) - countOf(map(approved.__contains__, asked), True)
    changes_first = sorted(both, key=lambda name: both[name][0] == both[name][1])[:CARD_ARGUMENTS]
    label = labels(changes_first)

    def within(space: Space) -> Excerpt:
        half = space.of(CARD_VALUE // 2)
        pairs, cut = [], 0
        for name in changes_first:
            before, after = both[name]
            (old, old_is_cut), (new, new_is_cut) = beginning_of(before, half), beginning_of(after, half)
            pairs.append((space.line(label[name], LONGEST_ARGUMENT_NAME), new if before == after else f"{old} → {new}"))
            cut += old_is_cut or new_is_cut
        return Excerpt(tuple(pairs), _unseen(cut, count - len(pairs)))

    return within


def call_asked_in(view: ClarificationView) -> Callable[[Space], str]:
    """Returns what says, within a space, in the middle of which call a tool server asks, with what tells that call from
    every other; empty where the model asks, or that is not known."""
    shown = excerpts(view.arguments, _ASKED_IN_ARGUMENTS, _ASKED_IN_VALUE)

    def within(space: Space) -> str:
        if not view.tool:
            return ""
        part = shown(space)
        pairs = ", ".join(f"{name} {value}" for name, value in part.pairs)
        call = call_name(view.server, view.tool) + (f" ({pairs})" if pairs else "")
        unseen = f"{view.unread:,} characters of arguments" if view.unread else part.unseen
        told = [space.line(f"It asks in the middle of this call: {call}", _ASKED_IN) + "."]
        told += [f"Not whole here: {unseen}."] if unseen else []
        return " ".join([*told, fingerprint_in_words(view)]).strip()

    return within


def beginning_of(text: str, longest: int) -> tuple[str, bool]:
    """Returns at most `longest` characters and about 12 lines of a value, and whether that is not all of it."""
    return visible_excerpt(text, longest, CARD_LINES)


@dataclass(frozen=True, slots=True)
class ArgumentPage:
    """One of the pages that show all arguments, whole."""

    boxes: tuple[tuple[str, str], ...]
    """Label and text, which is not `visible` yet; none when there are no arguments."""
    number: int
    """Number of the page, from 0."""
    count: int
    """How many pages there are, at least one."""


def page_of(
    boxes: Iterable[tuple[str, str, int]], number: int, most: int, most_boxes: int | None = None
) -> ArgumentPage:
    """Returns a page; the nearest that there is, where `number` is none.

    Args:
        boxes: label, text, and the size of both.
        most: the size of a page, unless one box alone is larger.
        most_boxes: how many a page holds at most; `None`: any number.
    """
    pages: list[list[tuple[str, str]]] = [[]]
    left = most
    for label, text, size in boxes:
        if pages[-1] and (size > left or len(pages[-1]) == most_boxes):
            pages.append([])
            left = most
        pages[-1].append((label, text))
        left -= size
    number = min(max(number, 0), len(pages) - 1)
    return ArgumentPage(tuple(pages[number]), number, len(pages))


def _written(arguments: Mapping[str, Any], name: str) -> str:
    return written_value(arguments[name]) if name in arguments else _NOT_GIVEN


def _unseen(cut: int, left_out: int) -> str:
    parts = []
    if cut:
        parts.append(f"{cut} {'argument is' if cut == 1 else 'arguments are'} shortened")
    if left_out:
        parts.append(f"{left_out} more {'argument is' if left_out == 1 else 'arguments are'} left out")
    return " and ".join(parts)
