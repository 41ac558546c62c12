"""Tokens that programs get for a name and a password: JWTs that we sign ourselves, each with a session in the records.

The session decides: whoever ends it, or removes its user, ends the token.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.domain import Clock
from bot.identity.principal import ALL_SCOPES

if TYPE_CHECKING:
    from jwt.types import Options

ISSUER = "countersign"
LONGEST_TOKEN = 4_096
"""Characters; ours have some 400."""
_LABEL = b"countersign tokens of programs"
_CLAIMS = ("iss", "sub", "sid", "iat", "exp")


@dataclass(frozen=True, slots=True)
class OwnToken:
    """What a token of ours says. Nothing of it counts once its session is over."""

    name: str
    """Of the user."""
    session_hash: str
    scope: str


class OwnTokens:
    """Makes and reads them.

    Args:
        key: what seals the records: Fernet keys, separated by commas. The first signs, all of them count.
    """

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._keys = [hmac.digest(each.strip(), _LABEL, hashlib.sha256) for each in key.split(b",")]
        self._clock = clock

    def make(self, name: str, session_hash: str, seconds: float) -> str:
        """Returns a token for a user that lasts so long, unless its session ends before."""
        import jwt  # noqa: PLC0415  # 10 MB, of no use until somebody signs in

        now = int(self._clock())
        claims = {
            "iss": ISSUER,
            "sub": name,
            "sid": session_hash,
            "iat": now,
            "exp": now + int(seconds),
            "scope": " ".join(sorted(ALL_SCOPES)),
        }
        return jwt.encode(claims, self._keys[0], algorithm="HS256")

    def read(self, token: str) -> OwnToken | None:
        """Returns what a token says; `None`: it is not one of ours, or it is too old."""
        claims = self._verified(token)
        if claims is None or not all(isinstance(claims.get(each), str) for each in ("sub", "sid", "scope")):
            return None
        # Not PyJWT's own: its clock is not the records'.
        if not isinstance(claims["exp"], int) or claims["exp"] <= self._clock():
            return None
        return OwnToken(claims["sub"], claims["sid"], claims["scope"])

    def _verified(self, token: str) -> dict[str, Any] | None:
        import jwt  # noqa: PLC0415  # as above

        if len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        checked: Options = {"require": [*_CLAIMS], "verify_exp": False, "verify_iat": False, "verify_nbf": False}
        for key in self._keys:
            try:
                return jwt.decode(token, key, algorithms=["HS256"], issuer=ISSUER, options=checked)
            except jwt.InvalidTokenError:
                continue
        return None
