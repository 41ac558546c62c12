"""Everything about accounts, put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from bot.accounts.codes import CodeDesk, Codes
from bot.accounts.connections import Changed, Changes, Connecting, ConnectionBook, nobody
from bot.accounts.flow import Around, SignInFlow
from bot.accounts.ports import Proofs, Services
from bot.accounts.sign_ins import Links, SignInBook, Signing
from bot.accounts.tokens import Safe
from bot.accounts.unconfigured import NoProofs, NoServices
from bot.clock import Clock
from bot.ids import NewId
from bot.inbox.engine import Engine
from bot.inbox.resuming import Resuming
from bot.limits import Windows
from bot.platform import Platform
from bot.posts import Posts
from bot.records.database import Database
from bot.secrets import Sealer

HOUR = 3600.0
BEGINS = 10
"""How often one sign-in may be gone on with within `HOUR`."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What accounts need that the house does not have itself."""

    services: Services = field(default_factory=NoServices)
    proofs: Proofs = field(default_factory=NoProofs)
    address: Callable[[], str] = lambda: "http://127.0.0.1"
    """Where browsers reach us: scheme, host and port."""
    changed: Changed = nobody
    """Who is told that somebody's account is another one now, or none."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What accounts share with the rest of the house."""

    database: Database
    posts: Posts
    engine: Engine
    clock: Clock
    new_id: NewId
    sealer: Sealer
    platforms: Mapping[str, Platform]


@dataclass(frozen=True, slots=True)
class Office:
    """Sign-ins from the question to the account."""

    sign_ins: SignInBook
    flow: SignInFlow
    codes: Codes
    connections: ConnectionBook


def make_office(inside: Inside, outside: Outside, *, links_an_hour: int) -> Office:
    """The office of a house. `links_an_hour`: that one person may ask for; 0: no limit."""
    i, services, clock, safe = inside, outside.services, inside.clock, Safe(inside.sealer)
    resuming, changes = Resuming(i.engine, clock), Changes(outside.changed)
    links = Links(i.sealer, clock, i.new_id, outside.address, Windows(links_an_hour, HOUR))
    signing = Signing(i.database, i.posts, resuming, services, links, i.sealer, clock, i.new_id, outside.address)
    connecting = Connecting(i.posts, resuming, services, safe, changes, clock=clock, new_id=i.new_id)
    around = Around(
        database=i.database,
        services=services,
        proofs=outside.proofs,
        connecting=connecting,
        safe=safe,
        clock=clock,
        address=outside.address,
        email_of=address_of(i.platforms),
        begins=Windows(BEGINS, HOUR),
    )
    return Office(
        SignInBook(signing),
        SignInFlow(around),
        Codes(i.database, i.posts, CodeDesk(connecting, safe, clock)),
        ConnectionBook(i.database, services, i.sealer, changes, clock),
    )


def address_of(platforms: Mapping[str, Platform]) -> Callable[[str], Awaitable[str | None]]:
    """What a person's own platform vouches for, asked at the moment: an address may change hands."""

    async def email_of(person_id: str) -> str | None:
        platform = platforms.get(person_id.partition(":")[0])
        email = (await platform.account_of(person_id)).email if platform is not None else ""
        return email.strip().lower() or None

    return email_of
