"""What an OpenID issuer publishes about itself, and whether a token is one of its own."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from adapters.oauth.http import OAuthHttpClient, host_of, may_follow
from adapters.oauth.signed_tokens import claims_signed_with, signed_by
from bot.accounts.ports import GrantRefused, Unreachable
from bot.domain import Clock, system_clock

KEEP = 24 * 3600.0
"""Seconds for which metadata and keys are believed."""
USE_MEANWHILE = 2 * KEEP
"""Seconds for which they are, while new ones are asked for or cannot be had."""
AGAIN_AFTER = 60.0
"""Seconds between two fetches for the sake of a key that is not among those known."""
AFTER_FAILURE = 5.0
"""Seconds for which a provider that could not be asked is not asked again, from when that was clear."""
SHORTEST_RSA_KEY = 2048
"""Bits (RFC 7518, 3.3)."""
ENDPOINTS = ("authorization_endpoint", "token_endpoint")
"""What sign-in needs besides the keys."""
ValueT = TypeVar("ValueT")
_Keys = Mapping[tuple[str, str], jwt.PyJWK]
"""By id and algorithm. The only one of a provider stands under no id, too."""


class _Kept(Generic[ValueT]):
    """A document, asked for when needed and kept for a day; by however many it is wanted, it is asked for once, and all
    who wait for that share what comes of it."""

    def __init__(self, fetch: Callable[[], Awaitable[ValueT]], nothing: ValueT, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._value = nothing
        self._at = self._tried_at = self._failed_at = float("-inf")
        """When it came, was asked for, and did not come."""
        self._failure = ""
        self._asking: asyncio.Task[str] | None = None

    async def get(self, is_enough: Callable[[ValueT], bool] = lambda _: True) -> ValueT:
        """The document; a new one where the one that is known is not enough and was not asked for just now. Raises
        `Unreachable`."""
        now = self._clock()
        age, known = now - self._at, is_enough(self._value)
        if age < KEEP and known:
            return self._value
        if self._asking is None and now - self._failed_at >= AFTER_FAILURE:
            if age < KEEP and now - self._tried_at < AGAIN_AFTER:
                return self._value
            self._tried_at = now
            self._asking = asyncio.create_task(self._ask(), name="what an issuer publishes")
        if age < USE_MEANWHILE and known:
            return self._value
        # Whoever goes away meanwhile does not end it for the others.
        failure = await asyncio.shield(self._asking) if self._asking is not None else self._failure
        if failure:
            raise Unreachable(failure)
        return self._value

    async def _ask(self) -> str:
        """Ask for it; returns why it did not come."""
        try:
            self._value = await self._fetch()
        except Unreachable as failure:
            # An issuer may take long to fail: the pause begins then.
            self._failed_at, self._failure = self._clock(), str(failure) or "it cannot be reached"
            return self._failure
        else:
            self._at = self._clock()
            return ""
        finally:
            self._asking = None


class IdentityProvider:
    """The metadata and keys of one OpenID provider.

    Args:
        metadata_url: where its metadata is.
        issuer: who it has to say that it is; `None`: whoever answers there.
        endpoints: what its metadata has to have besides its issuer and its keys.
    """

    def __init__(
        self,
        http: OAuthHttpClient,
        metadata_url: str,
        clock: Clock = system_clock,
        *,
        issuer: str | None = None,
        endpoints: Sequence[str] = ENDPOINTS,
    ) -> None:
        self._http = http
        self._metadata_url = metadata_url
        self._issuer = issuer
        self._endpoints = endpoints
        self._metadata: _Kept[Mapping[str, Any]] = _Kept(self._found, {}, clock)
        self._keys: _Kept[_Keys] = _Kept(self._published, {}, clock)

    @classmethod
    def of_issuer(
        cls, http: OAuthHttpClient, issuer: str, clock: Clock = system_clock, *, endpoints: Sequence[str] = ENDPOINTS
    ) -> IdentityProvider:
        """The provider that is this issuer, letter by letter (OpenID Connect Discovery 1.0, 4)."""
        url = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
        return cls(http, url, clock, issuer=issuer, endpoints=endpoints)

    async def metadata(self) -> Mapping[str, Any]:
        """Returns the issuer and its addresses. Raises `Unreachable`."""
        return await self._metadata.get()

    async def verify(self, id_token: str, *, audience: str, nonce: str) -> Mapping[str, Any]:
        """The claims of a token that is the provider's, for us, of this sign-in, and now.

        Raises `Rejected`, whose text is the kind of the fault alone, and `Unreachable`.
        """
        host = host_of((await self.metadata())["issuer"])
        try:
            claims = await self.claims_of(id_token, audience=audience, required=("exp", "iat", "aud", "iss", "sub"))
        except GrantRefused as fault:
            raise GrantRefused(f"{host}: ID token not accepted: {fault}") from None
        said = claims.get("nonce")
        if not nonce or not isinstance(said, str) or not hmac.compare_digest(said.encode(), nonce.encode()):
            raise GrantRefused(f"{host}: ID token not accepted: it is another sign-in's")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else audience) != audience:
            raise GrantRefused(f"{host}: ID token not accepted: it was made for another client")
        return claims

    async def claims_of(
        self, token: str, *, audience: str | Sequence[str], required: Sequence[str]
    ) -> Mapping[str, Any]:
        """The claims of a token that the provider has signed for this audience, or one of these, and that counts now.

        Raises `GrantRefused`, whose text says what is wrong with it, and `Unreachable`.
        """
        wanted = signed_by(token)
        keys = await self._keys.get(lambda known: wanted in known)
        if wanted not in keys:
            raise GrantRefused("it is signed with a key that the issuer does not publish")
        issuer = (await self.metadata())["issuer"]
        return claims_signed_with(
            keys[wanted], token, algorithm=wanted[1], issuer=issuer, audience=audience, required=required
        )

    async def _found(self) -> Mapping[str, Any]:
        found = await self._http.json(self._metadata_url)
        host = host_of(self._metadata_url)
        if not all(isinstance(found.get(name), str) and found[name] for name in ("issuer", *self._needed)):
            raise Unreachable(f"{host}: its OpenID metadata is not complete")
        if self._issuer is not None and found["issuer"] != self._issuer:
            raise Unreachable(f"{host}: its OpenID metadata is another issuer's")
        if not all(may_follow(found[name], self._metadata_url) for name in self._needed):
            raise Unreachable(f"{host}: its OpenID metadata names an address that is not one to go to")
        return found

    @property
    def _needed(self) -> Sequence[str]:
        return ("jwks_uri", *self._endpoints)

    async def _published(self) -> _Keys:
        found = (await self._http.json((await self.metadata())["jwks_uri"])).get("keys")
        return _readable(found if isinstance(found, list) else [])


def _readable(entries: Sequence[object]) -> _Keys:
    """The keys that can sign tokens, each for what its own kind of signature is."""
    keys: dict[tuple[str, str], jwt.PyJWK] = {}
    ids = set()
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        for algorithm in _algorithms(entry):
            try:
                key = jwt.PyJWK(entry, algorithm=algorithm)
            except (jwt.PyJWTError, ValueError, TypeError):
                continue  # one that cannot be read signs nothing
            if not isinstance(key.key, RSAPublicKey) or key.key.key_size >= SHORTEST_RSA_KEY:
                ids.add(key_id := str(entry.get("kid", "")))
                keys[key_id, algorithm] = key
    if len(ids) == 1:
        keys |= {("", algorithm): key for (_, algorithm), key in keys.items()}
    return keys


def _algorithms(key: Mapping[str, Any]) -> Sequence[str]:
    """How a key signs: as it says, if its kind can, else in any way of its kind."""
    match key.get("kty"), key.get("crv"):
        case "RSA", _:
            kind: tuple[str, ...] = ("RS256", "PS256")
        case "EC", "P-256":
            kind = ("ES256",)
        case "OKP", "Ed25519":
            kind = ("EdDSA",)
        case _:
            kind = ()
    said = key.get("alg")
    return kind if said is None else [each for each in kind if each == said]
