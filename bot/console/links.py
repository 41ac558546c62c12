"""Links from the cards to the console, for operators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from bot.domain import Person

ASKING_SECONDS = 0.5
"""For which somebody who opens a dialog waits to hear whether they are an operator: Slack takes a dialog for 3 s."""


class ConsoleLinks:
    """Says where the console has what a card is about.

    Args:
        page: what people outside type to reach the page; `None`: they cannot.
        is_operator: whether somebody is one; may ask another service.
    """

    def __init__(self, page: str | None, is_operator: Callable[[Person], Awaitable[bool]]) -> None:
        self._page = page.rstrip("/") if page else ""
        self._is_operator = is_operator

    async def turn_link(self, approval_id: str, person: Person) -> str:
        """Returns where the turn of an approval is; empty: there is no link for this person, or nobody knows in
        time."""
        if not self._page:
            return ""
        try:
            async with asyncio.timeout(ASKING_SECONDS):
                is_theirs = await self._is_operator(person)
        except TimeoutError:
            return ""
        return f"{self._page}/#console/turns?card={quote(approval_id, safe='')}" if is_theirs else ""
