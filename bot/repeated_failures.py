"""What is tried again and again says once why it does not work."""

from __future__ import annotations

import time
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class RepeatedFailure:
    """One thing that is tried again and again, for as long as it does not work: each cause is logged once until it has
    worked, however often and in how many tasks it is tried.

    Args:
        event: of the log, when it does not work.
        over: of the log, when it works again; none where something else says so.
    """

    def __init__(self, event: str, over: str = "") -> None:
        self._event = event
        self._over = over
        self._causes: set[str] = set()
        self._since = 0.0

    def failed(self, error: BaseException, *, with_traceback: bool = False, **fields: Any) -> None:
        """It did not work. `fields`: of the log."""
        cause = cause_of(error)
        if cause in self._causes:
            log.debug(self._event, cause=cause, **fields)
            return
        if not self._causes:
            self._since = time.monotonic()
        self._causes.add(cause)
        log.warning(self._event, cause=cause, exc_info=error if with_traceback else None, **fields)

    def worked(self) -> None:
        """It worked."""
        if self._causes:
            self._causes.clear()
            if self._over:
                log.info(self._over, seconds=round(time.monotonic() - self._since, 1))


def cause_of(error: BaseException) -> str:
    """The kind of an error: of the driver's where a library has wrapped it."""
    wrapped = None if isinstance(error, TimeoutError) else getattr(error, "orig", None) or error.__cause__
    return type(wrapped or error).__name__
