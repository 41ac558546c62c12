"""Whoever holds something open with somebody's account is told when that account is another one, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

Changed = Callable[[str, str], Awaitable[None]]
"""Told of a person and a connection. `ToolServers.forget` is one: it ends sessions."""


async def nobody(_person_id: str, _connection: str) -> None:
    """Nobody holds anything open."""


class Changes:
    """Tells of changes, without anybody having to wait for it."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._telling: set[asyncio.Task[None]] = set()

    def tell(self, person_id: str, connection: str) -> None:
        """This person's account of a connection is another one now, or none. Returns at once."""
        task = asyncio.create_task(self._tell(person_id, connection), name="account changed")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def close(self) -> None:
        """Wait for those who are being told."""
        await asyncio.gather(*self._telling)

    async def _tell(self, person_id: str, connection: str) -> None:
        try:
            await self._changed(person_id, connection)
        except Exception as defect:  # noqa: BLE001  # an adapter's; nobody awaits this
            # Without the traceback: its words could hold a token.
            log.error("account_change_defect", connection=connection, cause=type(defect).__name__)  # noqa: TRY400
