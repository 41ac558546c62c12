"""Who may use the console, and that the audit log says what they look at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.conversations import NoteReading
from bot.domain import Person


class OperatorAccess:
    """Lets operators look.

    Args:
        is_operator: whether somebody is one.
        note_reading: writes into the audit log that they look; once in ten minutes for each thing.
    """

    def __init__(self, is_operator: Callable[[Person], Awaitable[bool]], note_reading: NoteReading) -> None:
        self.includes = is_operator
        self._note_reading = note_reading

    async def looks(self, person: Person, what: str, thread_id: str = "") -> bool:
        """Whether somebody may look; then the audit log says that they do, before they are shown anything.

        Args:
            what: in two or three words, such as "a turn".
            thread_id: of the conversation that it is in, where it is in one.
        """
        if not await self.includes(person):
            return False
        await self._note_reading(person, what, thread_id)
        return True
