"""Counts how often services ask to wait, on its way to the other processes."""

from __future__ import annotations

from collections.abc import Callable

from adapters.shared.calls import PauseExchange
from graph.observing import Observer, RateLimited


class ObservedPauses:
    """Fills `adapters.shared.calls.PauseExchange`.

    Args:
        others: lets other processes wait; `None`: there are none.
    """

    def __init__(self, observer: Observer, others: PauseExchange | None) -> None:
        self._observer = observer
        self._others = others

    def asked(self, service: str, line: str, seconds: float) -> None:
        """The service has asked this process to wait."""
        self._observer.note(RateLimited(service))
        if self._others is not None:
            self._others.asked(service, line, seconds)

    def hears(self, service: str, paused: Callable[[str, float], None]) -> None:
        """`paused` is called with a line and seconds when another process was asked to wait."""
        if self._others is not None:
            self._others.hears(service, paused)
