"""Slack's Web API as the rest of this folder sees it: one verb, one failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

PATIENCE = 20.0
"""Seconds that a call may take with its waits and tries, where nobody waits for it."""
AT_ONCE = 2.0
"""Seconds where somebody does: a trigger lives 3 s, and so long does Slack wait for an answer to a click."""


class ApiFailed(Exception):  # noqa: N818  # like PostFailed
    """Slack did not do what it was asked.

    `error`: Slack's own word for it (`channel_not_found`), or ours (`timeout`, `connection`, `http_503`).
    `permanent`: asking again cannot help.
    `retry_after`: seconds that Slack asks to wait.
    `may_have_acted`: no answer came, so that it may have been done all the same.
    """

    def __init__(
        self,
        method: str,
        error: str,
        *,
        permanent: bool = False,
        retry_after: float | None = None,
        may_have_acted: bool = False,
    ) -> None:
        super().__init__(f"{method}: {error}")
        self.method = method
        self.error = error
        self.permanent = permanent
        self.retry_after = retry_after
        self.may_have_acted = may_have_acted


class Api(Protocol):
    """Calls methods of the Web API as one workspace's bot, within Slack's rate limits."""

    async def call(
        self,
        team: str,
        method: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: float = PATIENCE,
    ) -> Mapping[str, Any]:
        """What Slack answered. Raises `ApiFailed`.

        Reading methods are tried again within `patience` seconds, with jitter; those that post only where it is
        certain that nothing was done (429, or no connection), since posting twice is worse than posting late.
        """
        ...
