"""One streamed message in a 1:1 chat, as Teams has it: what the bot is doing, then the text so far, then the message.

https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux
"""

from __future__ import annotations

from typing import Any, Literal

import structlog

from adapters.shared.background_tasks import now
from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.teams.connector.client import AT_ONCE, CALL_SECONDS, BotConnector
from adapters.teams.ids import Activity, TeamsLocation
from adapters.teams.outbound.posting import instead_of, remove, replace_part
from bot.safe_text import visible_line

log = structlog.get_logger(__name__)

LIVES = 120.0
"""Seconds from its first update in which a stream has to be finished (Teams: 2 minutes)."""
LONGEST_STATUS = 240
"""Characters of an informative update (Teams: 1,000 characters or 1 KB, and a line of them is shown)."""

_BRACKETS = str.maketrans({"<": "‹", ">": "›", "[": "(", "]": ")"})


class TeamsStream:
    """A message that grows. Only what Teams has taken counts as shown. Whoever uses it sees to it that its calls are
    made one after the other."""

    def __init__(self, connector: BotConnector, location: TeamsLocation) -> None:
        self.id = ""
        """Activity id of the message; empty while Teams has taken nothing."""
        self.text = ""
        """What is shown of the answer: everything later has to begin with it."""
        self.status = ""
        self.lost = False
        """Whether it was begun and Teams' answer never came, so that nobody knows its id."""
        self._connector = connector
        self._location = location
        self._sequence = 0
        self._began_at = 0.0
        self._is_over = False
        self._may_be_message = False
        """Whether we have ended it, for all we know."""

    @property
    def age(self) -> float:
        """Seconds since it was begun; 0 before."""
        return now() - self._began_at if self._sequence else 0.0

    @property
    def is_open(self) -> bool:
        """Whether it has begun and nothing has ended it, as far as we know."""
        return bool(self._sequence) and not self._is_over and self.age < LIVES

    async def inform(self, status: str) -> None:
        """Say in one line what the bot is doing, while there is no text yet. Raises `CallFailed`."""
        await self._show("informative", status)
        self.status = status

    async def write(self, text: str) -> None:
        """Show the text so far, which begins with what is shown. Raises `CallFailed`."""
        await self._show("streaming", text)
        self.text = text

    async def become(self, activity: Activity) -> bool:
        """End it as this message; once it has become one, become another. False: Teams has ended it already, and the
        message has to be posted anew.

        Raises `CallFailed` when that cannot be said now: to be tried again.
        """
        is_continuation = str(activity.get("text", "")).startswith(self.text)
        ended = await self._end(activity if is_continuation else _alone(self.text, "markdown"))
        if ended and is_continuation:
            return True
        # Now it is a message like any other. If only a status was ever shown of it, nothing is left of it.
        return bool(self.text or self._may_be_message) and await self._replaced(activity)

    async def vanish(self) -> None:
        """Take it away: nothing is to stay of it. Teams' clients go on showing a stream that is deleted before it is
        ended, so that it has to become a message first. Raises nothing: Teams ends it by itself in the end."""
        with failures_logged_as("teams_stream_not_removed", tenant=self._location.tenant):
            if not self._may_be_message:
                await self._end(_alone(self.text or self.status, "plain"), AT_ONCE)
            if self._may_be_message:
                await remove(self._connector, self._location, self.id)
        self._is_over = True

    async def _show(self, kind: Literal["informative", "streaming"], text: str) -> None:
        sequence = self._sequence + 1
        info = {"type": "streaminfo", "streamType": kind, "streamSequence": sequence}
        if self.id:
            info["streamId"] = self.id
        began_at = self._began_at or now()
        activity = {"type": "typing", "text": text, "entities": [info]}
        try:
            given = await self._connector.send(self._location, activity, patience=AT_ONCE)
        except CallFailed as failure:
            if failure.may_have_acted:
                self._sequence, self._began_at = sequence, began_at
                self.lost = not self.id
            self._is_over = self._is_over or self.lost or failure.permanent
            raise
        self.id = self.id or given
        self._sequence, self._began_at = sequence, began_at

    async def _end(self, activity: Activity, patience: float = CALL_SECONDS) -> bool:
        """Finish it with a message; false: it is over already. Raises `CallFailed` to be tried again."""
        if not self.id or not self.is_open:
            self._is_over = True
            return False
        info = {"type": "streaminfo", "streamId": self.id, "streamType": "final"}
        entities: list[Any] = [*activity.get("entities", ()), info]
        try:
            await self._connector.send(self._location, {**activity, "entities": entities}, patience=patience)
        except CallFailed as failure:
            words = instead_of(activity, failure)
            if words is not None:
                return await self._end(words, patience)
            self._may_be_message = self._may_be_message or failure.may_have_acted
            if not failure.permanent:
                raise
            log.info("teams_stream_was_over", tenant=self._location.tenant, error=failure.error)
            self._is_over = True
            return False
        self._is_over = self._may_be_message = True
        return True

    async def _replaced(self, activity: Activity) -> bool:
        try:
            return await replace_part(self._connector, self._location, self.id, activity)
        except CallFailed as failure:
            if not failure.permanent:
                raise
            # A person who has stopped it keeps what they saw: nobody can change it.
            log.info("teams_stream_not_replaced", tenant=self._location.tenant, error=failure.error)
            return False


def status_line(text: str) -> str:
    """What an informative update says: one line, nothing hidden, nothing active. Raises nothing."""
    return visible_line(text, LONGEST_STATUS).translate(_BRACKETS)


def _alone(text: str, text_format: Literal["markdown", "plain"]) -> Activity:
    return {"type": "message", "text": text, "textFormat": text_format}
