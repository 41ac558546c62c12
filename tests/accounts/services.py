"""Services and proofs that do as they are told, and write down what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bot.accounts.ports import Account, BegunAuthorization, GrantRefused, Service, TokenSet

ISSUER = "https://accounts.example"


@dataclass
class FakeServices:
    """A service `drive` at which `code-of-{login}` is what consent of that login brings."""

    known: dict[str, Service] = field(
        default_factory=lambda: {
            "drive": Service("drive", "Example Drive", ("files.read",)),
            "mail": Service("mail", "Example Mail", ("mail.read",)),
        }
    )
    emails: dict[str, str] = field(default_factory=dict)
    """By login, the address that the service vouches for."""
    trouble: Exception | None = None
    """Raised by every call from now on."""
    begun: list[dict[str, str]] = field(default_factory=list)
    exchanged: list[tuple[str, str | None]] = field(default_factory=list)
    """Code and issuer, of all exchanges."""
    refreshed: list[str] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    unfit: set[str] = field(default_factory=set)
    """Connections whose configuration has changed."""
    asked: int = 0
    """How often an exchange or a refresh was asked for."""
    held: asyncio.Event | None = None
    """While it is not set, exchanges and refreshes wait."""
    lifetime: float | None = None
    """What tokens say of when they expire."""
    granted_for: float | None = None
    """What they say of how long they live."""
    renewable: bool = True
    """Whether they come with what renews them."""
    _numbers: Any = field(default_factory=lambda: count(1))

    def service(self, connection: str) -> Service | None:
        return self.known.get(connection)

    def services(self) -> tuple[Service, ...]:
        return tuple(self.known.values())

    def fits(self, connection: str, tokens: TokenSet) -> bool:
        return connection not in self.unfit

    async def begin(self, connection: str, *, state: str, redirect_uri: str, challenge: str) -> BegunAuthorization:
        self._troubled()
        self.begun.append({"connection": connection, "redirect_uri": redirect_uri, "challenge": challenge})
        return BegunAuthorization(
            f"{ISSUER}/authorize?state={state}&redirect_uri={redirect_uri}", {"verifier": f"secret-verifier-{state}"}
        )

    async def finish(self, connection: str, kept: Mapping[str, Any], code: str, *, issuer: str | None) -> TokenSet:
        await self._moment()
        assert kept["verifier"].startswith("secret-verifier-")
        if not code.startswith("code-of-"):
            raise GrantRefused("invalid_grant")
        self.exchanged.append((code, issuer))
        return self.tokens(code.removeprefix("code-of-"))

    async def account(self, connection: str, tokens: TokenSet) -> Account:
        login = tokens.access_token.split("-")[2]
        return Account(login, self.emails.get(login))

    async def refresh(self, connection: str, tokens: TokenSet) -> TokenSet:
        self.refreshed.append(tokens.access_token)
        await self._moment()
        return self.tokens(tokens.access_token.split("-")[2])

    async def revoke(self, connection: str, tokens: TokenSet) -> bool:
        await self._moment()
        self.revoked.append(tokens.access_token)
        return True

    def tokens(self, login: str) -> TokenSet:
        number = next(self._numbers)
        return TokenSet(
            f"secret-access-{login}-{number}",
            f"secret-refresh-{login}-{number}" if self.renewable else None,
            self.lifetime,
            ("files.read",),
            {"client": "secret-client"},
            self.granted_for,
        )

    async def _moment(self) -> None:
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        self._troubled()

    def _troubled(self) -> None:
        if self.trouble is not None:
            raise self.trouble


@dataclass
class FakeProofs:
    """Sign in with chat: `proof-of-{person id}` is what that person's browser brings."""

    providers: dict[str, str] = field(default_factory=dict)
    """By platform, whose sign-in proves who somebody is."""
    nonces: list[str] = field(default_factory=list)

    def provider(self, person_id: str) -> str | None:
        return self.providers.get(person_id.partition(":")[0])

    async def begin(self, person_id: str, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        self.nonces.append(nonce)
        return BegunAuthorization(
            f"https://chat.example/openid?state={state}&redirect_uri={redirect_uri}",
            {"secret": "secret-proof-verifier"},
        )

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str) -> str:
        assert kept == {"secret": "secret-proof-verifier"}
        if nonce not in self.nonces or not code.startswith("proof-of-"):
            raise GrantRefused("not an ID token")
        return code.removeprefix("proof-of-")
