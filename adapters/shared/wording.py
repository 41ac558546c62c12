"""Sentences of cards and dialogs that read the same on every platform."""

from __future__ import annotations

HIDDEN_MEANS = "Only you see this, and the audit log says that you looked. Do not pass it on."
TOO_LONG_FOR_A_LIST = "What waits here is too long for a list: decide it at its own card."


def more_not_listed(count: int) -> str:
    """Returns what is said below a list of calls to approve of those that are not in it."""
    return f"{count:,} more wait and are not in this list: decide them at their own cards."
