"""The moment in which an account becomes usable: its tokens are kept, and all that waited for it goes on."""

from __future__ import annotations

from bot.accounts.changes import Changes
from bot.accounts.ports import Services
from bot.accounts.sealing import Grant, Safe
from bot.clock import Clock
from bot.ids import NewId
from bot.inbox.resuming import Resuming
from bot.posts import Posts
from bot.records import connections, sign_ins
from bot.records.authorizations import AuthorizationRow
from bot.records.connections import ConnectionRow
from bot.records.database import Transaction
from bot.safe_text import visible_line

ACCOUNT_LIMIT = 120
"""Characters of how a service names an account."""


class Connecting:
    """Writes connections, and lets the threads go on."""

    def __init__(
        self,
        posts: Posts,
        resuming: Resuming,
        services: Services,
        safe: Safe,
        changes: Changes,
        *,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._posts = posts
        self._resuming = resuming
        self._services = services
        self._safe = safe
        self._changes = changes
        self._clock = clock
        self._new_id = new_id

    async def connect(self, tx: Transaction, way: AuthorizationRow, grant: Grant) -> None:
        """The tokens are active from now on. Every sign-in of this person for this connection is done."""
        person_id, connection, now = way.person_id, way.connection, self._clock()
        row = ConnectionRow(
            connection_id=self._new_id(),
            person_id=person_id,
            connection=connection,
            service=self.label(connection),
            account=account_label(grant),
            scopes=grant.tokens.scopes,
            status="active",
            version=1,
            sealed_tokens=self._safe.put_tokens(person_id, connection, grant.tokens),
            since=now,
            used_at=None,
        )
        await connections.put(tx, row)
        tx.afterwards(lambda: self._changes.tell(person_id, connection))  # before what waits for it goes on
        for waiting in await sign_ins.open_for(tx, person_id, connection):
            key = f"connected:{way.authorization_id}"
            if await sign_ins.settle(tx, waiting.sign_in_id, "done", key=key, now=now):
                await self._posts.show_again(tx, [waiting.sign_in_id])
                await self._resuming.resume(tx, waiting.thread_id, waiting.sign_in_id)

    async def show_waiting(self, tx: Transaction, way: AuthorizationRow) -> None:
        """Something changed on the way that the cards of what waits for it tell."""
        rows = await sign_ins.open_for(tx, way.person_id, way.connection)
        await self._posts.show_again(tx, [row.sign_in_id for row in rows])

    def label(self, connection: str) -> str:
        """Name of a connection's service for people."""
        service = self._services.service(connection)
        return service.label if service is not None else connection


def account_label(grant: Grant) -> str:
    """How the service names the account, safe to show; empty where it does not tell."""
    return visible_line(grant.account.label or grant.account.verified_email or "", ACCOUNT_LIMIT)
