"""Adds the person's own account to a request, at the last moment before it is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import structlog

from bot.accounts.ports import TokenSet

if TYPE_CHECKING:
    from bot.accounts.tokens import TokenStore

log = structlog.get_logger(__name__)
RECENT_TOKENS = 8
"""Tokens of one session that are taken out of what its server says: the newest, as refreshing makes new ones."""


class AccountUnknown(Exception):  # noqa: N818  # an answer
    """Whether the person has an account could not be found out."""


class Bearer:
    """The account of one person for one connection, as one session uses it: the one that it was opened with."""

    def __init__(self, tokens: TokenStore, person: str, connection: str) -> None:
        self._tokens = tokens
        self.person = person
        self.connection = connection
        self._used: deque[str] = deque(maxlen=RECENT_TOKENS)
        self._last: TokenSet | None = None
        self._pinned = False
        self.is_over = False
        """Whether that account was found to be gone, or another one by now."""

    def pin(self) -> None:
        """Never take newer tokens: from now on they might be of another account than the session was opened with."""
        self._pinned = True

    async def current(self) -> TokenSet | None:
        """The tokens for the next request; `None`: the person has to sign in. Raises `AccountUnknown`."""
        if self._pinned:
            return self._last
        tokens = await self._asked(self._tokens.current(self.person, self.connection))
        # What is open goes on with the account that it was begun with, until the word of its end ends it.
        return self._last if tokens is not None else None

    async def is_there(self) -> bool:
        """Look up whether the person still has that account, and its tokens for the next call. Raises
        `AccountUnknown`."""
        if not self.is_over:
            await self.current()
        return not self.is_over

    def looked_up(self) -> TokenSet | None:
        """The tokens that were looked up last: for a call that was prepared, and is not to wait any more."""
        return self._last

    async def after_refusal(self, refused: TokenSet) -> TokenSet | None:
        """The tokens to try once more with; `None`: the person has to sign in anew. Raises `AccountUnknown`."""
        if self._pinned:
            return None
        tokens = await self._asked(self._tokens.refused(self.person, self.connection, refused))
        return None if self.is_over else tokens

    def secrets(self) -> frozenset[str]:
        """What must not be shown when the server repeats it."""
        return frozenset(self._used)

    async def _asked(self, answer: Awaitable[TokenSet | None]) -> TokenSet | None:
        try:
            tokens = await answer
        except Exception as error:
            # Whatever the records or the service do: it is about this request, not the session and its other calls.
            log.warning("account_not_looked_up", connection=self.connection, error=type(error).__name__)
            raise AccountUnknown from error
        if tokens is None or (self._last is not None and tokens.sign_in != self._last.sign_in):
            # The word of it may come late: other tokens in the same session would mix two accounts up.
            self.is_over = True
            self.pin()
            return tokens
        self._last = tokens
        if tokens.access_token not in self._used:
            self._used.append(tokens.access_token)
        return tokens
