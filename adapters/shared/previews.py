"""What a call would change, as rows for cards. Pure; every text is `visible`.

It is a tool's words (`graph.card_facts`): literal, bounded, with the source beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapters.shared.arguments import CARD_ARGUMENTS, told_apart
from bot.domain import ApprovalView, CallActivity, ChangeView, GrantView, OutcomeView
from bot.readings import ReadableLine, change_in_words, readings
from bot.safe_text import visible_excerpt, visible_line, written_value
from graph.known_ids import TIMES, TITLES
from graph.presentation import ArgumentKind, CallPresentation, PresentedArgument, Preview
from translations import gettext as _
from translations import ngettext

PREVIEW_ROWS = 8
"""Rows of a preview that a card shows."""
PREVIEW_VALUE = 160
"""Characters of each value."""
_VALUE_LINES = 4
LONGEST_LABEL = 60
LONGEST_SOURCE = 120
_REFUSAL = 300
NOTHING = "–"
"""Stands where there is no value on one of the two sides."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

CallView = ApprovalView | OutcomeView | ChangeView | GrantView | CallActivity


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One thing that a call would change, or that a deletion takes away."""

    label: str
    before: str
    """Empty: there is nothing of it before."""
    after: str
    """Empty: there is nothing of it afterwards, or only before was told."""
    change: str
    """Both on one line: "9:00 → 10:00"; where only before was told, that, and where only after was, "→ 10:00"."""


@dataclass(frozen=True, slots=True)
class PreviewRows:
    """A preview as a card shows it."""

    rows: tuple[PreviewRow, ...]
    has_before: bool
    """Whether it is told how things are now."""
    has_after: bool
    """Whether it is told how things will be."""
    hidden: str
    """What is not shown, in words, such as "2 unchanged, 3 values hidden"; empty: nothing."""
    source: str
    """Where it is from, in words: "Preview from calendar › preview_update_event"."""
    problem: str
    """Why there is no preview, as a sentence; empty: there is one."""


def preview_rows(view: CallView, most: int = PREVIEW_ROWS, longest: int = PREVIEW_VALUE) -> PreviewRows | None:
    """Returns the preview of a call: what changes first, and of a change nothing that stays; `None`: there is none, and
    none is named for it. Of a deletion, what is on its card anyway is not shown once more; `None` where nothing else
    is left. Nor is there one of a call that was edited: it was another's.

    Args:
        most: rows.
        longest: characters of each value.
    """
    preview = view.presentation.preview
    is_edited = isinstance(view, ApprovalView) and view.asked_arguments is not None
    if preview is None or is_edited:
        return None
    source = _("Preview from {source}").format(source=visible_line(preview.source, LONGEST_SOURCE))
    if preview.problem:
        return PreviewRows((), has_before=False, has_after=False, hidden="", source=source, problem=_problem(preview))
    kept = _with_kinds(preview, view.presentation)
    before, after = (_by_names(side, kept) for side in (preview.before, preview.after))
    names = list(dict.fromkeys([*before, *after]))
    has_before, has_after = bool(before), bool(after)
    same = {each for each in names if has_after and each in before and each in after and _is_same(preview, each)}
    told = set() if has_after else {each for each in names if _is_on_card(view, preview, each, longest)}
    shown = [each for each in names if each not in same | told]
    if told and not shown and not preview.hidden:
        return None
    empty = [] if has_after else [each for each in shown if all(_side(preview.before, n) in _EMPTY for n in each)]
    shown = [each for each in shown if each not in empty]
    rows = tuple(_row(before.get(each), after.get(each), longest) for each in shown[:most])
    left_out = max(0, len(shown) - most) + preview.hidden
    hidden = [
        ngettext("{count} unchanged", "{count} unchanged", len(same)).format(count=len(same)) if same else "",
        ngettext("{count} empty value", "{count} empty values", len(empty)).format(count=len(empty)) if empty else "",
        ngettext("{count} value hidden", "{count} values hidden", left_out).format(count=left_out) if left_out else "",
    ]
    if not has_after:
        rows = tuple(replace(row, change=_on_one_line(row.before)) for row in rows)
    elif not has_before:
        rows = tuple(replace(row, change=f"→ {_on_one_line(row.after)}") for row in rows)
    return PreviewRows(rows, has_before, has_after, ", ".join(filter(None, hidden)), source, problem="")


def _with_kinds(preview: Preview, presentation: CallPresentation) -> CallPresentation:
    """With what a preview has beside the arguments of its call, or as what the call's schema knows only as a text, as
    it looks. Nothing that runs is read so."""
    kinds = dict(presentation.arguments)
    for name, value in {**preview.before, **preview.after}.items():
        known = kinds.get(name, _UNKNOWN)
        if isinstance(value, list) and known.kind == "other":
            kinds[name] = PresentedArgument(title=known.title, kind="list")
        kind = _kind_of(value) if isinstance(value, str) and known.kind in ("text", "other") else None
        if kind and not known.choices:
            kinds[name] = PresentedArgument(title=known.title, kind=kind)
    return presentation.model_copy(update={"arguments": kinds, "known_ids": ()})


_UNKNOWN = PresentedArgument()


def _is_on_card(view: CallView, preview: Preview, names: Iterable[str], longest: int) -> bool:
    """Whether a card shows all of these values among the arguments of the call, or as what an id stands for."""
    if isinstance(view, CallActivity) or len(view.arguments) > CARD_ARGUMENTS:
        return False
    known = view.presentation.known_in(view.arguments).values()
    told = [each for each in known if not each.hidden]
    said = {(name, each.title) for each in told for name in TITLES} | {
        (name, each.at) for each in told for name in TIMES
    }

    def is_said(name: str) -> bool:
        value = preview.before.get(name)
        written = written_value(value)
        given = name in view.arguments and written_value(view.arguments[name]) == written
        return len(written) <= longest and (given or (isinstance(value, str) and value != "" and (name, value) in said))

    return all(map(is_said, names))


def _kind_of(value: str) -> ArgumentKind | None:
    if _MOMENT.fullmatch(value):
        return "date-time"
    return "date" if _DAY.fullmatch(value) else None


def _by_names(side: Mapping[str, Any], presentation: CallPresentation) -> dict[tuple[str, ...], ReadableLine]:
    return {each.names: each for each in readings(side, presentation)}


_EMPTY = ("", "[]", "{}", written_value(None))
"""Values of which a deletion takes nothing away."""


def _is_same(preview: Preview, names: Iterable[str]) -> bool:
    return all(_side(preview.before, name) == _side(preview.after, name) for name in names)


def _side(side: Mapping[str, Any], name: str) -> str | None:
    return written_value(side[name]) if name in side else None


def _row(before: ReadableLine | None, after: ReadableLine | None, longest: int) -> PreviewRow:
    either = before or after
    label = visible_line(either.label if either else "", LONGEST_LABEL)
    if before is None or after is None:
        old, new = (_excerpt(each.text, longest)[0] if each else "" for each in (before, after))
        return PreviewRow(label, old, new, f"{_on_one_line(old) or NOTHING} → {_on_one_line(new) or NOTHING}")
    (old, __), (new, __) = told_apart(before, after, lambda text: _excerpt(text, longest))
    moved = change_in_words(before, after)
    return PreviewRow(
        label, old, new, _excerpt(moved, longest)[0] if moved else f"{_on_one_line(old)} → {_on_one_line(new)}"
    )


def _on_one_line(text: str) -> str:
    """A value as it stands beside another: neither a line of it reads as a row, nor an arrow in it as the one between
    the two."""
    told = text.replace("\n", " ↵ ")
    return json.dumps(told, ensure_ascii=False) if "→" in told or told.startswith('"') else told


def _excerpt(text: str, longest: int) -> tuple[str, int]:
    return visible_excerpt(text, longest, _VALUE_LINES)


def _problem(preview: Preview) -> str:
    source = visible_line(preview.source, LONGEST_SOURCE)
    match preview.problem:
        case "nothing":
            return _("No preview: nothing to show.")
        case "unreadable":
            return _("No preview: couldn’t read what {source} answered.").format(source=source)
        case "refused":
            said = visible_line(preview.said, _REFUSAL)
            return _("No preview. {source} says: {text}").format(source=source, text=said)
        case _:
            return _("No preview: {source} didn’t answer.").format(source=source)
