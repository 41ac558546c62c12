"""Where a bot's own token comes from: Entra for a secret, or the machine's managed identity."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from adapters.teams.api import ConnectorFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.http import Http, HttpAnswer, HttpFailed
from bot.clock import Clock

REQUEST_SECONDS = 8.0
"""What a request for a token may take. Machines without a managed identity do not answer at all."""
VERB = "token"
_SHARED_TENANT = "botframework.com"
"""Where multi-tenant bots get their tokens."""
_IMDS = "http://169.254.169.254/metadata/identity/oauth2/token"
_ENTRA_CODE = re.compile(r"AADSTS\d{1,10}")
_WORD = re.compile(r"[A-Za-z_]{1,60}")
_REFUSED = frozenset(
    {"invalid_client", "unauthorized_client", "invalid_request", "invalid_scope", "identity_not_found"}
)
"""OAuth's words for what somebody has to set right: a wrong or expired secret, an unknown app or tenant."""
_SHORTEST_LIFE = 60.0
"""Seconds that we believe a token lives at least, whatever is said of it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A token and the seconds it lives from now on."""

    token: str = field(repr=False)
    lives: float


Ask = Callable[[], Awaitable[Grant]]
"""Gets a token. Raises `ConnectorFailed` with the verb `token`; its causes are not kept, since they hold the secret."""


def bots_tenant(config: TeamsConfig) -> str:
    """The tenant that gives the bot its tokens for the Bot Connector."""
    return _SHARED_TENANT if config.app_type == "MultiTenant" or not config.tenant else config.tenant


def with_secret(config: TeamsConfig, http: Http, *, tenant: str, resource: str) -> Ask:
    """By the app's secret (OAuth client credentials), for the service `resource`, such as
    `https://api.botframework.com`."""
    url = f"{config.cloud.login_url.rstrip('/')}/{quote(tenant, safe='')}/oauth2/v2.0/token"
    form = {
        "grant_type": "client_credentials",
        "client_id": config.app_id,
        "client_secret": config.app_password or "",
        "scope": f"{resource.rstrip('/')}/.default",
    }

    async def ask() -> Grant:
        answer = await _answer(http, "POST", url, {"Accept": "application/json"}, form)
        return _granted(answer, lives=_seconds(answer.object().get("expires_in")))

    return ask


def with_managed_identity(
    config: TeamsConfig, http: Http, environ: Mapping[str, str], clock: Clock, *, resource: str
) -> Ask:
    """By the identity that the machine has, for the service `resource`: App Service and Container Apps
    (`IDENTITY_ENDPOINT`, `IDENTITY_HEADER`), else the metadata service of virtual machines.

    https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
    """
    endpoint, header = environ.get("IDENTITY_ENDPOINT", ""), environ.get("IDENTITY_HEADER", "")
    asked = {"resource": resource.rstrip("/"), "client_id": config.app_id}
    if endpoint and header:
        url = f"{endpoint}?{urlencode({'api-version': '2019-08-01', **asked})}"
        headers = {"X-IDENTITY-HEADER": header}
    else:
        url = f"{_IMDS}?{urlencode({'api-version': '2018-02-01', **asked})}"
        headers = {"Metadata": "true"}

    async def ask() -> Grant:
        answer = await _answer(http, "GET", url, headers, None)
        until = _seconds(answer.object().get("expires_on"))
        return _granted(answer, lives=until - clock())

    return ask


async def _answer(
    http: Http, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
) -> HttpAnswer:
    try:
        return await http.request(method, url, seconds=REQUEST_SECONDS, headers=headers, data=form)
    except HttpFailed as failure:
        raise ConnectorFailed(VERB, failure.error) from None


def _granted(answer: HttpAnswer, lives: float) -> Grant:
    said = answer.object()
    token = said.get("access_token")
    if answer.status != 200:
        raise _refusal(answer.status, said)
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise ConnectorFailed(VERB, "bad_answer", status=200)
    return Grant(token, max(_SHORTEST_LIFE, lives))


def _refusal(status: int, said: Mapping[str, Any]) -> ConnectorFailed:
    error = said.get("error")
    # IMDS and Entra put a word here, App Service an object or nothing.
    word = error if isinstance(error, str) and _WORD.fullmatch(error) else ""
    code = _ENTRA_CODE.match(str(said.get("error_description", "")))
    shown = code.group() if code else word or f"http_{status}"
    return ConnectorFailed(VERB, shown, status=status, permanent=status < 500 and word in _REFUSED)


def _seconds(value: object) -> float:
    """A number of seconds, which some of these services write as text; 0 when it is none."""
    try:
        return float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        return 0.0
