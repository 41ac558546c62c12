"""Calls of the past, as the audit log has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.audit.entries import recorded_call
from bot.rules.outcomes import UNAPPROVED, CallOutcome, LoggedEnd
from policies.suggestions import HistoricCall


def past_calls(
    ends: Iterable[LoggedEnd], outcomes: Mapping[int, CallOutcome]
) -> tuple[list[HistoricCall], set[tuple[str, str]]]:
    """The calls whose first entries these are, as suggestions are made from. What cannot be read is left out, and so is
    what has no outcome: it is no first entry.

    Args:
        outcomes: by the number of the entry.

    Returns also the servers and tools of the calls that people did not approve as they were and that cannot be read:
    nobody knows which rules would have allowed them.
    """
    found: list[HistoricCall] = []
    not_whole: set[tuple[str, str]] = set()
    for end in ends:
        outcome = outcomes.get(end.seq)
        if outcome is None:
            continue
        try:
            recorded = recorded_call(end.entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            if outcome.outcome in UNAPPROVED:
                not_whole.add((outcome.server, outcome.tool))
            continue
        entry = end.entry
        found.append(
            HistoricCall(recorded, outcome.outcome, end.call_id, str(entry.get("at", "")), str(entry.get("input", "")))
        )
    return found, not_whole
