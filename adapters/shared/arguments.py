"""The arguments of a call for people: a part of them for a card, all of them on the pages of a dialog. Literal."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import countOf
from typing import Any

from adapters.shared.wording import LONGEST_HEADING, WHOLE, Space, Titled, call_name, is_in_title
from bot.card_masks import fingerprint_in_words
from bot.dates import number_in_words
from bot.domain import ApprovalView, ClarificationView
from bot.readings import PAIRS, ReadableLine, change_in_words, main_value, readings
from bot.safe_text import MOST_NAMED, visible_excerpt, written_value
from graph.presentation import NOTHING_KNOWN, CallPresentation
from translations import gettext as _
from translations import ngettext

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


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of the arguments that a card shows."""

    pairs: tuple[tuple[str, str], ...]
    """Label and beginning of the value, as people read it."""
    unseen: str
    """What is hidden, counted, in words ("512 characters hidden"); empty when nothing is."""
    unchanged: int = 0
    """Arguments that are left out since an edit left them as they were."""
    only_ids: bool = False
    """Whether nothing is hidden but ids, which are shown by what they stand for."""
    source: str = ""
    """The tool that said what the id stands for of which the title tells, in words; empty where a pair says it."""


Excerpts = Callable[[Space], Excerpt]
"""Makes an excerpt for a space. What does not depend on the space is worked out before."""


def excerpt(
    arguments: Mapping[str, Any],
    most: int = CARD_ARGUMENTS,
    longest: int = CARD_VALUE,
    presentation: CallPresentation = NOTHING_KNOWN,
) -> Excerpt:
    """Returns the beginning, `longest` characters each, of the first `most` lines that show arguments. Raises
    nothing."""
    return excerpts(arguments, most, longest, presentation)(WHOLE)


def excerpts(
    arguments: Mapping[str, Any],
    most: int = CARD_ARGUMENTS,
    longest: int = CARD_VALUE,
    presentation: CallPresentation = NOTHING_KNOWN,
    *,
    below: Titled | None = None,
) -> Excerpts:
    """Returns what makes `excerpt` for any space.

    Args:
        presentation: how they are read (`bot.readings`).
        below: the call below whose title they stand: what that has in full is not shown once more.
    """
    shown = list(islice(readings(arguments, presentation), most))
    left_out = len(arguments) - sum(len(each.names) for each in shown)
    main, value = presentation.main, main_value(arguments, presentation)
    known = presentation.known_in(arguments).get(main)
    titling = [each for each in shown if each.names == (main,) and (known is not None or each.text == value)]

    def within(space: Space) -> Excerpt:
        in_title = titling if value and below is not None and is_in_title(below, value, space) else []
        listed = [each for each in shown if each not in in_title]
        cut = [beginning_of(each.text, space.of(longest)) for each in listed]
        pairs = tuple(
            (space.line(each.label, LONGEST_ARGUMENT_NAME), text) for each, (text, __) in zip(listed, cut, strict=True)
        )
        hidden, ids = sum(count for __, count in cut), [each.hidden for each in shown if each.hidden]
        told = hidden_in_words(hidden, left_out, ids)
        source = _from(known.source, space) if in_title and known is not None else ""
        return Excerpt(pairs, told, only_ids=bool(ids) and not hidden and not left_out, source=source)

    return within


def _from(source: str, space: Space) -> str:
    return _("Read from {source}").format(source=space.line(source, LONGEST_HEADING))


def excerpts_of_approval(view: ApprovalView, *, below_title: bool = False) -> Excerpts:
    """Returns what makes the excerpt for an approval's card: of a call that was edited, what was asked → what it
    was changed to; what was left as it was is counted. `below_title`: whether its title stands above."""
    if view.asked_arguments is None or view.status == "pending":
        return excerpts(view.arguments, presentation=view.presentation, below=view if below_title else None)
    asked, approved = view.asked_arguments, view.arguments
    names = list(islice(dict.fromkeys(chain(approved, asked)), 2 * MOST_NAMED))
    changed = [name for name in names if not _is_same(asked, approved, name)]
    count = len(approved) + len(asked) - countOf(map(approved.__contains__, asked), True)
    before, after = _both_by_name(asked, approved, changed, view.presentation)
    lines: list[tuple[ReadableLine | None, ReadableLine | None]] = []
    for name in changed:
        line = before.get(name), after.get(name)
        if line not in lines:
            lines.append(line)
        if len(lines) > CARD_ARGUMENTS:
            break
    shown = lines[:CARD_ARGUMENTS]
    seen = {name for line in shown for each in line if each is not None for name in each.names}
    left_out = len([name for name in changed if name not in seen]) + max(0, count - len(names))
    unchanged = max(0, count - len(seen) - left_out)

    ids = [each.hidden for line in shown for each in line if each is not None and each.hidden]

    def within(space: Space) -> Excerpt:
        pairs, hidden = [], 0
        for old, new in shown:
            text, unseen = _changed(old, new, space.of(CARD_VALUE // 2))
            label = (new or old or _NOTHING).label
            pairs.append((space.line(label, LONGEST_ARGUMENT_NAME), text))
            hidden += unseen
        told = hidden_in_words(hidden, left_out, ids)
        return Excerpt(tuple(pairs), told, unchanged, only_ids=bool(ids) and not hidden and not left_out)

    return within


_NOTHING = ReadableLine((), "", "", "")


def _both_by_name(
    asked: Mapping[str, Any], approved: Mapping[str, Any], changed: Sequence[str], presentation: CallPresentation
) -> tuple[dict[str, ReadableLine], dict[str, ReadableLine]]:
    """The lines that show these arguments before and after. The ends of a span that is only on one of the two sides
    are told apart: an end that stays would seem to be gone."""
    before, after = (_by_name(each, changed, presentation) for each in (asked, approved))
    if _spans_in(before) != _spans_in(after):
        before, after = (
            {name: _alone(name, side, presentation) for name in changed[: 2 * CARD_ARGUMENTS] if name in side}
            for side in (asked, approved)
        )
    return before, after


def _spans_in(lines: Mapping[str, ReadableLine]) -> set[tuple[str, ...]]:
    return {each.names for each in lines.values() if len(each.names) > 1}


def _alone(name: str, arguments: Mapping[str, Any], presentation: CallPresentation) -> ReadableLine:
    return next(readings({name: arguments[name]}, presentation))


def _by_name(
    arguments: Mapping[str, Any], changed: Sequence[str], presentation: CallPresentation
) -> dict[str, ReadableLine]:
    """The lines that show these arguments, and what is on one line with them."""
    wanted = {*changed[: 2 * CARD_ARGUMENTS]}
    pairs = [name for pair in PAIRS if wanted & {*pair} for name in pair]
    part = {name: value for name, value in arguments.items() if name in wanted or name in pairs}
    return {name: each for each in readings(part, presentation) for name in each.names}


def _is_same(asked: Mapping[str, Any], approved: Mapping[str, Any], name: str) -> bool:
    return name in asked and name in approved and is_same_value(asked[name], approved[name])


def is_same_value(one: Any, other: Any) -> bool:
    """Returns whether two JSON values are written alike: 1, 1.0 and true are not."""
    try:
        # Written as JSON, a megabyte of large integers takes 70 ms, and this 5. Version 0 has no references, so that
        # the same values always give the same bytes.
        return marshal.dumps(one, 0) == marshal.dumps(other, 0)
    except ValueError:  # it takes nothing but JSON's own types
        return written_value(one) == written_value(other)


def _changed(old: ReadableLine | None, new: ReadableLine | None, longest: int) -> tuple[str, int]:
    """An edit as one text, and how many characters of it are hidden."""
    if old is None or new is None:
        (before, old_hidden), (after, new_hidden) = (
            (_not_given(), 0) if each is None else beginning_of(each.text, longest) for each in (old, new)
        )
        return f"{before} → {after}", old_hidden + new_hidden
    if short := change_in_words(old, new):
        return short, 0
    (before, old_hidden), (after, new_hidden) = told_apart(old, new, lambda text: beginning_of(text, longest))
    return f"{before} → {after}", old_hidden + new_hidden


def told_apart(
    old: ReadableLine, new: ReadableLine, cut: Callable[[str], tuple[str, int]]
) -> tuple[tuple[str, int], tuple[str, int]]:
    """Returns the beginnings of two values that differ, each with how many characters of it are hidden, so that they
    look different: where they read alike, letter by letter; where they differ further on, from shortly before that.

    Args:
        cut: makes the beginning of a text, and counts what of it is hidden.
    """
    before, after = (old.raw, new.raw) if old.text == new.text else (old.text, new.text)
    told = cut(before), cut(after)
    skipped = _same_at_first(before, after) - _BEFORE_DIFFERENCE
    if told[0][0] != told[1][0] or skipped <= 0:
        return told
    (first, first_hidden), (second, second_hidden) = cut(before[skipped:]), cut(after[skipped:])
    return (f"… {first}", first_hidden + skipped), (f"… {second}", second_hidden + skipped)


_BEFORE_DIFFERENCE = 20
"""Characters that two long values have in common and that are shown before what differs."""


def _same_at_first(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    same, most = 0, min(len(one), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        if one.startswith(other[same:middle], same):
            same = middle
        else:
            most = middle - 1
    return same


def _not_given() -> str:
    return _("(not given)")


def hidden_in_words(characters: int, arguments: int, ids: Sequence[int] = ()) -> str:
    """Returns what is hidden, counted: "512 characters hidden, 2 arguments hidden"; empty when nothing is.

    Args:
        ids: how many characters each id has that is shown by what it stands for.
    """
    parts = []
    if characters:
        parts.append(
            ngettext("{count} character hidden", "{count} characters hidden", characters).format(
                count=number_in_words(characters)
            )
        )
    if arguments:
        parts.append(
            ngettext("{count} argument hidden", "{count} arguments hidden", arguments).format(
                count=number_in_words(arguments)
            )
        )
    if len(ids) == 1:
        one = ngettext("ID hidden ({count} character)", "ID hidden ({count} characters)", ids[0])
        parts.append(one.format(count=number_in_words(ids[0])))
    elif ids:
        several = _("{number} IDs hidden ({count} characters)")
        parts.append(several.format(number=number_in_words(len(ids)), count=number_in_words(sum(ids))))
    return ", ".join(parts)


def unchanged_in_words(excerpt: Excerpt) -> str:
    """Returns how many arguments an edit left as they were, such as "2 unchanged"; empty: none is left out."""
    if not excerpt.unchanged:
        return ""
    return ngettext("{count} unchanged", "{count} unchanged", excerpt.unchanged).format(
        count=number_in_words(excerpt.unchanged)
    )


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
        unseen = hidden_in_words(view.unread, 0) if view.unread else part.unseen
        told = [space.line(_("It asks in the middle of this request: {call}").format(call=call), _ASKED_IN) + "."]
        told += [f"{unseen}."] if unseen else []
        return " ".join([*told, fingerprint_in_words(view)]).strip()

    return within


def beginning_of(text: str, longest: int) -> tuple[str, int]:
    """Returns at most `longest` characters and about 12 lines of a value, and how many characters of it are hidden."""
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
