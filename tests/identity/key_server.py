"""An issuer of tokens for programs: its metadata and its keys on loopback, and the tokens that it signs.

async with key_server() as issuer:
    issuer.token(sub="nightly")                 # as it should be
    issuer.token(exp=None)                      # without an end
    issuer.token(signed_with="ES256", key="elliptic")
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "https://countersign.example/api"


@cache
def private_keys() -> Mapping[str, Any]:
    """By id; the same within a process, since making one takes a while."""
    return {
        "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "rsa-pss": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "elliptic": ec.generate_private_key(ec.SECP256R1()),
        "edwards": ed25519.Ed25519PrivateKey.generate(),
        "new": ec.generate_private_key(ec.SECP256R1()),
        "unpublished": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "short": rsa.generate_private_key(public_exponent=65537, key_size=1024),
        "encrypting": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    }


PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "rsa": {},
    "rsa-pss": {"alg": "PS256", "use": "sig"},
    "elliptic": {"alg": "ES256"},
    "edwards": {"use": "sig"},
    "short": {"alg": "RS256"},
    "encrypting": {"use": "enc"},
}
"""What each key says of itself; the first says nothing, as Entra's."""


def public_key(key: str) -> dict[str, Any]:
    """The key as it is published."""
    public = private_keys()[key].public_key()
    match public:
        case rsa.RSAPublicKey():
            return jwt.algorithms.RSAAlgorithm.to_jwk(public, as_dict=True)
        case ec.EllipticCurvePublicKey():
            return jwt.algorithms.ECAlgorithm.to_jwk(public, as_dict=True)
        case _:
            return jwt.algorithms.OKPAlgorithm.to_jwk(public, as_dict=True)


@dataclass
class KeyServer:
    """The issuer, as tests see and change it."""

    url: str = ""
    keys: dict[str, Mapping[str, str]] = field(default_factory=lambda: dict(PUBLISHED))
    is_away: bool = False
    is_quick: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, nobody gets an answer."""
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    """What it was asked for."""

    async def metadata(self, _: web.Request) -> web.Response:
        self.asked.append("metadata")
        return await self._answer({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def published(self, _: web.Request) -> web.Response:
        self.asked.append("keys")
        return await self._answer(
            {"keys": [{**public_key(key), "kid": key, **says} for key, says in self.keys.items()]}
        )

    def token(
        self, *, key: str = "rsa", signed_with: str = "RS256", headers: Mapping[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token; `claims` stand over what it would say (`None`: left out)."""
        said = {name: value for name, value in self.claims(**claims).items() if value is not None}
        return jwt.encode(said, private_keys()[key], signed_with, headers={"kid": key, **(headers or {})})

    def claims(self, **changed: Any) -> dict[str, Any]:
        """What a token says."""
        now = int(time.time())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "nightly", "iat": now, "exp": now + 300}
        return said | changed

    async def _answer(self, body: object) -> web.Response:
        self.was_asked.set()
        await self.is_quick.wait()
        return web.json_response(body) if not self.is_away else web.Response(status=503)


@asynccontextmanager
async def key_server() -> AsyncIterator[KeyServer]:
    """The issuer on a free port."""
    made = KeyServer()
    made.is_quick.set()
    application = web.Application()
    application.router.add_get("/.well-known/openid-configuration", made.metadata)
    application.router.add_get("/keys", made.published)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()
