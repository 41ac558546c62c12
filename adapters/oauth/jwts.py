"""`JwtVerifier`: bearer tokens of programs, by the keys of an issuer or with a secret that is shared with us."""

from __future__ import annotations

import re
from collections.abc import Collection

from adapters.oauth.http import OAuthHttpClient
from adapters.oauth.identity_provider import IdentityProvider
from adapters.oauth.signed_tokens import FOR_ANOTHER, claims_from, claims_signed_with, is_for, signed_by
from bot.accounts.ports import GrantRefused
from bot.domain import Clock, system_clock
from bot.identity.ports import Claims

LONGEST_TOKEN = 8 * 1024
"""Characters; nothing of a longer one is looked at."""
SHARED = "HS256"
"""How tokens are signed with the shared secret, and no others are."""
_GATEWAY = re.compile("https?://[^/]+/mcp(/.*)?", re.DOTALL)
"""Addresses of gateways, ours or another's."""


def _is_taken(said: object, resources: Collection[str] | None) -> bool:
    """Whether a token that names whom it is for counts where no audience is configured: at the gateway when it names
    that, and at the API unless it was made for gateways alone."""
    if resources is not None:
        return is_for(said, resources)
    named = said if isinstance(said, list) else [said]
    return not named or not all(isinstance(each, str) and _GATEWAY.fullmatch(each) for each in named)


class ProgramTokens:
    """Verifies them.

    Args:
        issuer: whose keys count; `None`: nobody's.
        audience: whom tokens have to be for; `None`: that does not matter, which is for a shared secret alone.
        secret: with which others sign tokens; `None`: nobody does.
    """

    def __init__(
        self,
        *,
        issuer: str | None,
        audience: str | None,
        secret: str | None,
        clock: Clock = system_clock,
        http: OAuthHttpClient | None = None,
    ) -> None:
        self._audience = audience
        self._secret = secret
        self._issuer = issuer or ""
        self._provider: IdentityProvider | None = None
        if issuer:
            self._provider = IdentityProvider.of_issuer(http or OAuthHttpClient(), issuer, clock, endpoints=())

    async def verify(self, token: str, resources: Collection[str] | None = None) -> Claims:
        """Returns what it says of its subject. `resources`: whom it may be for at the gateway, beside the audience;
        `None`: it is for the API. Raises `GrantRefused`, `Unreachable`."""
        if len(token) > LONGEST_TOKEN:
            raise GrantRefused("it is too long")
        _, algorithm = signed_by(token)
        required = ("exp", "sub")
        if algorithm == SHARED:
            if self._secret is None:
                raise GrantRefused("it is signed in a way that does not count here")
            audience = [self._audience, *(resources or ())] if self._audience is not None else None
            claims = claims_signed_with(self._secret, token, algorithm=SHARED, audience=audience, required=required)
            if audience is None and "aud" in claims and not _is_taken(claims["aud"], resources):
                raise GrantRefused(FOR_ANOTHER)
            return claims_from(claims, "")
        if self._provider is None or self._audience is None:
            raise GrantRefused("it is signed in a way that does not count here")
        claims = await self._provider.claims_of(token, audience=[self._audience, *(resources or ())], required=required)
        return claims_from(claims, self._issuer)
