"""What vouches for people who sign in on the page, and for programs, as the settings say. OAuth is imported then."""

from __future__ import annotations

from bot.domain import Clock
from bot.identity.ports import JwtVerifier, OpenIdSignIn
from bot.settings import Settings, plain


def open_id_sign_in(settings: Settings, clock: Clock) -> OpenIdSignIn | None:
    """Sign-in at the issuer; `None`: people sign in in another way."""
    if settings.web_login != "oidc" or not settings.oidc_issuer or not settings.oidc_client_id:
        return None
    from adapters.oauth.sign_in import OpenIdLogin  # noqa: PLC0415  # half a second of importing

    secret = plain(settings.oidc_client_secret)
    return OpenIdLogin(settings.oidc_issuer, settings.oidc_client_id, secret, settings.oidc_scopes, clock=clock)


def jwt_verifier(settings: Settings, clock: Clock) -> JwtVerifier | None:
    """Verifies the tokens of programs that others have signed; `None`: nobody may."""
    secret = plain(settings.api_jwt_secret)
    if not settings.api_jwt_issuer and not secret:
        return None
    from adapters.oauth.jwts import ProgramTokens  # noqa: PLC0415  # as above

    return ProgramTokens(issuer=settings.api_jwt_issuer, audience=settings.api_jwt_audience, secret=secret, clock=clock)
