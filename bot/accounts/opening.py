"""What lets people connect accounts, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.accounts.codes import Codes
from bot.accounts.connecting import Changed, Changes, ConnectionWriter
from bot.accounts.connections import Connections
from bot.accounts.flow import SignInFlow
from bot.accounts.tokens import Safe
from bot.accounts.unconfigured import AccountServices
from bot.crypto import NewId, Sealer
from bot.domain import Clock
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
) -> tuple[Connections, Codes, SignInFlow]:
    """Everything between a sign-in's link and a connected account; the connections have to be started
    and closed.

    `address`: where browsers reach us (scheme, host and port). `platforms`: asked for the addresses they vouch for.
    `changed`: told that somebody's account is another one now, or gone.
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
    )
    return connections, codes, flow
