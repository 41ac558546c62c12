"""ID tokens, verified as OpenID Connect Core 3.1.3.7 says: signature, issuer, audience, nonce and time."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

import jwt

from adapters.oauth.http import Http, host_of
from bot.accounts.ports import Rejected, Unreachable
from bot.clock import Clock, system_clock

KEEP = 24 * 3600.0
"""Seconds for which metadata and keys are believed."""
AGAIN_AFTER = 60.0
"""Seconds between two fetches for the sake of a key that is not among those known."""
LEEWAY = 60
"""Seconds by which two clocks may differ."""


class IdentityProvider:
    """The metadata and keys of one OpenID provider, asked for when needed and kept for a day."""

    def __init__(self, http: Http, metadata_url: str, clock: Clock = system_clock) -> None:
        self._http = http
        self._metadata_url = metadata_url
        self._clock = clock
        self._metadata: Mapping[str, Any] = {}
        self._metadata_at = float("-inf")
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._keys_at = float("-inf")

    async def metadata(self) -> Mapping[str, Any]:
        """Its addresses and its issuer. Raises `Unreachable`."""
        if self._clock() - self._metadata_at >= KEEP:
            found = await self._http.json(self._metadata_url)
            wanted = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
            if not all(isinstance(found.get(name), str) and found[name] for name in wanted):
                raise Unreachable(f"{host_of(self._metadata_url)}: its OpenID metadata is not complete")
            self._metadata, self._metadata_at = found, self._clock()
        return self._metadata

    async def verify(self, id_token: str, *, audience: str, nonce: str) -> Mapping[str, Any]:
        """The claims of a token that is the provider's, for us, of this sign-in, and now.

        Raises `Rejected`, whose text is the kind of the fault alone, and `Unreachable`.
        """
        issuer = (await self.metadata())["issuer"]
        try:
            key = await self._key(str(jwt.get_unverified_header(id_token).get("kid", "")))
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key,
                algorithms=["RS256"],
                audience=audience,
                issuer=issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "aud", "iss"]},
            )
        except jwt.PyJWTError as error:
            raise Rejected(f"{host_of(issuer)}: ID token not accepted: {type(error).__name__}") from None
        said = claims.get("nonce")
        if not nonce or not isinstance(said, str) or not hmac.compare_digest(said.encode(), nonce.encode()):
            raise Rejected(f"{host_of(issuer)}: ID token not accepted: it is another sign-in's")
        if claims.get("azp", audience) != audience:
            raise Rejected(f"{host_of(issuer)}: ID token not accepted: it was made for another client")
        return claims

    async def _key(self, kid: str) -> jwt.PyJWK:
        """Raises `Unreachable`, and PyJWT's error for a key that the provider does not have."""
        age = self._clock() - self._keys_at
        if age >= KEEP or (kid not in self._keys and age >= AGAIN_AFTER):
            found = (await self._http.json((await self.metadata())["jwks_uri"])).get("keys")
            self._keys, self._keys_at = _readable(found if isinstance(found, list) else []), self._clock()
        if kid not in self._keys:
            raise jwt.InvalidKeyError
        return self._keys[kid]


def _readable(entries: list[object]) -> dict[str, jwt.PyJWK]:
    keys = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("kty") != "RSA" or entry.get("use", "sig") != "sig":
            continue
        try:
            keys[str(entry.get("kid", ""))] = jwt.PyJWK(entry, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            continue  # one that cannot be read signs nothing
    return keys
