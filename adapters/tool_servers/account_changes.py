"""Ends sessions with people's old accounts in all processes, where several make calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import TYPE_CHECKING

import structlog

from adapters.tool_servers.servers import ToolServers

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.notifications import Notifications

log = structlog.get_logger(__name__)
CHANNEL = "countersign_accounts"


class AccountChanges:
    """Tells the other processes whose account is another one now, or gone, and hears it from them. Made before the
    notifications are started."""

    def __init__(self, tools: ToolServers, notifications: Notifications) -> None:
        self._tools = tools
        self._notifications = notifications
        self._under_way: set[asyncio.Task[None]] = set()
        notifications.subscribe(CHANNEL, self._was_told, self._missed_some)

    async def forget(self, person: str, connection: str) -> None:
        """Ends a person's sessions with the old account here and elsewhere."""
        self._notifications.tell(CHANNEL, json.dumps([self._notifications.name, person, connection]))
        await self._tools.forget(person, connection)

    async def close(self) -> None:
        """Wait for sessions that are being ended."""
        await asyncio.gather(*self._under_way)

    def _was_told(self, key: str) -> None:
        match json.loads(key):
            case [self._notifications.name, *_]:
                pass
            case [_, str(person), str(connection)]:
                self._do(self._tools.forget_old(person, connection))
            case _:
                self._missed_some()  # of a newer version

    def _missed_some(self) -> None:
        self._do(self._tools.check_accounts())

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(self._done(work), name="account changed elsewhere")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _done(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001  # nobody awaits this; each call looks the account up anyway
            log.warning("account_change_not_heard", cause=type(error).__name__)
