"""Ids of people who sign in at an issuer, or whom a program's token names. Pure."""

from __future__ import annotations

import re
from hashlib import sha256

WEB = "web"
SHARED_SECRET = ""
"""In the place of an issuer, where whoever has signed a token shares a secret with us."""
USER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""Names of users with a password."""
_PLAIN_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
HASHED_SUBJECTS = ("oidc.", "sub.")
"""Beginnings of names that are made of a hash: nobody else has one like it."""
DIGITS = 24
"""Hexadecimal digits of the hash of a subject in an id: 96 bits."""
DIGITS_OF_ISSUER = 8
"""Those of its issuer's, by which it is seen that two people are of one issuer (`policies.model.realm_of`)."""


def person_id_of(issuer: str, subject: str) -> str:
    """Returns the person id of a subject: the same wherever the same issuer names it.

    Args:
        issuer: `iss`; empty: the token is signed with a secret that we share.
        subject: `sub`, as it stands in the token.
    """
    if issuer:
        return f"{WEB}:oidc.{_digest(issuer)[:DIGITS_OF_ISSUER]}.{_digest(issuer, subject)}"
    if _PLAIN_SUBJECT.fullmatch(subject) and not subject.startswith(HASHED_SUBJECTS):
        return f"{WEB}:{subject}"
    return f"{WEB}:sub.{_digest(subject)}"


def may_be_person(person_id: str) -> bool:
    """Whether a person of the page or of a program could have this id, whether or not there is one."""
    return person_id.startswith(f"{WEB}:") and _PLAIN_SUBJECT.fullmatch(person_id[len(WEB) + 1 :]) is not None


def user_person_id(name: str) -> str:
    """Returns the person id of a user with a password."""
    return f"{WEB}:{name}"


def user_name(person_id: str) -> str:
    """Returns the name of the user that a person id would be of; empty: it cannot be one's."""
    name = person_id.removeprefix(user_person_id(""))
    return name if name != person_id and USER_NAME.fullmatch(name) else ""


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
