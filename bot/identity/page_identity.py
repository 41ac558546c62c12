"""Everything about who people of the page are, put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.crypto import Sealer
from bot.domain import Clock
from bot.identity.identities import IdentityRecords
from bot.identity.issuer_sign_in import IssuerSignIn
from bot.identity.own_tokens import OwnTokens
from bot.identity.page_people import PagePeople
from bot.identity.ports import OpenIdSignIn
from bot.identity.sessions import PageSessions
from bot.identity.users import Users, nobody
from bot.limits import Beginnings
from bot.records.database import Database


@dataclass(frozen=True, slots=True)
class PageIdentity:
    """Who people of the page are."""

    sessions: PageSessions
    users: Users
    tokens: OwnTokens
    identities: IdentityRecords
    issuer: IssuerSignIn | None = None
    """Where people sign in at an issuer."""


def page_identity(
    database: Database,
    people: PagePeople,
    clock: Clock,
    key: bytes,
    *,
    beginnings: Beginnings,
    address: Callable[[], str],
    open_id: OpenIdSignIn | None = None,
    is_named: Callable[[str], bool] = nobody,
) -> PageIdentity:
    """Returns it.

    Args:
        key: what seals the records.
        address: where browsers reach this server.
        open_id: the issuer at which people sign in, if they do.
        is_named: as for `Users`.
    """
    identities = IdentityRecords(database, people, clock)
    issuer = None
    if open_id is not None:
        issuer = IssuerSignIn(
            open_id,
            database,
            address=address,
            people=people,
            identities=identities,
            sealer=Sealer(key),
            clock=clock,
            beginnings=beginnings,
        )
    sessions, users = PageSessions(database, clock, open_id.issuer if open_id else ""), Users(database, clock, is_named)
    return PageIdentity(sessions, users, OwnTokens(key, clock), identities, issuer)
