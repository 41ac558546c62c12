"""Has tool servers connected anew in all processes, where several have sessions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.tool_servers.servers import ToolServers

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.notifications import Notifications

CHANNEL = "countersign_tool_servers"


class ToolServerRetries:
    """Fills `bot.console.parts.RetriesToolServers`. Made before the notifications are started.

    Args:
        notifications: by which processes tell each other; `None`: there is only this one.
    """

    def __init__(self, tools: ToolServers, notifications: Notifications | None = None) -> None:
        self._tools = tools
        self._notifications = notifications
        if notifications is not None:
            notifications.subscribe(CHANNEL, self._was_told, _missed)

    def retry(self, name: str) -> bool:
        """Connect to a server anew; false: there is none of this name."""
        if name not in {each.server for each in self._tools.status()}:
            return False
        if self._notifications is None:
            return self._tools.retry(name)
        self._notifications.tell(CHANNEL, name)  # this process hears it, too
        return True

    def _was_told(self, name: str) -> None:
        self._tools.retry(name)


def _missed() -> None:
    """Each server is tried again by itself, later."""
