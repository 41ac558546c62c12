"""Links to `/oauth/start`: one per person and connection at a time, for a quarter of an hour."""

from __future__ import annotations

from collections.abc import Callable

from bot.accounts.addresses import start_link
from bot.clock import Clock
from bot.ids import NewId
from bot.limits import Windows
from bot.records import authorizations
from bot.records.authorizations import AuthorizationRow
from bot.records.database import Transaction
from bot.secrets import Sealer, hashed, random_token
from bot.vocabulary import Refused

LINK_SECONDS = 900.0
"""How long a link can be used, from when it was asked for."""
GIVEN_AGAIN_SECONDS = 600.0
"""How long the same link is given to who asks again (another of their calls, say), while nobody has used it."""
KEPT_SECONDS = 86_400.0
"""How long it can be told of an old link that it was used, or is too old."""


class Links:
    """Makes links, and gives them again."""

    def __init__(self, sealer: Sealer, clock: Clock, new_id: NewId, address: Callable[[], str], limit: Windows) -> None:
        self._sealer = sealer
        self._clock = clock
        self._new_id = new_id
        self._address = address
        self._limit = limit

    async def begin(self, tx: Transaction, person_id: str, connection: str, challenge: str) -> None:
        """A person needs an account at a connection; what they are on the way to already, they stay on the way to.

        `challenge`: of the newest refusal, which knows what is missing; an empty one says nothing new."""
        now = self._clock()
        await authorizations.forget_codes(tx, now)
        await authorizations.forget(tx, now - KEPT_SECONDS)
        known = await authorizations.open_for(tx, person_id, connection)
        if known is None:
            row = AuthorizationRow(self._new_id(), person_id, connection, challenge, "open", now)
            await authorizations.add(tx, row)
        elif challenge and challenge != known.challenge:
            await authorizations.change(tx, known, challenge=challenge)

    async def link(self, tx: Transaction, person_id: str, connection: str) -> str | Refused:
        """The link for whoever it belongs to; the caller has seen to that. An older one is of no use any more."""
        now = self._clock()
        await self.begin(tx, person_id, connection, "")
        way = await authorizations.open_for(tx, person_id, connection)
        if way is None:  # it was begun a moment ago, in this transaction
            raise RuntimeError("an authorization that was begun is not there")
        token = self._given_again(way, now)
        if token is None:
            wait = self._limit.wait(person_id, "", now)
            if wait:
                minutes = max(1, round(wait / 60))
                return Refused(f"You have asked for many links. Please try again in {minutes} min.")
            token = random_token()
            self._limit.add(person_id, token, now)
            until = now + LINK_SECONDS
            sealed = self._sealer.seal(token)
            await authorizations.change(
                tx, way, link_hash=hashed(token), sealed_link=sealed, link_until=until, browser_hash=None
            )
        return start_link(self._address(), token)

    def _given_again(self, way: AuthorizationRow, now: float) -> str | None:
        """The link that there is, if nobody has used it and it lives long enough to be of use."""
        if way.sealed_link is None or way.link_until is None or way.browser_hash is not None:
            return None
        fresh = way.link_until - now > LINK_SECONDS - GIVEN_AGAIN_SECONDS
        return self._sealer.unseal(way.sealed_link) if fresh else None
