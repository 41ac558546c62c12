"""A grant: what lies between a link and its tokens, and the three requests about it (exchange, refresh, revoke)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import quote

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from authlib.oauth2.rfc7009 import prepare_revoke_token_request

from adapters.oauth.http import OAuthAnswer, OAuthHttpClient, host_of
from bot.accounts.ports import GrantRefused, TokenSet, Unreachable

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LONGEST_TOKEN = 16_384
"""Characters; the tokens of big directories take some 4,000, and a header has to hold it."""
LONGEST_SCOPE, MOST_SCOPES = 200, 100
"""Characters of one that is kept, and how many: they are kept to be shown to their owner."""

_ERROR_CODE = re.compile(r"[a-z_]{1,60}")
_FOR_NOW = frozenset({"temporarily_unavailable", "server_error", "slow_down", "ratelimited", "internal_error"})
_CLIENT_ERRORS = frozenset(
    {
        "invalid_client",
        "unauthorized_client",
        "incorrect_client_credentials",  # GitHub's word for it; Slack has the others
        "bad_client_id",
        "bad_client_secret",
        "invalid_client_id",
    }
)


class ClientRejected(GrantRefused):
    """The service does not know us (any more), whoever's grant it is."""


@dataclass(frozen=True, slots=True)
class OAuthGrant:
    """Everything that a grant needs from its link to its revocation. JSON in `kept`, sealed by whoever keeps it."""

    binding: str
    """See `binding_of`."""
    client_id: str
    authentication: str
    token_url: str
    redirect_uri: str
    secret: str | None = field(default=None, repr=False)
    """The secret of a client that registered itself; the operator's is read from the configuration when needed."""
    verifier: str = field(default="", repr=False)
    """The PKCE verifier, until the code is exchanged."""
    issuer: str = ""
    sends_issuer: bool = False
    resource: str = ""
    revoke_url: str = ""
    userinfo_url: str = ""
    scopes: tuple[str, ...] = ()
    """What was asked for."""
    label: str = ""
    verified_email: str | None = None
    """From an ID token that came with the tokens, as `label` is."""

    def kept(self) -> Mapping[str, Any]:
        """Returns the grant as JSON."""
        return {**asdict(self), "scopes": list(self.scopes)}


def grant_of(kept: Mapping[str, Any]) -> OAuthGrant:
    """What was kept. Raises `Rejected` for what another release kept: the person signs in again."""
    try:
        return OAuthGrant(**{**kept, "scopes": tuple(kept.get("scopes", ()))})
    except TypeError:
        raise GrantRefused("kept by another release") from None


@dataclass(frozen=True, slots=True)
class Granted:
    """A token answer, checked."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    seconds: float | None
    scopes: tuple[str, ...] | None
    """`None`: as asked for (RFC 6749, 5.1)."""
    id_token: str | None = field(default=None, repr=False)


async def exchange(
    http: OAuthHttpClient, grant: OAuthGrant, secret: str | None, code: str, *, within: str = ""
) -> Granted:
    """The tokens for a code. Raises `Rejected`, `Unreachable`."""
    more = {"code": code, "code_verifier": grant.verifier} if grant.verifier else {"code": code}
    body = prepare_token_request("authorization_code", "", grant.redirect_uri, **more, **_always(grant))
    return _granted(await _post(http, grant, secret, grant.token_url, body), host_of(grant.token_url), within)


async def refresh(
    http: OAuthHttpClient, grant: OAuthGrant, secret: str | None, refresh_token: str, *, within: str = ""
) -> Granted:
    """New tokens. Raises `Rejected`, `Unreachable`."""
    body = prepare_token_request("refresh_token", refresh_token=refresh_token, **_always(grant))
    return _granted(await _post(http, grant, secret, grant.token_url, body), host_of(grant.token_url), within)


async def revoke(http: OAuthHttpClient, grant: OAuthGrant, secret: str | None, tokens: TokenSet) -> bool:
    """RFC 7009: the refresh token first, since with it goes the access token, mostly. Raises `Unreachable`."""
    named = [("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token)]
    done = []
    for hint, token in named:
        if token:
            body, _ = prepare_revoke_token_request(token, hint)
            answer = await _post(http, grant, secret, grant.revoke_url, body)
            done.append(answer.status == 200)
    return done[0]


async def revoke_at_github(http: OAuthHttpClient, grant: OAuthGrant, secret: str | None, tokens: TokenSet) -> bool:
    """docs.github.com/rest/apps/oauth-applications: delete an app token. Raises `Unreachable`."""
    who = base64.b64encode(f"{grant.client_id}:{secret or ''}".encode()).decode()
    url = grant.revoke_url.replace("{client_id}", grant.client_id)
    headers = {"Authorization": f"Basic {who}", "Accept": "application/vnd.github+json"}
    body = json.dumps({"access_token": tokens.access_token})
    return (await http.request("DELETE", url, body=body, headers=headers)).status == 204


async def revoke_at_slack(http: OAuthHttpClient, grant: OAuthGrant, tokens: TokenSet) -> bool:
    """docs.slack.dev/reference/methods/auth.revoke. Raises `Unreachable`."""
    answer = await http.request("POST", grant.revoke_url, headers=bearer(tokens.access_token))
    return answer.status == 200 and (answer.object() or {}).get("ok") is True


def bearer(access_token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {access_token}"}


def _always(grant: OAuthGrant) -> dict[str, str]:
    """What each request to the token address says besides."""
    said = {"resource": grant.resource} if grant.resource else {}
    if grant.authentication == "client_secret_basic":
        said["client_id"] = grant.client_id  # allowed (RFC 6749, 3.2.1), and some servers look for it
    return said


async def _post(http: OAuthHttpClient, grant: OAuthGrant, secret: str | None, url: str, body: str) -> OAuthAnswer:
    client_id = grant.client_id
    if grant.authentication == "client_secret_basic":
        client_id, secret = quote(client_id, safe=""), quote(secret or "", safe="")  # RFC 6749, 2.3.1
    auth = ClientAuth(client_id, secret, grant.authentication)
    prepared = auth.prepare("POST", url, dict(FORM), body)  # type: ignore[no-untyped-call]  # types-Authlib's gap
    url, headers, body = prepared
    return await http.request("POST", url, body=body, headers=headers)


def _granted(answer: OAuthAnswer, host: str, within: str) -> Granted:
    """The tokens of an answer. Some services say 200 and mean an error (GitHub, Slack)."""
    body = answer.object()
    if answer.status >= 500 or answer.status == 429:
        raise Unreachable(f"{host}: answered {answer.status}")
    if body is not None and body.get("error"):
        raise _refusal(body["error"], host)
    if body is None or answer.status != 200:
        refused = answer.status in (400, 401)
        raise (GrantRefused if refused else Unreachable)(f"{host}: answered {answer.status} without saying why")
    inner = body.get(within) if within else None
    given = inner if isinstance(inner, dict) and inner.get("access_token") else body
    kind = given.get("token_type", "bearer")
    if not within and (not isinstance(kind, str) or kind.lower() != "bearer"):
        raise Unreachable(f"{host}: gave a token of a kind that is not known")
    access_token = _token(given.get("access_token"))
    if access_token is None:
        raise Unreachable(f"{host}: gave no usable token")
    return Granted(
        access_token,
        _token(given.get("refresh_token")),
        _seconds(given.get("expires_in")),
        _scopes(given.get("scope")),
        _token(given.get("id_token")),
    )


def _refusal(code: object, host: str) -> Exception:
    known = code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else "an error"
    if known in _FOR_NOW:
        return Unreachable(f"{host}: {known}")
    return (ClientRejected if known in _CLIENT_ERRORS else GrantRefused)(f"{host}: {known}")


def _token(value: object) -> str | None:
    """A token that fits into a header; nothing else may end up in one."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TOKEN:
        return None
    return value if value.isascii() and value.isprintable() and " " not in value else None


def _seconds(value: object) -> float | None:
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < 10 * 366 * 86_400 else None


def _scopes(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, str):
        return None
    named = (scope for scope in re.split(r"[\s,]+", value) if 0 < len(scope) <= LONGEST_SCOPE)
    return tuple(islice(dict.fromkeys(named), MOST_SCOPES))
