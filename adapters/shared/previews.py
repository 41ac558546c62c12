"""What the ids of a call stand for, and what it would change, as rows for cards. Pure; every text is `visible`.

Both are a tool's words (`graph.card_facts`): literal, bounded, with the source beside them. An id itself stays behind
"Show all"; a card that reads one is not exact, so that its fingerprint is shown (`bot.card_masks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain import ApprovalView, CallActivity, ChangeView, GrantView, OutcomeView
from bot.readings import known_in_words
from bot.safe_text import labels, visible_excerpt, visible_line, written_value
from graph.presentation import CallPresentation, KnownId, Preview
from translations import gettext as _
from translations import ngettext

PREVIEW_ROWS = 8
"""Rows of a preview that a card shows."""
PREVIEW_VALUE = 160
"""Characters of each value."""
_VALUE_LINES = 4
LONGEST_LABEL = 60
LONGEST_KNOWN_TEXT = 240
LONGEST_SOURCE = 120
_REFUSAL = 300

CallView = ApprovalView | OutcomeView | ChangeView | GrantView | CallActivity


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One thing that a call would change, or that a deletion takes away."""

    label: str
    before: str
    """Empty: there is nothing of it before."""
    after: str
    """Empty: there is nothing of it afterwards, or only before was told."""
    changed: bool
    """Whether both are told and differ."""


@dataclass(frozen=True, slots=True)
class PreviewRows:
    """A preview as a card shows it."""

    rows: tuple[PreviewRow, ...]
    has_after: bool
    """Whether there are two sides; else how things are now is all that is told."""
    hidden: str
    """What is not shown, in words, such as "2 unchanged, 3 values hidden"; empty: nothing."""
    source: str
    """Where it is from, in words: "Preview from calendar › preview_update_event"."""
    problem: str
    """Why there is no preview, as a sentence; empty: there is one."""


@dataclass(frozen=True, slots=True)
class KnownLine:
    """What one id stands for."""

    argument: str
    """The argument's name, as it is."""
    text: str
    """Such as "Standup, 2026-11-22T09:00"."""
    source: str
    """Where that is from, in words: "from calendar › list_events"."""


def known_lines(view: CallView, arguments: Mapping[str, Any]) -> dict[str, KnownLine]:
    """Returns argument → what its id stands for, of the arguments that a view shows. Of an argument that was edited
    since nothing is known."""
    found = view.presentation.known_in(arguments)
    return {
        name: KnownLine(name, known_text(known, view.presentation), known_source(known))
        for name, known in found.items()
    }


def known_text(known: KnownId, presentation: CallPresentation) -> str:
    """Returns what an id stands for, on one line, with a count of what is left out."""
    return visible_line(known_in_words(known, presentation), LONGEST_KNOWN_TEXT, known.hidden)


def known_source(known: KnownId) -> str:
    """Returns where the knowledge of an id is from."""
    return _("from {source}").format(source=visible_line(known.source, LONGEST_SOURCE))


def preview_rows(view: CallView, most: int = PREVIEW_ROWS, longest: int = PREVIEW_VALUE) -> PreviewRows | None:
    """Returns the preview of a call: what changes first, and of a change nothing that stays; `None`: there is none, and
    none is named for it.

    Args:
        most: rows.
        longest: characters of each value.
    """
    preview = view.presentation.preview
    if preview is None:
        return None
    source = _("Preview from {source}").format(source=visible_line(preview.source, LONGEST_SOURCE))
    if preview.problem:
        return PreviewRows((), has_after=False, hidden="", source=source, problem=_problem(preview))
    names = list(dict.fromkeys([*preview.before, *preview.after]))
    has_after = bool(preview.after)
    same = [name for name in names if has_after and _side(preview.before, name) == _side(preview.after, name)]
    shown = [name for name in names if name not in set(same)]
    label = labels(shown[:most])
    rows = [_row(preview, name, label[name], longest) for name in shown[:most]]
    left_out = max(0, len(shown) - most) + preview.hidden
    hidden = [
        ngettext("{count} unchanged", "{count} unchanged", len(same)).format(count=len(same)) if same else "",
        ngettext("{count} value hidden", "{count} values hidden", left_out).format(count=left_out) if left_out else "",
    ]
    return PreviewRows(tuple(rows), has_after, ", ".join(filter(None, hidden)), source, problem="")


def _row(preview: Preview, name: str, label: str, longest: int) -> PreviewRow:
    before, after = (_shown(side, name, longest) for side in (preview.before, preview.after))
    return PreviewRow(visible_line(label, LONGEST_LABEL), before, after, changed=bool(preview.after))


def _side(side: Mapping[str, Any], name: str) -> str | None:
    return written_value(side[name]) if name in side else None


def _shown(side: Mapping[str, Any], name: str, longest: int) -> str:
    written = _side(side, name)
    return "" if written is None else visible_excerpt(written, longest, _VALUE_LINES)[0]


def _problem(preview: Preview) -> str:
    source = visible_line(preview.source, LONGEST_SOURCE)
    match preview.problem:
        case "nothing":
            return _("No preview: nothing to show.")
        case "refused":
            said = visible_line(preview.said, _REFUSAL)
            return _("No preview. {source} says: {text}").format(source=source, text=said)
        case _:
            return _("No preview: {source} didn't answer.").format(source=source)
