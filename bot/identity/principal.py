"""Whoever a request acts for, and what it may do in their name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from bot.domain import Person

Scope = Literal["run", "approve", "read"]
"""What a token allows: to begin and go on with turns, to decide and answer, to read."""
ALL_SCOPES: frozenset[Scope] = frozenset(get_args(Scope))


@dataclass(frozen=True, slots=True)
class Principal:
    """A person, as far as a request has proved that it acts for them. It may do what they may, never more."""

    person: Person
    scopes: frozenset[Scope] = ALL_SCOPES
    via: Literal["session", "jwt", "token", "local"] = "local"
    """How it was proved; `local`: this machine alone can be asked."""
    subject: str = ""
    """`sub` of a JWT; else the last part of the person's id."""
    accounts: frozenset[str] = field(default=frozenset())
    """Person ids of the same human, as far as platforms vouch for one address; empty: the person's alone."""
    key: str = ""
    """What has to be in the records for as long as it counts: `session:{hash}`, `token:{id}`, `user:{name}` or
    `identity:{person id}`; empty: nothing."""
    until: float | None = None
    """When it ends, whatever the records say."""

    @property
    def person_ids(self) -> frozenset[str]:
        """All person ids whose things are this human's."""
        return self.accounts | {self.person.person_id}

    def may(self, scope: Scope) -> bool:
        """Whether the token allows it."""
        return scope in self.scopes


@dataclass(frozen=True, slots=True)
class NotAuthenticated:
    """Why a request acts for nobody. `reason`: a sentence for whoever sent it, which says nothing of a secret."""

    reason: str
