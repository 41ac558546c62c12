"""The calls that were made for an answer: a list below it that people unfold."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.shared import wording
from adapters.shared.wording import Space
from adapters.teams.render.elements import (
    Element,
    action_set,
    bold,
    card,
    fitted,
    folded,
    rich,
    small,
    toggles,
    words,
)
from bot.dates import number_in_words
from bot.domain import CallActivity
from translations import gettext as _
from translations import ngettext

_STEPS = "steps"
_MOST = 30
"""Calls that are listed."""
_RESULT = 200
_LARGEST = 14 * 1024
"""Bytes, beside the text of the answer."""
_MINUTE = 60.0
_NOTICEABLE = 0.1
"""Seconds."""


def activity_card(calls: Sequence[CallActivity]) -> Element:
    """The list, folded behind how many they are and how long they took."""
    listed, left = calls[:_MOST], len(calls) - _MOST

    def build(space: Space) -> Element:
        lines = [_line(call, space) for call in listed]
        if left > 0:
            lines.append(small(wording.more_in_list(left)))
        title = _title(calls)
        return card([action_set(toggles(title, _STEPS)), folded(_STEPS, lines)], summary=title)

    return fitted(build, _LARGEST)


def _title(calls: Sequence[CallActivity]) -> str:
    steps = ngettext("{count} step", "{count} steps", len(calls)).format(count=number_in_words(len(calls)))
    began = min(call.began_at for call in calls)
    ended = max((call.ended_at for call in calls if call.ended_at is not None), default=None)
    took = _duration(ended - began) if ended is not None else ""
    return f"{steps} · {took}" if took else steps


def _line(call: CallActivity, space: Space) -> Element:
    state = {
        "running": _("Running"),
        "waiting": _("Waiting for approval"),
        "done": "",
        "failed": _("Failed"),
        "unknown": _("No answer"),
    }[call.state]
    sign = {"running": "…", "waiting": "⏳", "done": "✓", "failed": "✕", "unknown": "?"}[call.state]
    took = _duration(call.ended_at - call.began_at) if call.ended_at is not None else ""
    colour = {"color": "Attention"} if call.state == "failed" else {}
    about = " · ".join(part for part in (wording.call_source(call, space), state, took) if part)
    result = [words(f"\n{space.line(call.result, _RESULT)}", size="Small")] if call.result.strip() else []
    head = words(f"{sign} ", **colour) + bold(wording.call_title(call, space))
    return rich(head, words(f" · {about}", size="Small", isSubtle=True), *result, spacing="Small")


def _duration(seconds: float) -> str:
    """How long something took; empty where nobody would have noticed."""
    if seconds < _NOTICEABLE:
        return ""
    if seconds < _MINUTE:
        return _("{seconds} s").format(seconds=number_in_words(seconds, decimals=1))
    minutes, rest = divmod(round(seconds), int(_MINUTE))
    return _("{minutes} min {seconds} s").format(minutes=number_in_words(minutes), seconds=rest)
