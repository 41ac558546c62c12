"""What accounts need from the outside: a service's OAuth endpoints, and proof of who opened a link.

Both speak HTTP, so adapters fill them (`adapters/oauth`). Nothing here is kept anywhere but sealed, and nothing of it
has a representation that could end in a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Service:
    """A service at which people have accounts."""

    connection: str
    """Name of the connection: the tool server's for `auth: oauth`, the provider's of `connections.yaml` otherwise."""
    label: str
    """Name for people."""
    scopes: tuple[str, ...] = ()
    """What is asked for, as far as the configuration says it."""


@dataclass(frozen=True, slots=True)
class BegunAuthorization:
    """The first half of an authorisation: where to send the browser, and what the second half needs."""

    url: str = field(repr=False)
    kept: Mapping[str, Any] = field(repr=False)
    """JSON: verifier, client, endpoints, resource, issuer."""


@dataclass(frozen=True, slots=True)
class TokenSet:
    """What a service granted."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    """Seconds since the epoch; `None`: the service does not say."""
    scopes: tuple[str, ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """JSON: what refreshing and revoking need (endpoints, client, resource, issuer)."""
    lifetime: float | None = None
    """Seconds for which they were granted; `None`: as `expires_at`."""
    sign_in: str = ""
    """Which sign-in of their owner they came of, as the records know it: others may be of another account. Never sealed
    with them."""


@dataclass(frozen=True, slots=True)
class Account:
    """How a service names the account that was connected."""

    label: str = ""
    """A login or an address; empty where the service does not tell."""
    verified_email: str | None = None
    """Lower case; `None`: the service vouches for none."""


class Denied(Exception):  # noqa: N818  # not an error: a person's choice
    """The person, or the service on their behalf, said no."""


class GrantRefused(Exception):  # noqa: N818  # an answer, as the ones below
    """The service does not accept the grant (any more): the person has to sign in again. The text is for the log."""


class Unreachable(Exception):  # noqa: N818
    """The service could not be asked, or answered something that is no answer. The text is for the log."""


class OutsideServices(Protocol):
    """The OAuth side of every configured connection. Each call has a time limit and raises `Unreachable`."""

    def service(self, connection: str) -> Service | None:
        """The service of that name; `None`: there is none (any more)."""
        ...

    def services(self) -> Sequence[Service]:
        """All of them."""
        ...

    def fits(self, connection: str, tokens: TokenSet) -> bool:
        """Whether these tokens were granted for what the configuration says now. Others are of no use, and must not be
        shown to whatever is configured under that name today."""
        ...

    async def begin(self, connection: str, *, state: str, redirect_uri: str, challenge: str) -> BegunAuthorization:
        """Find the endpoints, register a client where none is configured, and make the link (PKCE S256). `challenge` is
        the `WWW-Authenticate` of the refusal that led here, or empty."""
        ...

    async def finish(self, connection: str, kept: Mapping[str, Any], code: str, *, issuer: str | None) -> TokenSet:
        """Exchange the code. `issuer`: `iss` of the callback (RFC 9207). Raises `Rejected`."""
        ...

    async def account(self, connection: str, tokens: TokenSet) -> Account:
        """Returns whose account it is, as far as the service tells; empty rather than `Unreachable`."""
        ...

    async def refresh(self, connection: str, tokens: TokenSet) -> TokenSet:
        """New tokens for the old. Raises `Rejected`."""
        ...

    async def revoke(self, connection: str, tokens: TokenSet) -> bool:
        """Ask the service to forget them; whether it has a way to and did."""
        ...


class Proofs(Protocol):
    """Proof of chat identity: Sign in with Slack, Entra. Raises `Unreachable`."""

    def provider(self, person_id: str) -> str | None:
        """Returns the service whose sign-in proves that a browser belongs to this person ("Slack", "Microsoft");
        `None`: there is none."""
        ...

    async def begin(self, person_id: str, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        """Where to send the browser."""
        ...

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str) -> str:
        """Id of the person whose browser it is, from a verified ID token. Raises `Rejected`."""
        ...
