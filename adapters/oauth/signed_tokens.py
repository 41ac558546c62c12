"""Signed tokens (JWT), whoever has signed them: whether one counts, and what it says of its subject."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jwt
from jwt.exceptions import InvalidSubjectError

from bot.accounts.ports import GrantRefused
from bot.identity.ports import Claims
from bot.safe_text import visible_line

LEEWAY = 60
"""Seconds by which two clocks may differ."""
GOOGLE = "https://accounts.google.com"
LONGEST_NAME = 200
"""Characters of a person's name."""
LONGEST_ADDRESS = 320
"""Characters (RFC 3696)."""
FOR_ANOTHER = "it is for somebody else"


def signed_by(token: str) -> tuple[str, str]:
    """Id and algorithm of the key with which a token says that it is signed. Raises `GrantRefused`.

    Nothing is believed of that: it is by what the key is looked for, among those that sign in this way.
    """
    if not token.isascii():
        raise GrantRefused("it is no JWT")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, UnicodeError):
        raise GrantRefused("it is no JWT") from None
    key, algorithm = header.get("kid", ""), header.get("alg")
    if "crit" in header:
        raise GrantRefused("it needs something that is not known here")
    if not isinstance(key, str) or not isinstance(algorithm, str):
        raise GrantRefused("it does not say how it is signed")
    return key, algorithm


def claims_signed_with(
    key: jwt.PyJWK | str,
    token: str,
    *,
    algorithm: str,
    issuer: str | None = None,
    audience: str | Sequence[str] | None = None,
    required: Sequence[str],
) -> Mapping[str, Any]:
    """The claims of a token that is signed with this key, and that counts now.

    Args:
        algorithm: the key's; a token that names another one is refused.
        issuer: `None`: whoever has the key is one.
        audience: whom it has to be for, or one of whom; `None`: it may say what it wants.
        required: claims that may not be missing.

    Raises `GrantRefused`, whose text says what is wrong with it.
    """
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=audience,
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": list(required), "verify_aud": audience is not None, "verify_iss": issuer is not None},
        )
    except jwt.MissingRequiredClaimError as error:
        raise GrantRefused(f"it has no “{error.claim}”") from None
    except (jwt.PyJWTError, UnicodeError, OverflowError) as error:
        fault = next((text for kind, text in _FAULTS.items() if isinstance(error, kind)), "it is no JWT")
        raise GrantRefused(fault) from None
    if not all(_is_moment(claims[name]) for name in ("exp", "iat", "nbf") if name in claims):
        raise GrantRefused("it does not say clearly when it counts")
    subject = claims.get("sub", "-")
    if not subject.strip() or not subject.isprintable():
        raise GrantRefused("it names nobody")
    return claims


_FAULTS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it does not count yet",
    jwt.InvalidAudienceError: FOR_ANOTHER,
    jwt.InvalidIssuerError: "it is another issuer's",
    InvalidSubjectError: "it names nobody",
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.InvalidAlgorithmError: "it is signed in a way that does not count here",
    OverflowError: "it does not say clearly when it counts",
}


def is_for(said: object, names: Collection[str]) -> bool:
    """Whether a claim `aud`, which is one name or a list, has one of these."""
    return any(each in names for each in (said if isinstance(said, list) else [said]) if isinstance(each, str))


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def claims_from(claims: Mapping[str, Any], issuer: str) -> Claims:
    """What verified claims say of their subject. `issuer`: empty for a secret that is shared with us."""
    name = next((said for key in ("name", "preferred_username") if (said := _name(claims.get(key)))), "")
    until = claims["exp"] + LEEWAY if "exp" in claims else None
    return Claims(
        issuer,
        claims["sub"],
        name,
        _address(claims),
        _organisation(claims, issuer),
        claims.get("iat"),
        _scope_of(claims),
        until,
    )


def _name(value: object) -> str:
    return visible_line(value, LONGEST_NAME).strip() if isinstance(value, str) else ""


def _address(claims: Mapping[str, Any]) -> str:
    """The address that is vouched for. One that is not ASCII may become somebody else's in lower case."""
    verified, email = claims.get("email_verified"), claims.get("email")
    if not (verified is True or verified == "true") or not isinstance(email, str):
        return ""
    usable = "@" in email and email.isascii() and email.isprintable() and len(email) <= LONGEST_ADDRESS
    return email.strip().lower() if usable else ""


def _organisation(claims: Mapping[str, Any], issuer: str) -> str:
    """Google's alone: elsewhere people might choose what stands there."""
    said = claims.get("hd") if issuer == GOOGLE else None
    return said.lower() if isinstance(said, str) and said.isascii() else ""


def _scope_of(claims: Mapping[str, Any]) -> str | None:
    """`scope` (RFC 8693, 4.2) or `scp`, a text or a list; `None`: neither is there."""
    named = [claims[name] for name in ("scope", "scp") if name in claims]
    if not named:
        return None
    said = named[0]
    if isinstance(said, list):
        return " ".join(each for each in said if isinstance(each, str))
    return said if isinstance(said, str) else ""
