"""Whose account it is, from what a service says of it: claims of an ID token, or of its userinfo address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

from adapters.oauth.connections import AccountFields
from bot.accounts.ports import Account
from bot.safe_text import visible_line

LONGEST_LABEL = 200
"""Characters."""


def account_of(claims: Mapping[str, Any], fields: AccountFields) -> Account:
    """The account that the claims name; an address counts only where the service vouches for it."""
    label = next((value for name in fields.label if (value := _text(claims.get(name)))), "")
    email = _text(claims.get(fields.email)) if fields.email else ""
    vouched = not fields.verified or claims.get(fields.verified) in (True, "true")
    return Account(visible_line(label, LONGEST_LABEL), email.lower() if "@" in email and vouched else None)


def claims_of(id_token: str | None, client_id: str) -> Mapping[str, Any]:
    """The claims of an ID token that came with the tokens from the token address itself.

    TLS vouches for it instead of its signature (OpenID Connect Core 3.1.3.7, 6). Empty: there is none for us.
    """
    if id_token is None:
        return {}
    try:
        claims = jwt.decode(id_token, options={"verify_signature": False})
    except (jwt.PyJWTError, RecursionError):
        return {}
    audience = claims.get("aud")
    return claims if client_id in (audience if isinstance(audience, list) else [audience]) else {}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
