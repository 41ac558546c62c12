"""Several things that a person does in one request, all or nothing: one refusal undoes the rest."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain import ClickResult, Settled


class NothingDoneError(Exception):
    """Undoes the transaction that it leaves.

    Args:
        results: what would have come of each, had it been alone.
    """

    def __init__(self, results: Mapping[str, ClickResult]) -> None:
        super().__init__("nothing of it is done, since not all of it can be")
        self.results = results


def all_or_nothing(results: Mapping[str, ClickResult]) -> None:
    """Raises `NothingDoneError` when any of these changed nothing."""
    if not all(isinstance(result, Settled) for result in results.values()):
        raise NothingDoneError(results)
