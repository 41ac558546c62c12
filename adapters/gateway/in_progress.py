"""The requests of clients that are being answered, each in one process, wherever their client gives them up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.notifications import Notifications

CHANNEL = "countersign_given_up"


class RequestsInProgress:
    """Those of this process, by session and id.

    Args:
        notifications: by which processes tell each other; `None`: there is only this one. To be made before they are
            started.
    """

    def __init__(self, notifications: Notifications | None = None) -> None:
        self._notifications = notifications
        self._leave: dict[str, Callable[[], None]] = {}
        self._none = asyncio.Event()
        self._none.set()
        if notifications is not None:
            notifications.subscribe(CHANNEL, self._was_told, _missed)

    @contextmanager
    def noted(self, session_id: str, request_id: object, leave: Callable[[], None]) -> Iterator[None]:
        """Note a request while it is answered. `leave`: is called when its client does not wait any more."""
        key = _key(session_id, request_id)
        self._leave[key] = leave
        self._none.clear()
        try:
            yield
        finally:
            if self._leave.get(key) is leave:
                del self._leave[key]
            if not self._leave:
                self._none.set()

    def give_up(self, session_id: str, request_id: object) -> None:
        """A client does not wait any more for the answer to a request, which takes nothing back."""
        key = _key(session_id, request_id)
        if key in self._leave:
            self._leave[key]()
        elif self._notifications is not None:
            self._notifications.tell(CHANNEL, key)

    async def none_left(self) -> None:
        """Wait until none is being answered."""
        await self._none.wait()

    def _was_told(self, key: str) -> None:
        if (leave := self._leave.get(key)) is not None:
            leave()


def _missed() -> None:
    """The request goes on until it has waited long enough."""


def _key(session_id: str, request_id: object) -> str:
    return json.dumps([session_id, request_id])
