"""Who of the people whose ids begin with `web:` there is (still)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.identity.open_issuers import EVERYBODY
from bot.identity.people import HASHED_SUBJECTS, WEB, user_name
from bot.identity.ports import Claims
from bot.records import identity
from bot.records.database import Transaction


@dataclass(frozen=True, slots=True)
class PagePeople:
    """Says who is there."""

    login: Literal["local", "password", "oidc"]
    """`WEB_LOGIN`."""
    local: frozenset[str] = frozenset()
    """Person ids of the people of `local`."""
    issuers: frozenset[str] = frozenset()
    """Those that the settings name, for the page and for programs, and `SHARED_SECRET` where there is one: nobody else
    vouches for an address."""
    domains: frozenset[str] = frozenset()
    """`OIDC_ALLOWED_DOMAINS`; empty: everybody whom an issuer signs in may be here."""

    def may_sign_in(self, claims: Claims) -> bool:
        """Whether somebody of whom an issuer says this is of a domain that may."""
        if not claims.issuer or not self.domains or EVERYBODY in self.domains:
            return True
        return bool(self.domains & {claims.email.rpartition("@")[2], claims.organisation})

    def could_be_a_user(self, person_id: str) -> bool:
        """Whether only a user with a password can have this id: anybody may register under a name, so nobody else may
        be called like a user."""
        name = user_name(person_id)
        return self.login == "password" and name != "" and not name.startswith(HASHED_SUBJECTS)

    def has_an_issuer(self, person_id: str) -> bool:
        """Whether others say who this person is: not so of users, and of people who have chosen a local name."""
        return not (self.could_be_a_user(person_id) or (self.login == "local" and person_id in self.local))

    async def is_there(self, tx: Transaction, person_id: str) -> bool:
        """Whether there is somebody of this id: a user, or whoever an issuer or a token has named. About people of chat
        platforms these say it."""
        if not person_id.startswith(f"{WEB}:"):
            return True
        if self.could_be_a_user(person_id):
            return await identity.user(tx, user_name(person_id)) is not None
        if self.login == "local" and person_id in self.local:
            return True
        return await identity.identity(tx, person_id) is not None
