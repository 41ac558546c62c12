"""Issuers at which anybody in the world can sign in, so that having done so makes nobody one of us. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

EVERYBODY = "*"
"""In `OIDC_ALLOWED_DOMAINS`: whoever the issuer signs in may be here."""
_HOSTS = frozenset(
    (
        "accounts.google.com",
        "api.login.yahoo.com",
        "appleid.apple.com",
        "discord.com",
        "gitlab.com",
        "id.twitch.tv",
        "login.live.com",
        "slack-gov.com",
        "slack.com",
        "www.facebook.com",
        "www.linkedin.com",
    )
)
_MICROSOFT = frozenset(
    ("login.microsoftonline.com", "login.microsoftonline.us", "login.windows.net", "sts.windows.net")
)
_TENANTS = frozenset(("common", "consumers", "organizations", "9188040d-6c67-4c5b-b112-36a304b66dad"))
"""Not one company's, but everybody's of several; the last is of personal accounts."""


def is_open(issuer: str) -> bool:
    """Whether an issuer is one of them, as far as is known."""
    parts = urlsplit(issuer)
    host = (parts.hostname or "").rstrip(".")
    tenant = parts.path.strip("/").partition("/")[0].lower()
    return host in _HOSTS or (host in _MICROSOFT and tenant in _TENANTS)
