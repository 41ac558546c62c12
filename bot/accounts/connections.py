"""People's connected accounts: how one is connected, listed and disconnected."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from bot.accounts.ports import OutsideServices, Unreachable
from bot.accounts.sign_ins import no_such_sign_in, not_your_sign_in
from bot.accounts.tokens import GrantedAccount, Safe, is_over
from bot.crypto import NewId, Sealer
from bot.domain import (
    AlreadySettled,
    ClickResult,
    Clock,
    CodeEntry,
    ConnectionStatus,
    ConnectionView,
    Person,
    Refused,
    ServiceView,
    Settled,
    SignInReply,
    Unknown,
)
from bot.gateway.people_only import refused_to_programs
from bot.outbox import Outbox
from bot.records import authorizations, connections, sign_ins
from bot.records.authorizations import AuthorizationRow
from bot.records.connections import ConnectionRow
from bot.records.database import Database, Transaction, locking_as_found, written_at_last
from bot.records.locks import CLIENT_REGISTRATIONS, RESEALING, UNLOCKED, person_lock, revocation_name
from bot.safe_text import visible_line
from bot.turns.engine import Engine, resume_thread
from translations import gettext as _

if TYPE_CHECKING:
    from bot.accounts.codes import Codes  # which lets accounts be connected, too

log = structlog.get_logger(__name__)
RESEALED_AT_ONCE = 50
"""Accounts in one transaction; unsealing one takes some 50 µs of CPU."""
REVOCATION_SECONDS = 2.0
"""Seconds that whoever disconnects waits for the service to be told: Slack waits 3 for the answer to a click."""
OTHER_KEY = (
    "These people will be asked to sign in again. If the key was changed, keep the old one behind the new: "
    "ENCRYPTION_KEY=new,old (without the variable until now, the old one is in encryption.key in the data folder)."
)


class Connections:
    """What people do with their accounts at outside services: connect, list and disconnect them.

    `patience`: seconds that whoever disconnects waits for the service to be told.
    """

    def __init__(
        self,
        database: Database,
        engine: Engine,
        outbox: Outbox,
        clock: Clock,
        *,
        services: OutsideServices,
        sealer: Sealer,
        codes: Codes,
        changes: Changes,
        patience: float = REVOCATION_SECONDS,
    ) -> None:
        self._database = database
        self._engine = engine
        self._outbox = outbox
        self._services = services
        self._codes = codes
        self._sealer = sealer
        self._safe = Safe(sealer)
        self._changes = changes
        self._clock = clock
        self._patience = patience
        self._telling: dict[str, asyncio.Task[bool]] = {}
        self._resealing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """What a dead process left: services that were not told of an end, grants that nobody claimed in time, seals
        of an older key."""
        async with self._database.writing_urgently(UNLOCKED) as tx:
            await authorizations.forget_codes(tx, self._clock())
        await self.tell_left()
        self._resealing = asyncio.create_task(self._reseal(), name="reseal")

    async def tell_left(self) -> None:
        """Takes up telling services of ends that a process has left behind. Returns before they are told."""
        async with self._database.reading() as tx:
            left = await connections.ended(tx)
        for row in left:
            if row.connection_id not in self._telling:
                self._tell(row)

    async def resealed(self) -> None:
        """Wait until what an older key has sealed is sealed with the first; that goes on behind `start`."""
        if self._resealing is not None:
            await self._resealing

    async def close(self) -> None:
        """Give up telling services; the next start takes it up again."""
        tasks: list[asyncio.Task[Any]] = [*self._telling.values()]
        if self._resealing is not None:
            tasks.append(self._resealing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._changes.close()

    async def of_person(self, person: Person) -> tuple[ConnectionView, ...]:
        """The accounts that this person has connected, by service."""
        async with self._database.reading() as tx:
            rows = await connections.of_person(tx, person.person_id)
        return tuple(self._view(row) for row in rows)

    def connectable(self) -> tuple[ServiceView, ...]:
        """The services at which people can connect an account, by name."""
        known = (ServiceView(each.connection, each.label, each.scopes) for each in self._services.services())
        return tuple(sorted(known, key=lambda each: (each.service.casefold(), each.provider)))

    def to_connect(self, connected: Iterable[ConnectionView]) -> tuple[ServiceView, ...]:
        """Those of them at which none of somebody's accounts works."""
        working = {view.provider for view in connected if view.working}
        return tuple(each for each in self.connectable() if each.provider not in working)

    async def waits_for_code(self, person: Person) -> bool:
        """Whether a browser shows a one-time code that this person is to tell."""
        now = self._clock()
        async with self._database.reading() as tx:
            ways = await authorizations.with_codes(tx, person.person_id)
        return any(way.code_until is not None and now < way.code_until for way in ways)

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        """Record that a person has signed in, or will not."""
        return await locking_as_found(self._database.writing_urgently, partial(self._settle, reply=reply))

    async def _settle(self, tx: Transaction, reply: SignInReply) -> ClickResult:
        row = await sign_ins.get(tx, reply.sign_in_id)
        if row is None:
            return no_such_sign_in()
        if row.person_id != reply.person.person_id:
            return not_your_sign_in()
        if refused := refused_to_programs(row.thread_id, reply.via):
            return refused
        tx.needs(row.thread_id)
        if reply.done and row.status == "open" and row.connection is not None:
            return Refused(_("Your {service} account isn’t connected yet. Open the link.").format(service=row.service))
        status, now = "done" if reply.done else "declined", self._clock()
        if not await sign_ins.settle(tx, reply.sign_in_id, status, key=reply.key, now=now):
            twice = row.settled_key == reply.key
            too_late = AlreadySettled(_("Already settled."), gone=row.status in {"expired", "superseded"})
            return Settled(_("Noted.")) if twice else too_late
        await self._outbox.show_again(tx, [reply.sign_in_id])
        await resume_thread(tx, self._engine, row.thread_id, reply.sign_in_id, now=now)
        return Settled(_("Thanks. Continuing.") if reply.done else _("OK. Continuing without it."))

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        """Check the one-time code that a person typed into a form; their account is connected when it is right."""
        whose = person_lock(entry.person.person_id)
        return await locking_as_found(self._database.writing_urgently, partial(self._codes.enter, entry=entry), whose)

    async def disconnect(self, connection_id: str, person: Person) -> ClickResult:
        """End a connection, its owner only. It is of no use at once; the service is told as soon as it can be."""
        # Ends only what is this person's: whoever connects it anew at the same time is this person, too.
        async with self._database.writing_urgently(person_lock(person.person_id)) as tx:
            row = await connections.get(tx, connection_id)
            if row is None:
                return Unknown(_("This account is no longer connected."))
            if row.person_id != person.person_id:
                return Refused(_("Only the account’s owner can disconnect it."))
            if not await connections.end(tx, connection_id):
                return AlreadySettled(_("Already disconnected."))
            tx.afterwards(lambda: self._changes.tell(row.person_id, row.connection))
        telling = self._tell(row)
        await asyncio.wait([telling], timeout=self._patience)
        told = telling.done() and not telling.cancelled() and telling.exception() is None and telling.result()
        if told:
            return Settled(_("Your {service} account is disconnected.").format(service=row.service))
        sentence = _(
            "Your {service} account is disconnected. To be sure, also remove the access in {service}’s settings."
        )
        return Settled(sentence.format(service=row.service))

    def _view(self, row: ConnectionRow) -> ConnectionView:
        scopes, status = tuple(row.scopes), self._status(row)
        return ConnectionView(
            row.connection_id, row.service, row.account, scopes, row.since, row.used_at, status, row.connection
        )

    def _status(self, row: ConnectionRow) -> ConnectionStatus:
        if row.status != "active":
            return "expired" if row.status == "expired" else "revoked"
        tokens = self._safe.take_tokens(row.person_id, row.connection, row.sealed_tokens)
        if tokens is None or not self._services.fits(row.connection, tokens):
            return "error"
        return "expired" if is_over(tokens, self._clock()) else "active"

    def _tell(self, row: ConnectionRow) -> asyncio.Task[bool]:
        task = asyncio.create_task(written_at_last(partial(self._revoke, row)), name="revoke")
        self._telling[row.connection_id] = task
        task.add_done_callback(lambda _: self._telling.pop(row.connection_id, None))
        return task

    async def _revoke(self, row: ConnectionRow) -> bool:
        """Tell the service, once unless the records went away. The tokens are forgotten here even if it could not be
        told. False, too, when another process has told it meanwhile: each start finds what others are about to tell."""
        async with self._database.alone(revocation_name(row.connection_id), row.connection):
            async with self._database.reading() as tx:
                left = await connections.get(tx, row.connection_id)
            return left is not None and left.status == "ended" and await self._revoke_alone(left)

    async def _revoke_alone(self, row: ConnectionRow) -> bool:
        tokens = self._safe.take_tokens(row.person_id, row.connection, row.sealed_tokens)
        told = False
        if tokens is not None and self._services.fits(row.connection, tokens):
            try:
                told = await self._services.revoke(row.connection, tokens)
            except Unreachable as cause:
                log.warning("not_revoked", connection=row.connection, cause=str(cause))
            except Exception as defect:  # noqa: BLE001  # an adapter's: the tokens have to be forgotten all the same
                # Without the traceback: its words could hold a token.
                log.error("revoke_defect", connection=row.connection, cause=type(defect).__name__)  # noqa: TRY400
        async with self._database.writing_urgently(UNLOCKED) as tx:  # if it has ended
            await connections.forget(tx, row.connection_id)
        return told

    async def _reseal(self) -> None:
        """What an older key has sealed is sealed with the first, so that the older one can be retired."""
        lost = renewed = 0
        after: str | None = ""
        while after is not None:
            async with self._database.writing_apart(RESEALING) as tx:
                rows = await connections.sealed(tx, after, RESEALED_AT_ONCE)
                for row in rows:
                    if not row.sealed_tokens:
                        continue
                    lost += self._sealer.unseal(row.sealed_tokens) is None
                    if (tokens := self._sealer.renewed(row.sealed_tokens)) is not None:
                        renewed += await connections.reseal(tx, row, tokens)
            after = rows[-1].connection_id if rows else None
        async with self._database.writing_apart(CLIENT_REGISTRATIONS) as tx:
            for of, sealed in await connections.sealed_registrations(tx):
                if (client := self._sealer.renewed(sealed)) is not None:
                    await connections.keep_registration(tx, of, client, self._clock())
            open_ = await sign_ins.with_links(tx)
        for waiting in open_:
            if (link := self._sealer.renewed(waiting.sealed_link)) is not None:
                async with self._database.writing_apart(waiting.thread_id) as tx:
                    await sign_ins.reseal(tx, waiting, link)
        if renewed:
            log.info("accounts_resealed", accounts=renewed)
        if lost:
            log.warning("accounts_sealed_with_another_key", accounts=lost, note=OTHER_KEY)


# ---------------------------------------------------- the moment in which an account becomes usable

LONGEST_ACCOUNT = 120
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

    async def connect(self, tx: Transaction, way: AuthorizationRow, grant: GrantedAccount) -> bool:
        """The tokens are active from now on. Every sign-in of this person for this connection is done. Whether there
        was any, so that something goes on by itself."""
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
        waits = await sign_ins.open_for(tx, person_id, connection)
        tx.needs(person_lock(person_id), *(waiting.thread_id for waiting in waits))
        for waiting in waits:
            key = f"connected:{way.authorization_id}"
            if await sign_ins.settle(tx, waiting.sign_in_id, "done", key=key, now=now):
                await self._outbox.show_again(tx, [waiting.sign_in_id])
                await resume_thread(tx, self._engine, waiting.thread_id, waiting.sign_in_id, now=now)
        return bool(waits)

    async def show_waiting(self, tx: Transaction, way: AuthorizationRow) -> None:
        """Something changed on the way that the cards of what waits for it tell."""
        rows = await sign_ins.open_for(tx, way.person_id, way.connection)
        tx.needs(person_lock(way.person_id), *(row.thread_id for row in rows))
        await self._outbox.show_again(tx, [row.sign_in_id for row in rows])

    def label(self, connection: str) -> str:
        """Name of a connection's service for people."""
        service = self._services.service(connection)
        return service.label if service is not None else connection


def account_label(grant: GrantedAccount) -> str:
    """How the service names the account, safe to show; empty where it does not tell."""
    return visible_line(grant.account.label or grant.account.verified_email or "", LONGEST_ACCOUNT)


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
