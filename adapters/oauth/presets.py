"""What is known of four providers, so that an operator writes down a client and no addresses.

Sources: developers.google.com/identity/protocols/oauth2/web-server · learn.microsoft.com/entra/identity-platform/
v2-oauth2-auth-code-flow · docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps ·
docs.slack.dev/authentication/installing-with-oauth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adapters.oauth.connections import AccountFields, Provider

ANY_TENANT = ("common", "organizations", "consumers")
"""Microsoft's words for an authority that is no single tenant."""


@dataclass(frozen=True, slots=True)
class Client:
    """The operator's client at a provider."""

    connection: str
    client_id: str
    client_secret: str | None = field(repr=False)
    tenant: str = ""
    """Microsoft only; empty: whoever has a work account."""


def google(client: Client) -> Provider:
    """Google gives a refresh token only with `offline`, and again only when it is made to ask."""
    return Provider(
        client.connection,
        "Google",
        client.client_id,
        client.client_secret,
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",  # noqa: S106  # an address
        revoke_url="https://oauth2.googleapis.com/revoke",
        userinfo_url="https://openidconnect.googleapis.com/v1/userinfo",
        issuer="https://accounts.google.com",
        scopes=("openid", "email"),
        authorize_parameters={"access_type": "offline", "prompt": "consent"},
    )


def microsoft(client: Client) -> Provider:
    """Only a single tenant's word about its own people counts for an address: in any other anybody can claim any."""
    tenant = client.tenant or "organizations"
    base = f"https://login.microsoftonline.com/{tenant}/oauth2/v2.0"
    return Provider(
        client.connection,
        "Microsoft",
        client.client_id,
        client.client_secret,
        authorize_url=f"{base}/authorize",
        token_url=f"{base}/token",
        scopes=("openid", "profile", "email", "offline_access"),
        account=AccountFields(
            label=("preferred_username", "email", "name"), email="" if tenant in ANY_TENANT else "email"
        ),
    )


def github(client: Client) -> Provider:
    """GitHub has no claim of a verified address: its addresses are a list of their own, mostly private ones."""
    return Provider(
        client.connection,
        "GitHub",
        client.client_id,
        client.client_secret,
        authorize_url="https://github.com/login/oauth/authorize",
        token_url="https://github.com/login/oauth/access_token",  # noqa: S106  # an address
        revoke_url="https://api.github.com/applications/{client_id}/token",
        userinfo_url="https://api.github.com/user",
        account=AccountFields(label=("login",)),
        revocation="github",
    )


def slack(client: Client) -> Provider:
    """A person's own token (`user_scope`), not a bot's."""
    return Provider(
        client.connection,
        "Slack",
        client.client_id,
        client.client_secret,
        authorize_url="https://slack.com/oauth/v2/authorize",
        token_url="https://slack.com/api/oauth.v2.access",  # noqa: S106  # an address
        revoke_url="https://slack.com/api/auth.revoke",
        userinfo_url="https://slack.com/api/auth.test",
        scope_parameter="user_scope",
        scope_separator=",",
        grant_field="authed_user",
        account=AccountFields(label=("user",)),
        revocation="slack",
    )


PRESETS: Mapping[str, Callable[[Client], Provider]] = {
    "google": google,
    "microsoft": microsoft,
    "github": github,
    "slack": slack,
}
