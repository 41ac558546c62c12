"""An MCP server that demands tokens, and its authorisation server: the MCP SDK's own, with everything kept in memory.

async with protected_server() as server:
    ... server.url ... server.tokens ... server.expire("ana")
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.fastmcp import FastMCP
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.asgi import served_asgi

SCOPE = "tools"
METADATA = "/.well-known/oauth-authorization-server"


@dataclass
class ProtectedServer:
    """The server as a test sees and changes it. Who consents is who the browser's `user` cookie names."""

    base: str
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    refresh_tokens: dict[str, RefreshToken] = field(default_factory=dict)
    tickets: dict[str, tuple[str, AuthorizationParams]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    """Said over what the SDK would say (`None`: left out)."""
    faults: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and body to answer instead, by path."""
    log: list[str] = field(default_factory=list)
    """`POST /token` and so on, in order."""
    asked: list[AuthorizationParams] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set, repr=False)
    """All codes, tokens, verifiers and secrets of clients that there have been."""
    denying: bool = False
    says_issuer: bool = True
    seconds: int = 3600

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return f"{self.base}/mcp"

    def expire(self, user: str) -> None:
        """That person's access tokens are over."""
        for name, token in self.tokens.items():
            if token.subject == user:
                self.tokens[name] = token.model_copy(update={"expires_at": int(time.time()) - 10})

    def forget(self, user: str) -> None:
        """As if that person had taken the grant back at the service."""
        self.tokens = {name: token for name, token in self.tokens.items() if token.subject != user}
        self.refresh_tokens = {name: t for name, t in self.refresh_tokens.items() if t.subject != user}

    def who(self, access_token: str) -> str | None:
        """Whose token it is, while it is good."""
        token = self.tokens.get(access_token)
        return token.subject if token and (token.expires_at or 0) > time.time() else None

    def count(self, line: str) -> int:
        """How often something was asked for."""
        return self.log.count(line)

    # ------------------------------------------------------------------------------- OAuthAuthorizationServerProvider

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info
        self.secrets |= set(filter(None, [client_info.client_secret]))

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        ticket = secrets.token_urlsafe(24)
        self.asked.append(params)
        self.tickets[ticket] = (client.client_id or "", params)
        return f"{self.base}/consent?ticket={ticket}"

    async def consent(self, request: Request) -> Response:
        """The page on which somebody says yes; here at once."""
        client_id, params = self.tickets.pop(request.query_params["ticket"])
        said = {"state": params.state, "iss": f"{self.base}/" if self.says_issuer else None}
        if self.denying:
            return RedirectResponse(construct_redirect_uri(str(params.redirect_uri), error="access_denied", **said))
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 60,
            client_id=client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=request.cookies.get("user", "ana"),
        )
        self.codes[code.code] = code
        self.secrets |= {code.code, *filter(None, [params.state])}
        return RedirectResponse(construct_redirect_uri(str(params.redirect_uri), code=code.code, **said))

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        code = self.codes.pop(authorization_code.code, None)
        if code is None:
            raise TokenError("invalid_grant")
        return self._issue(code.client_id, code.subject or "", code.scopes, code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh_tokens.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        old = self.refresh_tokens.pop(refresh_token.token)
        return self._issue(old.client_id, old.subject or "", scopes, old.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.forget(token.subject or "")

    def _issue(self, client_id: str, user: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        until = int(time.time()) + self.seconds
        facts: dict[str, Any] = {"client_id": client_id, "scopes": scopes, "resource": resource, "subject": user}
        self.secrets |= {access, refresh}
        self.tokens[access] = AccessToken(token=access, expires_at=until, **facts)
        self.refresh_tokens[refresh] = RefreshToken(token=refresh, **facts)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.seconds, scope=" ".join(scopes))


def caller() -> str:
    """In a tool: whose token the call came with."""
    token = get_access_token()
    return (token.subject or "") if token else ""


@asynccontextmanager
async def protected_server(
    add_tools: Callable[[FastMCP], None] | None = None, **settings: Any
) -> AsyncIterator[ProtectedServer]:
    """A server with the tool `whoami`, and with what `add_tools` adds."""
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = ProtectedServer(base, **settings)
    registering = ClientRegistrationOptions(
        enabled=True, valid_scopes=[SCOPE, "more", "offline_access"], default_scopes=[SCOPE]
    )
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(base),
        resource_server_url=AnyHttpUrl(f"{base}/mcp"),
        required_scopes=[SCOPE],
        client_registration_options=registering,
        revocation_options=RevocationOptions(enabled=True),
        validate_token_resource=True,
    )
    mcp = FastMCP("protected", auth_server_provider=server, auth=auth, log_level="CRITICAL")
    mcp.tool(name="whoami")(_whoami)
    if add_tools is not None:
        add_tools(mcp)
    mcp.custom_route("/consent", methods=["GET"])(server.consent)
    app = mcp.streamable_http_app()

    async def metadata(_: Request) -> Response:
        said = build_metadata(auth.issuer_url, None, registering, RevocationOptions(enabled=True))
        document = {
            **said.model_dump(mode="json", exclude_none=True),
            "scopes_supported": [SCOPE],
            "authorization_response_iss_parameter_supported": server.says_issuer,
            **server.metadata,
        }
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    app.router.routes.insert(0, Route(METADATA, metadata))
    async with served_asgi(_watched(app, server), listening):
        yield server


def _whoami() -> str:
    """Who the server thinks you are."""
    return caller()


def _noting(receive: Receive, server: ProtectedServer) -> Receive:
    """What our side proves itself with is nobody else's to know."""

    async def noted() -> Message:
        message = await receive()
        form = parse_qs(message.get("body", b"").decode()) if message["type"] == "http.request" else {}
        server.secrets |= {*form.get("code_verifier", []), *form.get("client_secret", [])}
        return message

    return noted


def _watched(app: ASGIApp, server: ProtectedServer) -> ASGIApp:
    async def watch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            server.log.append(f"{scope['method']} {scope['path']}")
            if scope["path"] in server.faults:
                status, body = server.faults[scope["path"]]
                await Response(body, status, media_type="application/json")(scope, receive, send)
                return
        await app(scope, _noting(receive, server) if scope.get("path") == "/token" else receive, send)

    return watch
