"""Reads `connections.yaml` (`CONNECTIONS_FILE`): the providers at which the operator has a client.

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

Whatever the reader does not know it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from adapters.oauth.connections import AccountFields, ClientAuthentication, ConnectionsError, Provider
from adapters.oauth.http import is_safe_address
from adapters.oauth.presets import PRESETS, Client
from policies.reading_values import child, choice, mapping, only_keys, text, texts, whole_number
from policies.yaml_lines import LineError, Located, read_yaml

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
_AUTHENTICATION = ("client_secret_post", "client_secret_basic", "none")
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
    client = Client(
        name,
        _filled(child(entries, "clientId", node), "clientId", environ),
        _filled(entries["clientSecret"], "clientSecret", environ) if "clientSecret" in entries else None,
        _tenant(entries),
    )
    provider = _beginning(name, node, entries, client)
    addresses = {ours: _address(entries[key], key) for key, ours in _ADDRESSES.items() if key in entries}
    changed: dict[str, Any] = dict(addresses)
    if "label" in entries:
        changed["label"] = text(entries["label"], "label")
    if "scopes" in entries:
        asked = tuple(str(item.value) for item in texts(entries["scopes"], "scopes"))
        changed["scopes"] = tuple(dict.fromkeys((*provider.scopes, *asked)))
    if "scopeSeparator" in entries:
        changed["scope_separator"] = choice(entries["scopeSeparator"], "scopeSeparator", (" ", ","))
    if "authorizeParameters" in entries:
        changed["authorize_parameters"] = {**provider.authorize_parameters, **_parameters(entries)}
    if "account" in entries:
        changed["account"] = _account(entries["account"])
    return replace(provider, authentication=_authentication(entries, client), **changed)


def _beginning(name: str, node: Located, entries: Mapping[str, Located], client: Client) -> Provider:
    if "preset" in entries:
        return PRESETS[choice(entries["preset"], "preset", tuple(PRESETS))](client)
    if name in PRESETS and not {"authorizeUrl", "tokenUrl"} <= entries.keys():
        return PRESETS[name](client)
    if "tenant" in entries:
        raise LineError(entries["tenant"].key_line, "tenant goes only with the preset microsoft")
    return Provider(
        name,
        name,
        client.client_id,
        client.client_secret,
        authorize_url=_address(child(entries, "authorizeUrl", node), "authorizeUrl"),
        token_url=_address(child(entries, "tokenUrl", node), "tokenUrl"),
    )


def _authentication(entries: Mapping[str, Located], client: Client) -> ClientAuthentication:
    if "clientAuthentication" not in entries:
        return "client_secret_post" if client.client_secret else "none"
    node = entries["clientAuthentication"]
    chosen = cast(ClientAuthentication, choice(node, "clientAuthentication", _AUTHENTICATION))
    if (chosen == "none") != (client.client_secret is None):
        raise LineError(node.line, "clientAuthentication and clientSecret do not go together: none means no secret")
    return chosen


def _account(node: Located) -> AccountFields:
    entries = mapping(node, "account")
    only_keys(entries, frozenset({"label", "email", "verified"}), "account")
    label = tuple(str(item.value) for item in texts(entries["label"], "label")) if "label" in entries else ()
    email = text(entries["email"], "email") if "email" in entries else ""
    verified = text(entries["verified"], "verified") if "verified" in entries else ""
    if verified and not email:
        raise LineError(entries["verified"].line, "verified says of email whether it counts: write email too")
    return AccountFields(label or AccountFields().label, email, verified)


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
