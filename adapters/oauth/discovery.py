"""From a tool server's address to its authorisation server's endpoints, and to our client there.

modelcontextprotocol.io/specification/2025-11-25/basic/authorization: the protected resource's metadata (RFC 9728),
named by the refusal or at its well-known places, then the authorisation server's (RFC 8414 or OpenID Connect).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from mcp.types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, BaseModel, ValidationError

from adapters.oauth.connections import OAuthServer
from adapters.oauth.http import OAuthAnswer, OAuthHttpClient, host_of, may_follow
from adapters.shared.untrusted_json import has_too_many_values
from bot.accounts.ports import Unreachable
from bot.accounts.tokens import ClientStore
from bot.domain import Clock

_VERSION = {"MCP-Protocol-Version": LATEST_PROTOCOL_VERSION}
_PROBE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"' + LATEST_PROTOCOL_VERSION + '",'
    '"capabilities":{},"clientInfo":{"name":"countersign","version":"1"}}}'
)
DocumentT = TypeVar("DocumentT", bound=BaseModel)
MOST_VALUES = 5_000
"""Lists, objects, and elements and members of them, of a document. Those of big services have a few hundred; half a
megabyte of what should be addresses takes 0.3 s to be refused, one by one."""
OFFLINE = "offline_access"
"""The scope by which OpenID Connect servers give a refresh token."""


class _Metadata(OAuthMetadata):
    """RFC 8414's, with what two further standards add."""

    authorization_response_iss_parameter_supported: bool = False
    """RFC 9207."""
    userinfo_endpoint: str | None = None
    """OpenID Connect."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of an authorisation server, and what to ask of it."""

    issuer: str
    authorize_url: str
    token_url: str
    resource: str
    """What the tokens are for (RFC 8707)."""
    scopes: tuple[str, ...] = ()
    register_url: str = ""
    revoke_url: str = ""
    userinfo_url: str = ""
    sends_issuer: bool = False
    """Whether its callbacks carry `iss`, so that one without it is not its own."""
    authentication: Sequence[str] = field(default=("client_secret_basic",))
    """How clients may authenticate (the default is RFC 8414's)."""


async def discover(http: OAuthHttpClient, server: OAuthServer, challenge: str) -> Found:
    """Ask the server, then its authorisation server. Raises `Unreachable`, also where it lacks what is required."""
    refusal = _refusal(challenge or await _probe(http, server))
    resource = await _resource(http, server, extract_resource_metadata_from_www_auth(refusal))
    issuer = str(resource.authorization_servers[0]) if resource else _origin(server.url)
    metadata = await _authorization_server(http, server, issuer)
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise Unreachable(f"{server.connection}: its authorisation server does not say that it supports PKCE (S256)")
    canonical = resource_url_from_server_url(server.url)
    return Found(
        issuer=str(metadata.issuer),
        authorize_url=_followed(server, metadata.authorization_endpoint),
        token_url=_followed(server, metadata.token_endpoint),
        resource=str(resource.resource) if resource else canonical,
        scopes=_scopes(server, extract_scope_from_www_auth(refusal), resource, metadata),
        register_url=_followed(server, metadata.registration_endpoint),
        revoke_url=_followed(server, metadata.revocation_endpoint),
        userinfo_url=_followed(server, metadata.userinfo_endpoint),
        sends_issuer=metadata.authorization_response_iss_parameter_supported,
        authentication=tuple(metadata.token_endpoint_auth_methods_supported or ("client_secret_basic",)),
    )


def _refusal(challenge: str) -> httpx.Response:
    """What the SDK's helpers read a challenge from."""
    readable = challenge.encode("ascii", "ignore").decode().replace("\r", " ").replace("\n", " ")
    return httpx.Response(401, headers={"WWW-Authenticate": readable} if readable else {})


async def _probe(http: OAuthHttpClient, server: OAuthServer) -> str:
    """What the server answers to somebody without a token; empty: nothing that helps."""
    headers = {
        **server.headers,
        **_VERSION,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    answer = await http.request("POST", server.url, body=_PROBE, headers=headers)
    return answer.headers.get("WWW-Authenticate", "") if answer.status in (401, 403) else ""


async def _resource(http: OAuthHttpClient, server: OAuthServer, named: str | None) -> ProtectedResourceMetadata | None:
    """`None`: the server has no such document (it is of the specification's first version)."""
    if named and not may_follow(named, server.url):
        raise Unreachable(f"{server.connection}: it names an address for its metadata that is not one to go to")
    for url in build_protected_resource_metadata_discovery_urls(named, server.url):
        found = _document(await http.request("GET", url, headers=_VERSION), ProtectedResourceMetadata)
        if found is None:
            continue
        if not check_resource_allowed(resource_url_from_server_url(server.url), str(found.resource)):
            raise Unreachable(f"{server.connection}: its metadata is about another server")
        return found
    return None


async def _authorization_server(http: OAuthHttpClient, server: OAuthServer, issuer: str) -> _Metadata:
    if not may_follow(issuer, server.url):
        raise Unreachable(f"{server.connection}: it names an authorisation server that is not one to go to")
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server.url):
        metadata = _document(await http.request("GET", url, headers=_VERSION), _Metadata)
        if metadata is None:
            continue
        try:
            validate_metadata_issuer(metadata, issuer)
        except OAuthFlowError:
            raise Unreachable(f"{server.connection}: its authorisation server says it is another one") from None
        return metadata
    raise Unreachable(f"{server.connection}: its authorisation server has no metadata")


def _document(answer: OAuthAnswer, kind: type[DocumentT]) -> DocumentT | None:
    if has_too_many_values(answer.body, MOST_VALUES):
        return None
    try:
        return kind.model_validate_json(answer.body) if answer.status in (200, 201) else None
    except ValidationError:
        return None


def _scopes(
    server: OAuthServer, challenged: str | None, resource: ProtectedResourceMetadata | None, metadata: _Metadata
) -> tuple[str, ...]:
    """The operator's and what the refusal asks for; else all that the server has (the specification's order)."""
    asked = (*server.scopes, *(challenged or "").split())
    if not asked and resource is not None:
        asked = tuple(resource.scopes_supported or ())
    # Without it, servers of OpenID Connect give no refresh token, and the person would have to sign in every hour.
    offline = (OFFLINE,) if asked and OFFLINE in (metadata.scopes_supported or ()) else ()
    return tuple(dict.fromkeys((*asked, *offline)))


def _followed(server: OAuthServer, url: object) -> str:
    address = "" if url is None else str(url)
    if address and not may_follow(address, server.url):
        raise Unreachable(f"{server.connection}: its authorisation server names an address that is not one to go to")
    return address


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


NAME = "Countersign"
"""Our client's name, shown on consent pages."""
_PREFERRED = ("client_secret_post", "client_secret_basic", "none")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client and how it authenticates."""

    client_id: str
    authentication: str
    secret: str | None = field(default=None, repr=False)
    """`None` for public clients, and for the operator's: that one's is read from the configuration when needed."""
    until: float | None = None
    """Seconds since the epoch at which its secret ends; `None`: never."""


async def client_for(
    http: OAuthHttpClient,
    server: OAuthServer,
    found: Found,
    registrations: ClientStore,
    *,
    redirect_uri: str,
    clock: Clock,
) -> OAuthClient:
    """The operator's client; else the one registered before; else a new one (RFC 7591), which is kept.

    Raises `Unreachable`.
    """
    if server.client_id is not None:
        offered = found.authentication if server.client_secret else ("none",)
        return OAuthClient(server.client_id, _authentication(offered))
    before = await registrations.get(server.connection, found.issuer, redirect_uri)
    kept = _readable(before, found.scopes, clock())
    if kept is not None:
        return kept
    client = await _register(http, found, redirect_uri)
    as_json = {**asdict(client), "scopes": list(found.scopes)}
    await registrations.keep(server.connection, found.issuer, redirect_uri, as_json)
    return client


async def _register(http: OAuthHttpClient, found: Found, redirect_uri: str) -> OAuthClient:
    host = host_of(found.issuer)
    if not found.register_url:
        raise Unreachable(f"{host}: takes no registrations: give the server a clientId in mcp.json")
    wanted = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect_uri)],
        client_name=NAME,
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=_authentication(found.authentication),
        scope=" ".join(found.scopes) or None,
    )
    body = wanted.model_dump_json(by_alias=True, exclude_none=True)
    answer = await http.request("POST", found.register_url, body=body, headers={"Content-Type": "application/json"})
    given = _document(answer, OAuthClientInformationFull)
    if given is None or not given.client_id:
        raise Unreachable(f"{host}: did not register us (it answered {answer.status})")
    method = given.token_endpoint_auth_method or wanted.token_endpoint_auth_method or "none"
    if method not in _PREFERRED:
        raise Unreachable(f"{host}: registered us for a way to authenticate that we do not have")
    secret = given.client_secret if method != "none" else None
    return OAuthClient(given.client_id, method, secret, float(given.client_secret_expires_at or 0) or None)


def _authentication(offered: Sequence[str]) -> str:
    return next((method for method in _PREFERRED if method in offered), "client_secret_basic")


def _readable(kept: Mapping[str, Any] | None, scopes: Sequence[str], now: float) -> OAuthClient | None:
    """The kept client while it is good, and for these scopes; `None` also for what another release wrote."""
    if not kept or not isinstance(kept.get("client_id"), str) or kept.get("authentication") not in _PREFERRED:
        return None
    until = kept.get("until")
    if isinstance(until, int | float) and until <= now:
        return None
    # A client may ask for what it was registered with and for nothing more (RFC 7591, 2).
    if not set(scopes) <= set(kept.get("scopes", ())):
        return None
    return OAuthClient(kept["client_id"], kept["authentication"], kept.get("secret"))
