"""The tokens of both directions: those that the Bot Connector shows to bots, and those that bots show to it."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fakes.teams.clock import Clock

Json = dict[str, Any]
Signer = Literal["current", "previous", "unendorsed", "stranger"]
"""Whose key signs: the newest published one, the one before (until keys were rotated: the newest), one that is
published but not for Teams, or one that nobody publishes."""

ISSUER = "https://api.botframework.com"
LIFETIME = 3600
"""Seconds that a token is good for."""
_HASHES = {"RS256": hashes.SHA256(), "RS384": hashes.SHA384(), "RS512": hashes.SHA512()}


@functools.cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    """One key for each name; kept, since making one takes a tenth of a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Issuer:
    """The Bot Connector as a signer of tokens, and its published keys."""

    clock: Clock
    app_id: str
    service_url: str = ""
    generation: int = 1
    """How often the keys were rotated, and one."""
    _bots: dict[str, float] = field(default_factory=dict)
    """Tokens that were given to bots, with when they expire, in moved seconds."""

    # ------------------------------------------------------------------------------------------- for bots to check

    def token(
        self, claims: Json, *, key: Signer = "current", kid: str | None = "", alg: str = "RS256", headers: Json
    ) -> str:
        """A token as the Bot Connector sends it, with some claims changed (`None`: left out).

        `kid`: empty: that of the key, `None`: none. `alg`: `RS256`…, `HS256` (with the public key as the secret),
        `none`.
        """
        now = int(self.clock.now())
        usual = {
            "serviceurl": self.service_url,
            "nbf": now - 60,
            "exp": now + LIFETIME,
            "iss": ISSUER,
            "aud": self.app_id,
        }
        payload = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        name = self._name(key)
        head: Json = {"alg": alg, "typ": "JWT", "kid": name if kid == "" else kid, "x5t": name, **headers}
        signed = f"{_part({n: v for n, v in head.items() if v is not None})}.{_part(payload)}"
        return f"{signed}.{_base64(_signature(signed.encode(), alg, private_key(name)))}"

    def keys(self) -> Json:
        """The published keys (JWKS)."""
        published = [self._jwk(self._name("current"), ["msteams", "webchat", "directline"])]
        if self.generation > 1:
            published.append(self._jwk(self._name("previous"), ["msteams", "webchat", "directline"]))
        published.append(self._jwk(self._name("unendorsed"), ["webchat"]))
        return {"keys": published}

    def _name(self, key: Signer) -> str:
        if key in ("unendorsed", "stranger"):
            return key
        return f"key-{max(1, self.generation - (key == 'previous'))}"

    def _jwk(self, name: str, endorsements: list[str]) -> Json:
        numbers = private_key(name).public_key().public_numbers()
        return {
            "kty": "RSA",
            "use": "sig",
            "kid": name,
            "x5t": name,
            "n": _base64(numbers.n.to_bytes(256, "big")),
            "e": _base64(numbers.e.to_bytes(3, "big")),
            "endorsements": endorsements,
        }

    # ------------------------------------------------------------------------------------------- from bots

    def give(self) -> str:
        """A token for the bot."""
        token = f"bot-token-{len(self._bots) + 1}"
        self._bots[token] = self.clock.moved + LIFETIME
        return token

    def is_good(self, token: str) -> bool:
        """Whether it was given and has not expired."""
        return self.clock.moved < self._bots.get(token, float("-inf"))

    def revoke_all(self) -> None:
        """No token that was given is good any more."""
        self._bots = dict.fromkeys(self._bots, float("-inf"))


def _signature(signed: bytes, alg: str, key: rsa.RSAPrivateKey) -> bytes:
    if alg == "none":
        return b""
    if alg == "HS256":
        secret = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return hmac.new(secret, signed, hashlib.sha256).digest()
    return key.sign(signed, padding.PKCS1v15(), _HASHES[alg])


def _part(content: Json) -> str:
    return _base64(json.dumps(content, separators=(",", ":")).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
