"""What a workspace or a channel does not offer, remembered for a while so that it is not asked for again and again."""

from __future__ import annotations

from bot.clock import Clock

MEMORY = 3600.0
"""Seconds; afterwards it is tried again, since apps are upgraded and plans change."""

WORKSPACE_WIDE = frozenset(
    {
        "access_denied",
        "enterprise_is_restricted",
        "feature_not_enabled",
        "method_deprecated",
        "missing_scope",
        "not_agent_app",
        "not_allowed_token_type",
        "unknown_method",
    }
)
"""Slack's words that hold for a workspace and not only for the channel in which they were heard."""


class Refusals:
    """Whether a method was refused in a workspace, or in one of its channels, lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def remember(self, team: str, channel: str, error: str) -> None:
        """The method answered with this error there."""
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until[team, "" if error in WORKSPACE_WIDE else channel] = now + MEMORY

    def hold(self, team: str, channel: str) -> bool:
        """Whether it would be refused there now."""
        now = self._clock()
        return any(self._until.get((team, where), now) > now for where in ("", channel))
