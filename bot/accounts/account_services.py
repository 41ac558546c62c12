"""What lets people connect accounts, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from bot.accounts.codes import Codes
from bot.accounts.connections import Changed, Changes, Connections, ConnectionWriter
from bot.accounts.flow import SignInFlow
from bot.accounts.ports import Account, BegunAuthorization, OutsideServices, Proofs, Service, TokenSet, Unreachable
from bot.accounts.tokens import CatalogueStore, Safe, TokenStore
from bot.crypto import NewId, Sealer
from bot.domain import Clock
from bot.limits import Beginnings
from bot.outbox import Outbox
from bot.platform import Platform
from bot.records.database import Database
from bot.turns.engine import Engine


def make_accounts(
    database: Database,
    engine: Engine,
    outbox: Outbox,
    clock: Clock,
    *,
    outside: AccountServices,
    sealer: Sealer,
    new_id: NewId,
    address: Callable[[], str],
    platforms: Mapping[str, Platform],
    changed: Changed,
    beginnings: Beginnings,
) -> tuple[Connections, Codes, SignInFlow]:
    """Everything between a sign-in's link and a connected account; the connections have to be started
    and closed.

    `address`: where browsers reach us (scheme, host and port). `platforms`: asked for the addresses they vouch for.
    `changed`: told that somebody's account is another one now, or gone. `beginnings`: counts sign-ins.
    """
    services, safe, changes = outside.services, Safe(sealer), Changes(changed)
    connecting = ConnectionWriter(engine, outbox, clock, services=services, safe=safe, changes=changes, new_id=new_id)
    codes = Codes(database, outbox, connecting, safe, clock)
    connections = Connections(
        database, engine, outbox, clock, services=services, sealer=sealer, codes=codes, changes=changes
    )
    flow = SignInFlow(
        database,
        connecting,
        safe,
        clock,
        services=services,
        proofs=outside.proofs,
        address=address,
        platforms=platforms,
        beginnings=beginnings,
    )
    return connections, codes, flow


# --------------------------------------------- what stands in while no tool server needs an account
class NoServices:
    """Knows no service. Fills `OutsideServices`."""

    def service(self, connection: str) -> Service | None:
        """Returns `None`: there are none."""
        return None

    def services(self) -> tuple[Service, ...]:
        """None."""
        return ()

    def fits(self, connection: str, tokens: TokenSet) -> bool:
        """Returns false."""
        return False

    async def begin(self, connection: str, *, state: str, redirect_uri: str, challenge: str) -> BegunAuthorization:
        """Raises `Unreachable`."""
        _no_service()

    async def finish(self, connection: str, kept: Mapping[str, Any], code: str, *, issuer: str | None) -> TokenSet:
        """Raises `Unreachable`."""
        _no_service()

    async def account(self, connection: str, tokens: TokenSet) -> Account:
        """Returns an account of nobody."""
        return Account()

    async def refresh(self, connection: str, tokens: TokenSet) -> TokenSet:
        """Raises `Unreachable`."""
        _no_service()

    async def revoke(self, connection: str, tokens: TokenSet) -> bool:
        """Nothing is revoked."""
        return False


class NoProofs:
    """Knows nobody who could tell who somebody is. Fills `Proofs`."""

    def provider(self, person_id: str) -> str | None:
        """Nobody."""
        return None

    async def begin(self, person_id: str, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        """Raises `Unreachable`."""
        _no_service()

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str) -> str:
        """Raises `Unreachable`."""
        _no_service()


@dataclass(frozen=True, slots=True)
class AccountServices:
    """What the tool servers and the bot need for people's accounts. The defaults: nobody needs one."""

    services: OutsideServices = field(default_factory=NoServices)
    proofs: Proofs = field(default_factory=NoProofs)
    tokens: TokenStore | None = None
    """People's tokens."""
    catalogues: CatalogueStore | None = None
    """The tools of servers that ask everybody to sign in."""


def _no_service() -> NoReturn:
    raise Unreachable("no service is configured")
