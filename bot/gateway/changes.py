"""Tells those who wait for calls that one has changed, whichever process has changed it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot.records import gateway_calls
from bot.records.database import Database
from bot.repeated_failures import RepeatedFailure

if TYPE_CHECKING:  # SQLite has no use for it
    from bot.records.notifications import Notifications

CHANNEL = "countersign_gateway"
LOOK_SECONDS = 5.0
"""Between two looks at all calls that are waited for, for what nobody was told of. Once for all who wait."""
LOOKED_AT_ONCE = 500
"""Calls in one statement."""


class CallChanges:
    """Who waits for which call in this process.

    Args:
        notifications: by which processes tell each other; `None`: there is only this one. To be made before they are
            started.
    """

    def __init__(self, notifications: Notifications | None = None) -> None:
        self._notifications = notifications
        self._watching: dict[str, list[asyncio.Event]] = {}
        self._seen: dict[str, float] = {}
        """Call that is watched → when it had changed last, as of the last look."""
        if notifications is not None:
            notifications.subscribe(CHANNEL, self._tell_here, self._tell_everybody)

    @contextmanager
    def watched(self, gateway_call_id: str) -> Iterator[asyncio.Event]:
        """Within it, what is given is set whenever the call may have changed."""
        changed = asyncio.Event()
        self._watching.setdefault(gateway_call_id, []).append(changed)
        try:
            yield changed
        finally:
            watching = self._watching[gateway_call_id]
            watching.remove(changed)
            if not watching:
                del self._watching[gateway_call_id]
                self._seen.pop(gateway_call_id, None)

    @property
    def is_alone(self) -> bool:
        """Whether no other process can be on the same records."""
        return self._notifications is None

    def is_watched(self, gateway_call_id: str) -> bool:
        """Whether anybody waits for it here."""
        return gateway_call_id in self._watching

    def tell(self, gateway_call_id: str) -> None:
        """A call has changed, and that is on disk. Returns at once."""
        self._tell_here(gateway_call_id)
        if self._notifications is not None:
            self._notifications.tell(CHANNEL, gateway_call_id)

    def _tell_here(self, gateway_call_id: str) -> None:
        for changed in self._watching.get(gateway_call_id, ()):
            changed.set()

    def _tell_everybody(self) -> None:
        for gateway_call_id in self._watching:
            self._tell_here(gateway_call_id)

    async def keep_looking(self, database: Database) -> None:
        """Looks for what this process was not told of, where there may be others. Ends when it is cancelled."""
        failure = RepeatedFailure("gateway_calls_not_read")
        while self._notifications is not None:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look(database)
                failure.worked()
            except Exception as error:  # noqa: BLE001  # only the records can fail here, and may be back any time
                failure.failed(error)

    async def _look(self, database: Database) -> None:
        watched = list(self._watching)
        for start in range(0, len(watched), LOOKED_AT_ONCE):
            some = watched[start : start + LOOKED_AT_ONCE]
            async with database.reading() as tx:
                found = await gateway_calls.changed_at(tx, some)
            for gateway_call_id in some:
                changed_at = found.get(gateway_call_id, 0.0)
                if gateway_call_id in self._watching and self._seen.get(gateway_call_id) != changed_at:
                    self._seen[gateway_call_id] = changed_at
                    self._tell_here(gateway_call_id)
