"""What signing in needs from the outside: an OpenID issuer's sign-in for browsers, and its keys for programs' tokens.

Both speak HTTP, so adapters fill them (`adapters/oauth`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.accounts.ports import BegunAuthorization


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says of its subject."""

    issuer: str
    """Empty: it is signed with a secret that we share."""
    subject: str
    name: str = ""
    """Name for people; empty: the token has none."""
    email: str = ""
    """Address that the issuer vouches for (`email_verified`), in lower case; empty: it vouches for none."""
    organisation: str = ""
    """Domain of the organisation that has given out the account, where Google says so (`hd`); empty: none has."""
    issued_at: float | None = None
    """`iat`, seconds since the epoch; `None`: the token does not say."""
    scope: str | None = None
    """`scope` or `scp`, separated by spaces; `None`: the token has neither."""
    until: float | None = field(default=None, compare=False)
    """When the token is not accepted any more."""


class OpenIdSignIn(Protocol):
    """Sign-in of browsers at the configured issuer: authorization code with PKCE. Raises `bot.accounts.ports`'
    `Unreachable`, with a text for the log."""

    issuer: str
    """Its address, as its tokens have it."""
    name: str
    """What people read on the button: the host of the issuer, or a better known name."""

    async def begin(self, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        """Where to send the browser, and what `finish` needs."""
        ...

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str, issuer: str | None) -> Claims:
        """Exchange the code, and verify the ID token (`iss`, `aud`, `nonce`, `exp`, `azp`).

        Args:
            kept: what `begin` gave.
            issuer: `iss` of the callback (RFC 9207); `None`: it had none.

        Raises `bot.accounts.ports.GrantRefused`.
        """
        ...


class JwtVerifier(Protocol):
    """Verifies bearer tokens that others have signed: by the keys of `API_JWT_ISSUER`, or with `API_JWT_SECRET`."""

    async def verify(self, token: str, resources: Collection[str] | None = None) -> Claims:
        """Returns what it says of its subject.

        Args:
            resources: the addresses of the gateway that it may be for, beside `API_JWT_AUDIENCE`; a token for something
                else is refused. `None`: it is for the API, and one for a gateway is refused.

        Raises `bot.accounts.ports.GrantRefused` (the text names the kind of fault alone) and `Unreachable`.
        """
        ...
