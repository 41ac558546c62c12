"""`Services` over HTTP: the OAuth side of every configured connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jwt
import structlog
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from mcp.client.auth import PKCEParameters
from mcp.client.auth.utils import issuers_match

from adapters.oauth import grants
from adapters.oauth.connections import (
    AccountFields,
    ConnectionConfig,
    OAuthServer,
    Provider,
    binding_of,
)
from adapters.oauth.discovery import Found, OAuthClient, client_for, discover
from adapters.oauth.grants import ClientRejected, Granted, OAuthGrant, grant_of
from adapters.oauth.http import OAuthHttpClient
from bot.accounts.ports import Account, BegunAuthorization, GrantRefused, Service, TokenSet, Unreachable
from bot.accounts.tokens import ClientStore
from bot.domain import Clock, system_clock
from bot.safe_text import visible_line

log = structlog.get_logger(__name__)
LONGEST_ACCOUNT_LABEL = 200
"""Characters of an account's name."""
DISCOVERY_SECONDS = 30.0
"""Seconds for finding out where to sign in: up to ten requests, each of which has a limit of its own."""


class OAuthServices:
    """Begins, finishes, renews and ends people's grants. Keeps nothing itself but what `registrations` keeps."""

    def __init__(
        self,
        connections: Mapping[str, ConnectionConfig],
        registrations: ClientStore,
        *,
        clock: Clock = system_clock,
        http: OAuthHttpClient | None = None,
        patience: float = DISCOVERY_SECONDS,
    ) -> None:
        self._connections = connections
        self._registrations = registrations
        self._clock = clock
        self._http = http or OAuthHttpClient()
        self._patience = patience

    def service(self, connection: str) -> Service | None:
        """The service of that name; `None`: there is none (any more)."""
        found = self._connections.get(connection)
        return Service(connection, found.label, found.scopes) if found else None

    def services(self) -> tuple[Service, ...]:
        """All of them, in the order of the configuration."""
        return tuple(Service(name, found.label, found.scopes) for name, found in self._connections.items())

    def fits(self, connection: str, tokens: TokenSet) -> bool:
        """Whether the tokens were granted for what the configuration says now: only then may they be sent there."""
        found = self._connections.get(connection)
        return found is not None and tokens.kept.get("binding") == binding_of(found)

    async def begin(self, connection: str, *, state: str, redirect_uri: str, challenge: str) -> BegunAuthorization:
        """Find the endpoints, register where needed, make the link. Raises `Unreachable`."""
        found = self._connections.get(connection)
        if found is None:
            raise Unreachable(f"{connection}: is not configured (any more)")
        proof = PKCEParameters.generate()
        if isinstance(found, Provider):
            address, parameters, grant = _at_provider(found, redirect_uri)
        else:
            try:
                async with asyncio.timeout(self._patience):
                    address, parameters, grant = await self._at_server(found, redirect_uri, challenge)
            except TimeoutError:
                raise Unreachable(f"{connection}: takes too long to say where to sign in") from None
        grant = replace(grant, verifier=proof.code_verifier)
        url = prepare_grant_uri(
            address,
            grant.client_id,
            "code",
            redirect_uri=redirect_uri,
            state=state,
            **{**parameters, "code_challenge": proof.code_challenge, "code_challenge_method": "S256"},
        )
        return BegunAuthorization(url, grant.kept())

    async def finish(self, connection: str, kept: Mapping[str, Any], code: str, *, issuer: str | None) -> TokenSet:
        """Exchange the code. Raises `Rejected`, `Unreachable`."""
        grant, found = self._current(connection, kept)
        # Before the code goes anywhere: it may be another server's, sent here to be handed on (mix-up).
        if grant.sends_issuer and issuer is None:
            raise GrantRefused(f"{connection}: the callback does not say whose it is")
        if issuer is not None and grant.issuer and not issuers_match(issuer, grant.issuer):
            raise GrantRefused(f"{connection}: the callback is another authorisation server's")
        secret = _secret(found, grant)
        try:
            granted = await grants.exchange(self._http_for(found), grant, secret, code, within=found.grant_field)
        except ClientRejected:
            await self._forget(connection, grant)
            raise
        told = account_of(claims_of(granted.id_token, grant.client_id), found.account)
        grant = replace(grant, verifier="", label=told.label, verified_email=told.verified_email)
        return self._tokens(granted, grant, None)

    async def account(self, connection: str, tokens: TokenSet) -> Account:
        """Returns whose account it is, as far as the service tells; empty rather than an error."""
        try:
            grant, found = self._current(connection, tokens.kept)
        except GrantRefused:
            return Account()
        fields = found.account
        known = Account(grant.label, grant.verified_email)
        all_told = known.label and (known.verified_email or not fields.email)
        if all_told or not grant.userinfo_url:
            return known
        try:
            claims = await self._http_for(found).json(grant.userinfo_url, headers=grants.bearer(tokens.access_token))
        except Unreachable as failure:
            log.info("account_not_told", connection=connection, reason=str(failure))
            return known
        told = account_of(claims, fields)
        return Account(known.label or told.label, known.verified_email or told.verified_email)

    async def refresh(self, connection: str, tokens: TokenSet) -> TokenSet:
        """New tokens for the old. Raises `Rejected`, `Unreachable`."""
        grant, found = self._current(connection, tokens.kept)
        if tokens.refresh_token is None:
            raise GrantRefused(f"{connection}: nothing to refresh with")
        secret = _secret(found, grant)
        http, within = self._http_for(found), found.grant_field
        try:
            granted = await grants.refresh(http, grant, secret, tokens.refresh_token, within=within)
        except ClientRejected as refusal:
            if found.client_id is not None:  # the operator's to mend, and nobody's tokens are any worse for it
                raise Unreachable(f"{refusal}: is the configured client right?") from None
            await self._forget(connection, grant)
            raise
        return self._tokens(granted, grant, tokens)

    async def revoke(self, connection: str, tokens: TokenSet) -> bool:
        """Ask the service to forget them; whether it did."""
        try:
            grant, found = self._current(connection, tokens.kept)
            if not grant.revoke_url:
                return False
            return await self._revoke(found, grant, tokens)
        except (GrantRefused, Unreachable) as failure:
            log.info("tokens_not_revoked", connection=connection, reason=str(failure))
            return False

    async def _at_server(
        self, server: OAuthServer, redirect_uri: str, challenge: str
    ) -> tuple[str, Mapping[str, str], OAuthGrant]:
        http = self._http_for(server)
        found = await discover(http, server, challenge)
        client: OAuthClient = await client_for(
            http, server, found, self._registrations, redirect_uri=redirect_uri, clock=self._clock
        )
        parameters = {"resource": found.resource}
        if found.scopes:
            parameters["scope"] = " ".join(found.scopes)
        grant = replace(
            _grant(server, found, redirect_uri, client),
            secret=client.secret,
            sends_issuer=found.sends_issuer,
            resource=found.resource,
            userinfo_url=found.userinfo_url if "openid" in found.scopes else "",
        )
        return found.authorize_url, parameters, grant

    def _http_for(self, found: ConnectionConfig) -> OAuthHttpClient:
        """A provider's addresses are all the operator's own; of a server's only where it is itself."""
        return self._http.for_addresses_named_by(found.url) if isinstance(found, OAuthServer) else self._http

    def _current(self, connection: str, kept: Mapping[str, Any]) -> tuple[OAuthGrant, ConnectionConfig]:
        """What was kept, if it is still for what is configured: a secret must not go to another server's address."""
        found = self._connections.get(connection)
        grant = grant_of(kept)
        if found is None or grant.binding != binding_of(found):
            raise GrantRefused(f"{connection}: granted for what is not configured any more")
        return grant, found

    async def _revoke(self, found: ConnectionConfig, grant: OAuthGrant, tokens: TokenSet) -> bool:
        secret, http = _secret(found, grant), self._http_for(found)
        match found.revocation:
            case "github":
                return await grants.revoke_at_github(http, grant, secret, tokens)
            case "slack":
                return await grants.revoke_at_slack(http, grant, tokens)
            case _:
                return await grants.revoke(http, grant, secret, tokens)

    async def _forget(self, connection: str, grant: OAuthGrant) -> None:
        """A client that registered itself and is not known any more: the next sign-in registers anew."""
        if self._connections[connection].client_id is None:
            await self._registrations.keep(connection, grant.issuer, grant.redirect_uri, {})

    def _tokens(self, granted: Granted, grant: OAuthGrant, before: TokenSet | None) -> TokenSet:
        asked = before.scopes if before else grant.scopes
        return TokenSet(
            granted.access_token,
            granted.refresh_token or (before.refresh_token if before else None),
            self._clock() + granted.seconds if granted.seconds else None,
            asked if granted.scopes is None else granted.scopes,
            grant.kept(),
            granted.seconds,
        )


def _at_provider(provider: Provider, redirect_uri: str) -> tuple[str, Mapping[str, str], OAuthGrant]:
    parameters = dict(provider.authorize_parameters)
    if provider.scopes:
        parameters[provider.scope_parameter] = provider.scope_separator.join(provider.scopes)
    return provider.authorize_url, parameters, _grant(provider, provider, redirect_uri, provider)


def _grant(
    connection: ConnectionConfig, endpoints: Provider | Found, redirect_uri: str, client: Provider | OAuthClient
) -> OAuthGrant:
    return OAuthGrant(
        binding=binding_of(connection),
        client_id=client.client_id,
        authentication=client.authentication,
        token_url=endpoints.token_url,
        redirect_uri=redirect_uri,
        issuer=endpoints.issuer,
        revoke_url=endpoints.revoke_url,
        userinfo_url=endpoints.userinfo_url,
        scopes=endpoints.scopes,
    )


def _secret(found: ConnectionConfig, grant: OAuthGrant) -> str | None:
    return grant.secret if found.client_id is None else found.client_secret


def account_of(claims: Mapping[str, Any], fields: AccountFields) -> Account:
    """The account that the claims name; an address counts only where the service vouches for it."""
    label = next((value for name in fields.label if (value := _text(claims.get(name)))), "")
    email = _text(claims.get(fields.email)) if fields.email else ""
    vouched = not fields.verified or claims.get(fields.verified) in (True, "true")
    return Account(visible_line(label, LONGEST_ACCOUNT_LABEL), email.lower() if "@" in email and vouched else None)


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
