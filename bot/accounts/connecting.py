"""The moment in which an account becomes usable: its tokens are kept, and all that waited for it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bot.accounts.ports import OutsideServices
from bot.accounts.tokens import GrantedAccount, Safe
from bot.crypto import NewId
from bot.domain import Clock
from bot.outbox import Outbox
from bot.records import connections, sign_ins
from bot.records.authorizations import AuthorizationRow
from bot.records.connections import ConnectionRow
from bot.records.database import Transaction
from bot.safe_text import visible_line
from bot.turns.engine import Engine, resume_thread

log = structlog.get_logger(__name__)
ACCOUNT_LIMIT = 120
"""Characters of how a service names an account."""
Changed = Callable[[str, str], Awaitable[None]]
"""Told of a person (id) and a connection (name). `ToolServers.forget` is one: it ends sessions."""


class ConnectionWriter:
    """Writes connections, and lets the threads go on."""

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox,
        clock: Clock,
        *,
        services: OutsideServices,
        safe: Safe,
        changes: Changes,
        new_id: NewId,
    ) -> None:
        self._engine = engine
        self._outbox = outbox
        self._services = services
        self._safe = safe
        self._changes = changes
        self._clock = clock
        self._new_id = new_id

    async def connect(self, tx: Transaction, way: AuthorizationRow, grant: GrantedAccount) -> None:
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
                await self._outbox.show_again(tx, [waiting.sign_in_id])
                await resume_thread(tx, self._engine, waiting.thread_id, waiting.sign_in_id, now=now)

    async def show_waiting(self, tx: Transaction, way: AuthorizationRow) -> None:
        """Something changed on the way that the cards of what waits for it tell."""
        rows = await sign_ins.open_for(tx, way.person_id, way.connection)
        await self._outbox.show_again(tx, [row.sign_in_id for row in rows])

    def label(self, connection: str) -> str:
        """Name of a connection's service for people."""
        service = self._services.service(connection)
        return service.label if service is not None else connection


def account_label(grant: GrantedAccount) -> str:
    """How the service names the account, safe to show; empty where it does not tell."""
    return visible_line(grant.account.label or grant.account.verified_email or "", ACCOUNT_LIMIT)


class Changes:
    """Tells whoever holds something open with somebody's account that the account is another one now, or gone. Nobody
    has to wait for that."""

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
