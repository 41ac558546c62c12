"""`Proofs` over HTTP: Sign in with Slack and Entra say which chat account a browser belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urljoin

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from mcp.client.auth import PKCEParameters

from adapters.oauth import grants
from adapters.oauth.grants import OAuthGrant
from adapters.oauth.http import OAuthHttpClient
from adapters.oauth.identity_provider import IdentityProvider
from bot.accounts.ports import BegunAuthorization, GrantRefused, Unreachable
from bot.domain import Clock, system_clock
from bot.settings import Settings, plain

SCOPE = "openid profile"
_SLACK_ID = re.compile(r"[A-Z0-9]{2,40}")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SlackLogin:
    """Sign in with Slack (docs.slack.dev/authentication/sign-in-with-slack), with the app's own client."""

    client_id: str
    client_secret: str = field(repr=False)
    api_url: str = "https://slack.com/api/"
    platform: ClassVar[str] = "slack"
    name: ClassVar[str] = "Slack"
    pkce: ClassVar[bool] = False
    """Slack wants PKCE switched on for an app first; the client's secret and the nonce do here."""

    def serves(self, tenant: str) -> bool:
        """Every workspace, as long as it is one."""
        return _SLACK_ID.fullmatch(tenant) is not None

    def metadata_url(self, tenant: str) -> str:
        """Returns Slack's metadata address, which is the same for every workspace."""
        return urljoin(self.api_url, "/.well-known/openid-configuration")

    def hints(self, tenant: str) -> Mapping[str, str]:
        """Which workspace to sign in to."""
        return {"team": tenant}

    def person(self, claims: Mapping[str, Any]) -> tuple[str, str]:
        """Workspace and user."""
        return str(claims.get("https://slack.com/team_id", "")), str(claims.get("https://slack.com/user_id", ""))


@dataclass(frozen=True, slots=True)
class EntraLogin:
    """Sign-in with the Microsoft identity platform (learn.microsoft.com/entra/identity-platform/v2-protocols-oidc)."""

    client_id: str
    client_secret: str = field(repr=False)
    tenants: frozenset[str]
    """Tenants whose people the client can sign in, in lower case; nobody else can prove who they are."""
    login_url: str = "https://login.microsoftonline.com"
    platform: ClassVar[str] = "teams"
    name: ClassVar[str] = "Microsoft"
    pkce: ClassVar[bool] = True

    def serves(self, tenant: str) -> bool:
        """A tenant by its id: other names have other issuers."""
        return _GUID.fullmatch(tenant) is not None and tenant.lower() in self.tenants

    def metadata_url(self, tenant: str) -> str:
        """The tenant's own: its issuer vouches for that tenant's people alone."""
        return f"{self.login_url.rstrip('/')}/{tenant}/v2.0/.well-known/openid-configuration"

    def hints(self, tenant: str) -> Mapping[str, str]:
        """Nothing: the tenant is in the address."""
        return {}

    def person(self, claims: Mapping[str, Any]) -> tuple[str, str]:
        """Tenant and object id."""
        return str(claims.get("tid", "")), str(claims.get("oid", ""))


Login = SlackLogin | EntraLogin


def logins_from(settings: Settings) -> list[Login]:
    """The logins that the environment has a client for."""
    logins: list[Login] = []
    slack_secret = plain(settings.slack_client_secret)
    if settings.slack_client_id and slack_secret:
        logins.append(SlackLogin(settings.slack_client_id, slack_secret, settings.slack_api_url))
    own = settings.entra_login_client_id is None
    client_id = settings.microsoft_app_id if own else settings.entra_login_client_id
    secret = plain(settings.microsoft_app_password if own else settings.entra_login_client_secret)
    if client_id and secret:
        home = {settings.microsoft_app_tenant_id} if settings.microsoft_app_tenant_id else set()
        # The bot's own app signs in the people of its tenant, unless it was made for several.
        alone = own and settings.microsoft_app_type != "MultiTenant"
        tenants = home if alone else home | set(settings.teams_allowed_tenants)
        logins.append(EntraLogin(client_id, secret, frozenset(t.lower() for t in tenants), settings.teams_login_url))
    return logins


class ChatProofs:
    """Asks a chat platform who sits before a browser."""

    def __init__(
        self, logins: Sequence[Login], *, clock: Clock = system_clock, http: OAuthHttpClient | None = None
    ) -> None:
        self._logins = {login.platform: login for login in logins}
        self._clock = clock
        self._http = http or OAuthHttpClient()
        self._providers: dict[str, IdentityProvider] = {}

    def provider(self, person_id: str) -> str | None:
        """Returns the service whose sign-in proves that a browser belongs to this person; `None`: there is none."""
        found = self._login_of(person_id)
        return found[0].name if found else None

    async def begin(self, person_id: str, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        """Where to send the browser. Raises `Unreachable`."""
        found = self._login_of(person_id)
        if found is None:
            raise Unreachable("nobody can prove who this person is")
        login, tenant = found
        metadata = await self._provider(login, tenant).metadata()
        proof = PKCEParameters.generate() if login.pkce else None
        more = {"nonce": nonce, **login.hints(tenant)}
        if proof is not None:
            more |= {"code_challenge": proof.code_challenge, "code_challenge_method": "S256"}
        url = prepare_grant_uri(
            metadata["authorization_endpoint"],
            login.client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=SCOPE,
            state=state,
            **more,
        )
        verifier = proof.code_verifier if proof else ""
        kept = {"platform": login.platform, "tenant": tenant, "redirect_uri": redirect_uri, "verifier": verifier}
        return BegunAuthorization(url, kept)

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str) -> str:
        """Id of the person whose browser it is. Raises `Rejected`, `Unreachable`."""
        tenant = str(kept.get("tenant", ""))
        login = self._logins.get(str(kept.get("platform", "")))
        if login is None or not login.serves(tenant):
            raise GrantRefused("the proof of identity is not configured any more")
        provider = self._provider(login, tenant)
        grant = OAuthGrant(
            binding="",
            client_id=login.client_id,
            authentication="client_secret_post",
            token_url=(await provider.metadata())["token_endpoint"],
            redirect_uri=str(kept.get("redirect_uri", "")),
            verifier=str(kept.get("verifier", "")),
        )
        granted = await grants.exchange(self._http, grant, login.client_secret, code)
        if granted.id_token is None:
            raise GrantRefused(f"{login.name}: gave no ID token")
        claims = await provider.verify(granted.id_token, audience=login.client_id, nonce=nonce)
        return _person_id(login, tenant, claims)

    def _login_of(self, person_id: str) -> tuple[Login, str] | None:
        platform, _, rest = person_id.partition(":")
        tenant, _, user = rest.partition(":")
        login = self._logins.get(platform)
        return (login, tenant) if login is not None and user and login.serves(tenant) else None

    def _provider(self, login: Login, tenant: str) -> IdentityProvider:
        url = login.metadata_url(tenant)
        if url not in self._providers:
            self._providers[url] = IdentityProvider(self._http, url, self._clock)
        return self._providers[url]


def _person_id(login: Login, tenant: str, claims: Mapping[str, Any]) -> str:
    where, user = login.person(claims)
    pattern = _SLACK_ID if login.platform == "slack" else _GUID
    if not pattern.fullmatch(where) or not pattern.fullmatch(user):
        raise GrantRefused(f"{login.name}: the ID token names nobody")
    if login.platform == "teams":
        # Entra writes ids in lower case everywhere, but says so nowhere; the tenant is spelt as we asked for it.
        if where.lower() != tenant.lower():
            raise GrantRefused(f"{login.name}: the ID token is another tenant's")
        where, user = tenant, user.lower()
    return f"{login.platform}:{where}:{user}"
