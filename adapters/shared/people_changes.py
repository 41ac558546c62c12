"""Lets processes know of whom what they remember counts no more: a platform tells one of them only."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.notifications import Notifications

log = structlog.get_logger(__name__)
CHANNEL = "countersign_people"
TELL_SECONDS = 2.0
"""Seconds that whoever was told by a platform waits until the others are, before it says so: platforms wait for three.
They are told later then."""


class PeopleChanges:
    """Tells the other processes that people have changed, and hears it from them. Made before the notifications are
    started."""

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications
        self._forget: dict[str, Callable[..., None]] = {}
        self._forget_all: dict[str, Callable[[], None]] = {}
        notifications.subscribe(CHANNEL, self._was_told, self._missed_some)

    def hears(self, platform: str, forget: Callable[..., None], forget_all: Callable[[], None]) -> None:
        """`forget` is called with what another process has told of a platform, `forget_all` when something may not have
        been heard."""
        self._forget[platform], self._forget_all[platform] = forget, forget_all

    async def tell(self, platform: str, *of: str) -> None:
        """Tell what `forget` is to be called with. Returns when it is told, or would take too long."""
        key = json.dumps([self._notifications.name, platform, *of])
        await self._notifications.tell_now(CHANNEL, key, TELL_SECONDS)

    def _was_told(self, key: str) -> None:
        match json.loads(key):
            case [self._notifications.name, *_]:
                pass
            case [_, str(platform), *of] if platform in self._forget:
                self._forget[platform](*of)
            case _:
                log.debug("people_key_unknown")  # of a newer version

    def _missed_some(self) -> None:
        for forget_all in self._forget_all.values():
            forget_all()
