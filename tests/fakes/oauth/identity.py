"""A provider with userinfo and OpenID Connect, strict about what clients send. Stands in for Google's kind, for Slack
(Sign in with Slack) and for Entra (one issuer for each tenant).

async with identity_provider(client_id="c", client_secret="s", users={"ana": slack_user("T1", "U1")}) as provider:
    ... provider.base ... provider.log
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

Claims = dict[str, Any]
User = Mapping[str, Any]
"""The claims of somebody who is signed in there."""


def slack_user(team: str, user: str, **more: Any) -> User:
    """Somebody in a Slack workspace."""
    return {"sub": user, "https://slack.com/team_id": team, "https://slack.com/user_id": user, **more}


def entra_user(tenant: str, oid: str, **more: Any) -> User:
    """Somebody in an Entra tenant."""
    return {"sub": f"pairwise-{oid}", "tid": tenant, "oid": oid, **more}


@cache
def signing_key(name: str) -> rsa.RSAPrivateKey:
    """An RSA key; the same for the same name within a process, since making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class _Code:
    user: str
    query: Mapping[str, str]
    issuer: str


@dataclass
class IdentityFake:
    """The provider as a test sees and changes it. Who consents is who the browser's `user` cookie names."""

    client_id: str
    client_secret: str
    users: dict[str, User] = field(default_factory=dict)
    base: str = ""
    codes: dict[str, _Code] = field(default_factory=dict)
    access_tokens: dict[str, str] = field(default_factory=dict)
    refresh_tokens: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    """`token:authorization_code`, `revoke`, `userinfo` and so on, in order."""
    asked: list[Mapping[str, str]] = field(default_factory=list)
    """The queries of the links that were opened."""
    denying: bool = False
    key_name: str = "first"
    """Of the key that signs."""
    published: str = "first"
    """Of the key that is published."""
    claims: Claims = field(default_factory=dict)
    """Said over what the ID token would say (`None`: left out)."""
    shape: Callable[[Claims], Claims] = dict
    """Makes the token answer that of a provider with its own ideas."""
    faults: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and body to answer instead, by the last part of the path."""
    seconds: int = 3600
    id_token_algorithm: str = "RS256"

    def issuer(self, tenant: str) -> str:
        """Of a tenant; without one, of the whole product."""
        return f"{self.base}/{tenant}/v2.0" if tenant else self.base

    def routes(self) -> list[web.RouteDef]:
        """With and without a tenant before the path."""
        both = []
        for before in ("", "/{tenant}/v2.0"):
            both += [
                web.get(f"{before}/.well-known/openid-configuration", self.metadata),
                web.get(f"{before}/keys", self.keys),
                web.get(f"{before}/authorize", self.authorize),
                web.post(f"{before}/token", self.token),
                web.post(f"{before}/revoke", self.revoke),
                web.get(f"{before}/userinfo", self.userinfo),
            ]
        return both

    async def metadata(self, request: web.Request) -> web.Response:
        issuer = self.issuer(request.match_info.get("tenant", ""))
        ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return web.json_response({"issuer": issuer, **{name: f"{issuer}/{end}" for name, end in ends.items()}})

    async def keys(self, _: web.Request) -> web.Response:
        self.log.append("keys")
        public = jwt.algorithms.RSAAlgorithm.to_jwk(signing_key(self.published).public_key(), as_dict=True)
        return web.json_response({"keys": [{**public, "kid": self.published, "use": "sig", "alg": "RS256"}]})

    async def authorize(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.asked.append(query)
        if query.get("client_id") != self.client_id or query.get("response_type") != "code":
            raise web.HTTPBadRequest(text="unknown client or response type")
        user = request.cookies.get("user", "")
        said = {"state": query["state"], "iss": self.issuer(request.match_info.get("tenant", ""))}
        if self.denying or user not in self.users:
            said["error"] = "access_denied"
        else:
            said["code"] = secrets.token_urlsafe(24)
            self.codes[said["code"]] = _Code(user, query, said["iss"])
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode(said)}")

    async def token(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.log.append(f"token:{form.get('grant_type')}")
        if not self._authenticated(request, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        if form.get("grant_type") == "refresh_token":
            user = self.refresh_tokens.pop(str(form.get("refresh_token")), None)
            answer = self._tokens(user) if user else None
        else:
            answer = self._exchanged(form)
        if answer is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response(self.shape(answer))

    async def revoke(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.log.append("revoke")
        token = str(form.get("token"))
        user = self.refresh_tokens.get(token) or self.access_tokens.get(token)
        self.access_tokens = {name: whose for name, whose in self.access_tokens.items() if whose != user}
        self.refresh_tokens = {name: whose for name, whose in self.refresh_tokens.items() if whose != user}
        return web.Response()

    async def userinfo(self, request: web.Request) -> web.Response:
        self.log.append("userinfo")
        user = self.access_tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if user is None:
            return web.json_response({"error": "invalid_token"}, status=401)
        return web.json_response(dict(self.users[user]))

    # ------------------------------------------------------------------------------------------------ parts

    def _authenticated(self, request: web.Request, form: Mapping[str, object]) -> bool:
        header = request.headers.get("Authorization", "")
        if header.startswith("Basic "):
            client, _, secret = base64.b64decode(header[6:]).decode().partition(":")
            return (unquote(client), unquote(secret)) == (self.client_id, self.client_secret)
        return (form.get("client_id"), form.get("client_secret")) == (self.client_id, self.client_secret)

    def _exchanged(self, form: Mapping[str, object]) -> Claims | None:
        code = self.codes.pop(str(form.get("code")), None)
        if code is None or form.get("redirect_uri") != code.query["redirect_uri"]:
            return None
        challenge = code.query.get("code_challenge")
        if challenge is not None:
            digest = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != challenge:
                return None
        answer = self._tokens(code.user)
        if "openid" in code.query.get("scope", "").split():
            answer["id_token"] = self.id_token(code.user, code.issuer, code.query.get("nonce"))
        return answer

    def _tokens(self, user: str) -> Claims:
        access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        self.access_tokens[access] = user
        self.refresh_tokens[refresh] = user
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": self.seconds}

    def id_token(self, user: str, issuer: str, nonce: str | None) -> str:
        """Signed, with what the test wants to be wrong in it."""
        now = int(time.time())
        claims = {"iss": issuer, "aud": self.client_id, "iat": now, "exp": now + 300, "nonce": nonce}
        claims |= dict(self.users[user]) | self.claims
        said = {name: value for name, value in claims.items() if value is not None}
        headers = {"kid": self.key_name}
        if self.id_token_algorithm == "HS256":
            return jwt.encode(said, self.client_secret, "HS256", headers=headers)
        if self.id_token_algorithm == "none":
            return jwt.encode(said, None, "none", headers=headers)
        return jwt.encode(said, signing_key(self.key_name), "RS256", headers=headers)


@asynccontextmanager
async def identity_provider(
    users: Mapping[str, User],
    *,
    client_id: str = "our-client",
    client_secret: str = "our-client-secret-0123456789abcdef",
) -> AsyncIterator[IdentityFake]:
    """A provider on a free port."""
    fake = IdentityFake(client_id, client_secret, dict(users))

    @web.middleware
    async def faults(request: web.Request, handler: Any) -> web.StreamResponse:
        status, body = fake.faults.get(request.path.rpartition("/")[2], (0, ""))
        if status:
            return web.Response(status=status, text=body, content_type="application/json")
        return await handler(request)

    application = web.Application(middlewares=[faults])
    application.add_routes(fake.routes())
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        fake.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield fake
    finally:
        await runner.cleanup()
