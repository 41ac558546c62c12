"""`OpenIdSignIn` over HTTP: people sign in to the page at the configured issuer (OpenID Connect Core 1.0, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import structlog
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from adapters.oauth import grants
from adapters.oauth.grants import OAuthGrant
from adapters.oauth.http import OAuthHttpClient, host_of, may_follow
from adapters.oauth.identity_provider import IdentityProvider
from adapters.oauth.signed_tokens import claims_from
from bot.accounts.ports import BegunAuthorization, GrantRefused, Unreachable
from bot.crypto import random_token
from bot.domain import Clock, system_clock
from bot.identity.ports import Claims

log = structlog.get_logger(__name__)
OPENID = "openid"
_NAMES = {
    "accounts.google.com": "Google",
    "login.microsoftonline.com": "Microsoft",
    "login.microsoftonline.us": "Microsoft",
    "sts.windows.net": "Microsoft",
    "slack.com": "Slack",
}
_OKTA = (".okta.com", ".oktapreview.com", ".okta-emea.com", ".okta-gov.com")


class OpenIdLogin:
    """Authorization code with PKCE at one issuer.

    An address is taken for the person's only with `email_verified`. Entra sends none, since its administrators can
    write any address into an account: whoever signs in there has no address that is vouched for. Slack wants PKCE
    switched on for the app.

    Args:
        client_secret: `None`: a public client, for which PKCE vouches alone.
        scopes: what is asked for, separated by spaces.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None,
        scopes: str,
        *,
        clock: Clock = system_clock,
        http: OAuthHttpClient | None = None,
    ) -> None:
        self.name = issuer_name(issuer)
        self.issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._scopes = " ".join(dict.fromkeys([OPENID, *scopes.split()]))
        self._http = http or OAuthHttpClient()
        self._provider = IdentityProvider.of_issuer(self._http, issuer, clock)

    async def begin(self, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        """Where to send the browser. Raises `Unreachable`."""
        metadata, verifier = await self._provider.metadata(), random_token()
        url = prepare_grant_uri(
            metadata["authorization_endpoint"],
            self._client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=self._scopes,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),  # type: ignore[no-untyped-call]  # as in grants
            code_challenge_method="S256",
        )
        kept = {"issuer": self.issuer, "client": self._client_id, "redirect_uri": redirect_uri, "verifier": verifier}
        return BegunAuthorization(url, kept)

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str, issuer: str | None) -> Claims:
        """Who signed in. Raises `GrantRefused`, `Unreachable`."""
        if (kept.get("issuer"), kept.get("client")) != (self.issuer, self._client_id):
            raise GrantRefused("begun at an issuer that is not configured any more")
        metadata = await self._provider.metadata()
        # Before the code goes anywhere: it may be another issuer's, sent here to be handed on (mix-up, RFC 9207).
        if issuer is None and metadata.get("authorization_response_iss_parameter_supported") is True:
            raise GrantRefused(f"{host_of(self.issuer)}: the callback does not say whose it is")
        if issuer is not None and issuer != self.issuer:
            raise GrantRefused(f"{host_of(self.issuer)}: the callback is another issuer's")
        grant = OAuthGrant(
            binding="",
            client_id=self._client_id,
            authentication=self._authentication(metadata),
            token_url=metadata["token_endpoint"],
            redirect_uri=str(kept.get("redirect_uri", "")),
            verifier=str(kept.get("verifier", "")),
        )
        granted = await grants.exchange(self._http, grant, self._client_secret, code)
        if granted.id_token is None:
            raise GrantRefused(f"{host_of(self.issuer)}: gave no ID token")
        claims = await self._provider.verify(granted.id_token, audience=self._client_id, nonce=nonce)
        if "email" not in claims:
            more = await self._more_of(claims["sub"], metadata, granted.access_token)
            # Who vouches for an address is who says it.
            claims = {**more, **claims, "email_verified": more.get("email_verified")}
        return claims_from(claims, self.issuer)

    def _authentication(self, metadata: Mapping[str, Any]) -> str:
        """As the issuer takes it; without a list, as RFC 8414 has it."""
        if self._client_secret is None:
            return "none"
        takes = metadata.get("token_endpoint_auth_methods_supported")
        posted = isinstance(takes, list) and "client_secret_post" in takes and "client_secret_basic" not in takes
        return "client_secret_post" if posted else "client_secret_basic"

    async def _more_of(self, subject: str, metadata: Mapping[str, Any], access_token: str) -> Mapping[str, Any]:
        """What the userinfo address says of the subject; nothing where there is none, or it cannot be asked: whoever
        signed in is known without."""
        url = metadata.get("userinfo_endpoint")
        if not isinstance(url, str) or not may_follow(url, self.issuer):
            return {}
        try:
            said = await self._http.json(url, headers=grants.bearer(access_token))
        except Unreachable as failure:
            log.warning("userinfo_not_told", reason=str(failure))
            return {}
        if said.get("sub") != subject:
            raise GrantRefused(f"{host_of(self.issuer)}: its userinfo is somebody else's")
        return said


def issuer_name(issuer: str) -> str:
    """What people call an issuer: by its host, since that is what cannot be made up."""
    host = (urlsplit(issuer).hostname or "").lower()
    return "Okta" if host.endswith(_OKTA) else _NAMES.get(host, host)
