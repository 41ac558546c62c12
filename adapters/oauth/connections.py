"""The services at which people can have accounts: from `mcp.json`, and from `connections.yaml` (`CONNECTIONS_FILE`).

    version: 1
    connections:
      google:                                # a preset of that name: google, microsoft, github, slack
        clientId: ${GOOGLE_CLIENT_ID}
        clientSecret: ${GOOGLE_CLIENT_SECRET}
      tracker:                               # any other, by its addresses
        label: Acme Tracker
        clientId: ${TRACKER_CLIENT_ID}
        clientSecret: ${TRACKER_CLIENT_SECRET}
        authorizeUrl: https://tracker.example.com/oauth/authorize
        tokenUrl: https://tracker.example.com/oauth/token
        userInfoUrl: https://tracker.example.com/oauth/userinfo
        scopes: [read, write]
        account: {label: [login], email: email, verified: email_verified}

A key that is not known is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from adapters.oauth.http import is_safe_address
from policies.yaml_values import (
    LineError,
    Located,
    child,
    choice,
    mapping,
    only_keys,
    read_yaml,
    text,
    texts,
    whole_number,
)

ClientAuthentication = Literal["client_secret_post", "client_secret_basic", "none"]
Revocation = Literal["rfc7009", "github", "slack"]


class ConnectionsError(Exception):
    """What is configured cannot be used; the text says where and why, and holds no configured value."""


@dataclass(frozen=True, slots=True)
class AccountFields:
    """How a provider tells whose account it is: names of claims, in its ID token or at its userinfo address."""

    label: tuple[str, ...] = ("email", "preferred_username", "name")
    """The first of these that is there names the account."""
    email: str = ""
    """An address that the provider vouches for; empty: it vouches for none."""
    verified: str = ""
    """A claim that has to be true for that; empty: it always vouches."""


OPENID = AccountFields(email="email", verified="email_verified")
"""The fields as OpenID Connect Core 5.1 names them."""


@dataclass(frozen=True, slots=True)
class OAuthServer:
    """A tool server that speaks MCP's authorisation (`auth: oauth`)."""

    connection: str
    """Its name in `mcp.json`."""
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request to it (a gateway's key, perhaps)."""
    scopes: tuple[str, ...] = ()
    """What is asked for; empty: what the server says."""
    client_id: str | None = None
    """Id of a client that the operator registered; `None`: one is registered when needed."""
    client_secret: str | None = field(default=None, repr=False)
    grant_field: ClassVar[str] = ""
    revocation: ClassVar[Revocation] = "rfc7009"
    account: ClassVar[AccountFields] = OPENID

    @property
    def label(self) -> str:
        """Name for people."""
        return self.connection


@dataclass(frozen=True, slots=True)
class Provider:
    """A service of `connections.yaml`, for tool servers that only take a bearer header."""

    connection: str
    """Its name in the file."""
    label: str
    authorize_url: str
    token_url: str
    client_id: str = ""
    """Empty in a preset, which has no client yet."""
    client_secret: str | None = field(default=None, repr=False)
    revoke_url: str = ""
    userinfo_url: str = ""
    issuer: str = ""
    """What `iss` has to be where the callback has one (RFC 9207); empty: not checked."""
    scopes: tuple[str, ...] = ()
    authorize_parameters: Mapping[str, str] = field(default_factory=dict)
    """What it wants besides, such as `access_type=offline`."""
    authentication: ClientAuthentication = "client_secret_post"
    scope_parameter: str = "scope"
    scope_separator: str = " "
    grant_field: str = ""
    """Where in its answer the person's grant is, when not at the top (Slack: `authed_user`)."""
    revocation: Revocation = "rfc7009"
    account: AccountFields = OPENID


ConnectionConfig = OAuthServer | Provider


@dataclass(frozen=True, slots=True)
class ProviderUse:
    """A tool server that takes a provider's token (`auth: {provider: …, scopes: […]}`)."""

    server: str
    provider: str
    scopes: tuple[str, ...] = ()


# Sources: developers.google.com/identity/protocols/oauth2/web-server · learn.microsoft.com/entra/identity-platform/
# v2-oauth2-auth-code-flow · docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps ·
# docs.slack.dev/authentication/installing-with-oauth.
PRESETS: Mapping[str, Provider] = {
    # A refresh token comes only with `offline`, and again only when Google is made to ask.
    "google": Provider(
        "google",
        "Google",
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",  # noqa: S106  # an address
        revoke_url="https://oauth2.googleapis.com/revoke",
        userinfo_url="https://openidconnect.googleapis.com/v1/userinfo",
        issuer="https://accounts.google.com",
        scopes=("openid", "email"),
        authorize_parameters={"access_type": "offline", "prompt": "consent"},
    ),
    "microsoft": Provider(
        "microsoft",
        "Microsoft",
        authorize_url="https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize",
        token_url="https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",  # noqa: S106  # an address
        scopes=("openid", "profile", "email", "offline_access"),
        account=AccountFields(label=("preferred_username", "email", "name")),
    ),
    # No claim of a verified address: GitHub's addresses are a list of their own, mostly private ones.
    "github": Provider(
        "github",
        "GitHub",
        authorize_url="https://github.com/login/oauth/authorize",
        token_url="https://github.com/login/oauth/access_token",  # noqa: S106  # an address
        revoke_url="https://api.github.com/applications/{client_id}/token",
        userinfo_url="https://api.github.com/user",
        account=AccountFields(label=("login",)),
        revocation="github",
    ),
    # A person's own token (`user_scope`), not a bot's.
    "slack": Provider(
        "slack",
        "Slack",
        authorize_url="https://slack.com/oauth/v2/authorize",
        token_url="https://slack.com/api/oauth.v2.access",  # noqa: S106  # an address
        revoke_url="https://slack.com/api/auth.revoke",
        userinfo_url="https://slack.com/api/auth.test",
        scope_parameter="user_scope",
        scope_separator=",",
        grant_field="authed_user",
        account=AccountFields(label=("user",)),
        revocation="slack",
    ),
}
"""Known providers, still without a client, so that an operator writes down a client and no addresses."""

SHARED_AUTHORITIES = ("common", "organizations", "consumers")
"""Microsoft's words for an authority that is no single tenant."""


def preset(name: str, tenant: str = "") -> Provider:
    """A known provider without a client. `tenant`: Microsoft only; empty: whoever has a work account."""
    found = PRESETS[name]
    if name != "microsoft":
        return found
    tenant = tenant or "organizations"
    # Only a single tenant vouches for the addresses of its own people: in any other anybody can claim any.
    email = "" if tenant in SHARED_AUTHORITIES else "email"
    return replace(
        found,
        authorize_url=found.authorize_url.format(tenant=tenant),
        token_url=found.token_url.format(tenant=tenant),
        account=replace(found.account, email=email),
    )


def connections_of(
    servers: Sequence[OAuthServer], uses: Iterable[ProviderUse], providers: Mapping[str, Provider]
) -> Mapping[str, ConnectionConfig]:
    """All connections by name, each provider asking for what the servers that use it need.

    Raises `ConnectionsError`.
    """
    found: dict[str, ConnectionConfig] = {server.connection: server for server in servers}
    for use in uses:
        provider = providers.get(use.provider)
        if provider is None:
            known = ", ".join(sorted(providers)) or "none"
            raise ConnectionsError(
                f'mcp.json: the server {use.server} wants the provider "{use.provider}", which is not in '
                f"CONNECTIONS_FILE (known there: {known})"
            )
        if isinstance(found.get(use.provider), OAuthServer):
            raise ConnectionsError(
                f'"{use.provider}" is both a tool server with `auth: oauth` and a provider: rename one of them'
            )
        before = found.get(use.provider, provider)
        scopes = tuple(dict.fromkeys((*before.scopes, *use.scopes)))
        found[use.provider] = replace(provider, scopes=scopes)
    return found


def binding_of(connection: ConnectionConfig) -> str:
    """What tokens of it are good for: those granted under another one must not be sent. A SHA-256, hexadecimal."""
    if isinstance(connection, OAuthServer):
        parts = ["server", connection.url, connection.client_id]
    else:
        parts = ["provider", connection.authorize_url, connection.token_url, connection.client_id]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


VERSION = 1
"""The only version of the file there is."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ADDRESSES = {
    "authorizeUrl": "authorize_url",
    "tokenUrl": "token_url",
    "revokeUrl": "revoke_url",
    "userInfoUrl": "userinfo_url",
    "issuer": "issuer",
}
_KEYS = frozenset(
    {"preset", "label", "clientId", "clientSecret", "scopes", "tenant", "account"}
    | {"authorizeParameters", "clientAuthentication", "scopeSeparator", *_ADDRESSES}
)
_OURS = frozenset(
    {"client_id", "response_type", "redirect_uri", "state", "scope", "code_challenge", "code_challenge_method"}
)
"""Parameters of the link that no operator may set: they are what makes it safe."""


@dataclass(frozen=True, slots=True)
class Providers:
    """What the file says."""

    by_name: Mapping[str, Provider] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What stands in it and must never be shown."""


def load_providers(path: Path, environ: Mapping[str, str]) -> Providers:
    """The file's providers; a file that is not there has none. `${VAR}` stands for a variable of `environ`.

    Raises `ConnectionsError` with the line and the reason.
    """
    try:
        written = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return Providers()
    except OSError as error:
        raise ConnectionsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConnectionsError(f"{path}, line {line}: is not UTF-8 text") from None
    return parse_providers(written, str(path), environ)


def parse_providers(written: str, source: str, environ: Mapping[str, str]) -> Providers:
    """The providers of a text; `source` names it in errors. Raises `ConnectionsError`."""
    try:
        found = _providers(read_yaml(written), environ)
    except LineError as fault:
        raise ConnectionsError(f"{source}, line {fault.line}: {fault.reason}") from None
    return Providers(found, frozenset(p.client_secret for p in found.values() if p.client_secret))


def _providers(root: Located | None, environ: Mapping[str, str]) -> dict[str, Provider]:
    if root is None:
        return {}
    entries = mapping(root, "the file")
    only_keys(entries, frozenset({"version", "connections"}), "the file")
    version = whole_number(child(entries, "version", root), "version")
    if version != VERSION:
        raise LineError(entries["version"].line, f"version {version} is unknown: write version: {VERSION}")
    connections = mapping(child(entries, "connections", root), "connections")
    return {name: _provider(name, node, environ) for name, node in connections.items()}


def _provider(name: str, node: Located, environ: Mapping[str, str]) -> Provider:
    if not _NAME.fullmatch(name):
        raise LineError(
            node.key_line,
            "a connection's name has at most 32 letters, digits, - and _, with a letter or digit at both ends",
        )
    entries = mapping(node, "a connection")
    only_keys(entries, _KEYS, "a connection")
    values: dict[str, Any] = {
        "connection": name,
        "client_id": _filled(child(entries, "clientId", node), "clientId", environ),
        "client_secret": None,
    }
    if "clientSecret" in entries:
        values["client_secret"] = _filled(entries["clientSecret"], "clientSecret", environ)
    provider = _without_client(name, node, entries, _tenant(entries))
    values |= {ours: _address(entries[key], key) for key, ours in _ADDRESSES.items() if key in entries}
    if "label" in entries:
        values["label"] = text(entries["label"], "label")
    if "scopes" in entries:
        values["scopes"] = tuple(dict.fromkeys((*provider.scopes, *_texts(entries, "scopes"))))
    if "scopeSeparator" in entries:
        values["scope_separator"] = choice(entries["scopeSeparator"], "scopeSeparator", (" ", ","))
    if "authorizeParameters" in entries:
        values["authorize_parameters"] = {**provider.authorize_parameters, **_parameters(entries)}
    if "account" in entries:
        values["account"] = _account(entries["account"])
    values["authentication"] = _authentication(entries, values["client_secret"])
    return replace(provider, **values)


def _without_client(name: str, node: Located, entries: Mapping[str, Located], tenant: str) -> Provider:
    if "preset" in entries:
        return preset(choice(entries["preset"], "preset", tuple(PRESETS)), tenant)
    if name in PRESETS and not {"authorizeUrl", "tokenUrl"} <= entries.keys():
        return preset(name, tenant)
    if "tenant" in entries:
        raise LineError(entries["tenant"].key_line, "tenant goes only with the preset microsoft")
    authorize, token = (_address(child(entries, key, node), key) for key in ("authorizeUrl", "tokenUrl"))
    return Provider(name, name, authorize_url=authorize, token_url=token)


def _authentication(entries: Mapping[str, Located], client_secret: str | None) -> str:
    if "clientAuthentication" not in entries:
        return "client_secret_post" if client_secret else "none"
    node = entries["clientAuthentication"]
    chosen: str = choice(node, "clientAuthentication", get_args(ClientAuthentication))
    if (chosen == "none") != (client_secret is None):
        raise LineError(node.line, "clientAuthentication and clientSecret do not go together: none means no secret")
    return chosen


def _account(node: Located) -> AccountFields:
    entries = mapping(node, "account")
    only_keys(entries, frozenset({"label", "email", "verified"}), "account")
    label = _texts(entries, "label") if "label" in entries else ()
    email, verified = (text(entries[key], key) if key in entries else "" for key in ("email", "verified"))
    if verified and not email:
        raise LineError(entries["verified"].line, "verified says of email whether it counts: write email too")
    return AccountFields(label or AccountFields().label, email, verified)


def _texts(entries: Mapping[str, Located], key: str) -> tuple[str, ...]:
    return tuple(str(item.value) for item in texts(entries[key], key))


def _parameters(entries: Mapping[str, Located]) -> dict[str, str]:
    node = entries["authorizeParameters"]
    found = {}
    for name, value in mapping(node, "authorizeParameters").items():
        if name.lower() in _OURS:
            raise LineError(value.key_line, f"“{name}” is set by the program itself")
        found[name] = text(value, f"“{name}”")
    return found


def _tenant(entries: Mapping[str, Located]) -> str:
    if "tenant" not in entries:
        return ""
    tenant = text(entries["tenant"], "tenant")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}", tenant):
        raise LineError(entries["tenant"].line, "tenant must be the tenant's id or domain")
    return tenant


def _address(node: Located, what: str) -> str:
    address = text(node, what)
    if not is_safe_address(address):
        raise LineError(node.line, f"{what} must be an https:// address (http:// only for this machine)")
    return address


def _filled(node: Located, what: str, environ: Mapping[str, str]) -> str:
    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if not environ.get(name):
            raise LineError(node.line, f"{what}: the environment variable {name[:60]} is not set")
        return environ[name]

    value = _VARIABLE.sub(value_of, text(node, what)).strip()
    if not value.isascii() or not value.isprintable():
        raise LineError(node.line, f"{what} may hold printable ASCII characters only")
    return value
