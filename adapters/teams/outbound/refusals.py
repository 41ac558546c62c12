"""What a tenant or a conversation does not offer, remembered for a while so that it is not asked for all the time."""

from __future__ import annotations

from bot.clock import Clock

AN_HOUR = 3_600.0
"""Seconds; afterwards it is tried again, since tenants get new features and administrators change their minds."""


class Refusals:
    """What was refused lately, by the id of the tenant or of the conversation that refused it."""

    def __init__(self, clock: Clock, memory: float = AN_HOUR) -> None:
        """`memory`: seconds for which a refusal counts."""
        self._clock = clock
        self._memory = memory
        self._until: dict[str, float] = {}

    def remember(self, where: str) -> None:
        """It was refused there."""
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until[where] = now + self._memory

    def hold(self, where: str) -> bool:
        """Whether it would be refused there now."""
        return self._until.get(where, 0.0) > self._clock()
