"""Takes secrets out of what a tool server says.

Three kinds: the secrets that we ourselves handed to the server (known exactly, taken out everywhere), what the house
masks (`Redact`, everywhere too), and what merely looks like a credential (guessed, so taken out of errors and log lines
only: a tool's result belongs to the person).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

REDACTED = "[redacted]"

Redact = Callable[[str], str]
"""Masks what the house wants masked in what tools say (`policies.redaction`)."""

SHORTEST_SECRET = 8
"""Characters. Shorter values would turn up in ordinary words, and taking those out would break results."""

_SECRET_NAMES = re.compile(
    r"key|token|secret|passw|passphrase|pwd|credential|auth|cookie|signature|(?:^|[_-])pat(?:$|[_-])", re.IGNORECASE
)
_USERINFO = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")
# Each in linear time: what a server says may be made to take long. Where nothing is found in a run of characters, the
# run is passed over as a whole (the second alternative); what a name begins with is not looked at, since it stays.
_GUESSES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_USERINFO, REDACTED),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    (
        re.compile(r"\b(eyJ[\w-]{8,}+\.[\w-]++\.[\w-]*+)|\beyJ[\w-]*+"),
        lambda found: REDACTED if found[1] else found[0],
    ),
    (
        re.compile(r"\b(?:sk|pk|rk|xox[abeprs]|xapp|gh[opsur]|github_pat|glpat|AKIA|AIza)[-_]?[A-Za-z0-9_-]{12,}"),
        REDACTED,
    ),
    (
        re.compile(
            r"""(?<!\[)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credentials?)["']?\s*[=:]\s*)"""
            r"""(?!\[redacted\]|\[secret: )("[^"]*"|'[^']*'|[^\s,;&"']+)""",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
)


def unchanged(text: str) -> str:
    """The `Redact` of a house that masks nothing."""
    return text


def names_a_secret(name: str) -> bool:
    """Whether the name of a header or variable suggests that its value is a credential."""
    return _SECRET_NAMES.search(name) is not None


def secret_parts(name: str, value: str) -> frozenset[str]:
    """What of a named value must never be shown: all of it when the name says so, or the user part of a URL in it."""
    parts = {match.group() for match in _USERINFO.finditer(value)}
    parts |= {userinfo.partition(":")[2] for userinfo in parts}
    if names_a_secret(name):
        # "Bearer abc": the scheme is no secret, and the token alone must be found as well
        parts |= {value.strip(), value.strip().rpartition(" ")[2]}
    return frozenset(part for part in parts if len(part) >= SHORTEST_SECRET)


def without_known(text: str, secrets: Iterable[str]) -> str:
    """The text with every one of `secrets` replaced; the longest first, so that no rest of one stays."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with the known secrets and whatever looks like a credential replaced."""
    text = without_known(text, secrets)
    for pattern, replacement in _GUESSES:
        text = pattern.sub(replacement, text)
    return text
