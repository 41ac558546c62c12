"""The bot's own token: fetched ahead of need, without blocking, so that nobody waits for it."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import structlog

from adapters.shared.caches import Shared
from adapters.shared.calls import CallFailed
from adapters.shared.http import Http, HttpAnswer
from adapters.teams.config import TeamsConfig
from bot.domain import Clock, system_clock
from bot.platform import NotConnected

log = structlog.get_logger(__name__)
AHEAD = 900.0
"""Seconds before its expiry from which on a token is renewed in the background."""
TOO_LATE = 300.0
"""Seconds before its expiry from which on callers wait for the new one."""
AGAIN_AFTER = 60.0
"""Seconds between two tries to renew a token that is still good."""
AGAIN_AFTER_FAILURE = 5.0
"""Seconds for which a failure is the answer, so that a storm of calls is none of requests for tokens."""
_BETWEEN_REFUSALS = 60.0
"""Seconds for which another token would be refused as well: the fault is not the token's."""
_LAST_MOMENT = 30.0
"""Seconds before its expiry from which on a token is not used even where there is no other."""


def tokens_of(
    config: TeamsConfig, *, environ: Mapping[str, str] = os.environ, clock: Clock = system_clock
) -> ConnectorTokens:
    """The tokens that a configuration leads to. Raises `ValueError` for one without what they need."""
    if not config.app_id:
        if not config.local_unauthenticated:
            raise ValueError("MICROSOFT_APP_ID is not set")
        return NoTokens()
    return tokens_for(
        config, tenant=bots_tenant(config), resource=config.cloud.token_scope, environ=environ, clock=clock
    )


def tokens_for(
    config: TeamsConfig,
    *,
    tenant: str,
    resource: str,
    environ: Mapping[str, str] = os.environ,
    clock: Clock = system_clock,
) -> BotTokens:
    """The app's tokens for one of Microsoft's services (`resource`), in a tenant; a managed identity's are its own
    tenant's. Raises `ValueError` for a configuration without what they need."""
    http = Http()
    if config.app_type == "UserAssignedMSI":
        return BotTokens(with_managed_identity(config, http, environ, clock, resource=resource), http, clock)
    if not config.app_password:
        raise ValueError(f"MICROSOFT_APP_PASSWORD is not set, which an app of type {config.app_type} needs")
    return BotTokens(with_secret(config, http, tenant=tenant, resource=resource), http, clock)


class NoTokens:
    """Stands in for `BotTokens` where local clients are called: no request carries a token."""

    connected = True
    failure = ""

    async def token(self) -> str:
        """None."""
        return ""

    def refused(self, token: str) -> None:
        """There is none to refuse."""

    async def close(self) -> None:
        """Nothing to close."""


class BotTokens:
    """An app's tokens for one service. Concurrent callers share one request. `close` in the end."""

    def __init__(self, ask: TokenRequest, http: Http, clock: Clock = system_clock) -> None:
        self._ask = ask
        self._http = http
        self._clock = clock
        self._grant: TimedToken | None = None
        self._expires = self._ahead = self._too_late = 0.0
        self._refused_at = float("-inf")
        self._not_before = 0.0
        self._failure: CallFailed | None = None
        self._requests: Shared[str, str] = Shared()

    @property
    def connected(self) -> bool:
        """Whether there is a token that can be used now."""
        return self._usable() is not None

    @property
    def failure(self) -> str:
        """Why the last request for a token failed, in a word; empty: it did not."""
        return self._failure.error if self._failure else ""

    async def token(self) -> str:
        """Returns the token, from memory most of the time. Raises `CallFailed` with the name `token`, `permanent` when
        the configuration has to be set right."""
        now, grant = self._clock(), self._usable()
        if grant is not None and now < self._ahead:
            return grant.token
        if grant is not None and now < self._too_late:
            if now >= self._not_before:
                self._not_before = now + AGAIN_AFTER
                self._requests.start(VERB, self._renew)
            return grant.token
        try:
            if self._failure is not None and now < self._not_before:
                raise _again(self._failure)
            return await self._requests.ask(VERB, self._renew)
        except CallFailed as failure:
            if grant is None:
                # Each caller gets an exception of its own: one that many raise would gather all their traces.
                raise _again(failure) from None
            return grant.token

    def refused(self, token: str) -> None:
        """The service did not take a token: it counts no more, unless another was refused a moment ago."""
        now = self._clock()
        if self._grant is None or self._grant.token != token or now - self._refused_at < _BETWEEN_REFUSALS:
            return
        self._grant, self._not_before, self._refused_at = None, 0.0, now

    async def close(self) -> None:
        """End the request that is under way, and close the connections."""
        await self._requests.close()
        await self._http.close()

    async def _renew(self) -> str:
        try:
            grant = await self._ask()
        except CallFailed as failure:
            self._failure = failure
            again = AGAIN_AFTER_FAILURE if self._usable() is None else AGAIN_AFTER
            self._not_before = self._clock() + again
            log.warning("teams_token_not_fetched", error=failure.error, permanent=failure.permanent)
            raise
        now = self._clock()
        self._grant, self._failure, self._not_before = grant, None, 0.0
        self._expires = now + grant.lives
        # Some tokens live so shortly that fixed times would have them renewed with every call.
        self._ahead = self._expires - min(AHEAD, grant.lives / 2)
        self._too_late = self._expires - min(TOO_LATE, grant.lives / 4)
        log.info("teams_token_fetched", lives=round(grant.lives))
        return grant.token

    def _usable(self) -> TimedToken | None:
        last = self._expires - _LAST_MOMENT
        return self._grant if self._grant is not None and self._clock() < last else None


ConnectorTokens = BotTokens | NoTokens
"""Where the tokens of requests to the Bot Connector come from."""


def _again(failure: CallFailed) -> CallFailed:
    return CallFailed(failure.call, failure.error, status=failure.status, permanent=failure.permanent)


# --------------------------------------------------------------------------- where a token comes from
# Entra for a secret, or the machine's managed identity.

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
class TimedToken:
    """A token and the seconds it lives from now on."""

    token: str = field(repr=False)
    lives: float


TokenRequest = Callable[[], Awaitable[TimedToken]]
"""Gets a token. Raises `CallFailed` with the verb `token`; its causes are not kept, since they hold the secret."""


def bots_tenant(config: TeamsConfig) -> str:
    """The tenant that gives the bot its tokens for the Bot Connector."""
    return _SHARED_TENANT if config.app_type == "MultiTenant" or not config.tenant else config.tenant


def with_secret(config: TeamsConfig, http: Http, *, tenant: str, resource: str) -> TokenRequest:
    """Returns what asks for a token with the app's secret (OAuth client credentials), for the service `resource`, such
    as `https://api.botframework.com`."""
    url = f"{config.cloud.login_url.rstrip('/')}/{quote(tenant, safe='')}/oauth2/v2.0/token"
    form = {
        "grant_type": "client_credentials",
        "client_id": config.app_id,
        "client_secret": config.app_password or "",
        "scope": f"{resource.rstrip('/')}/.default",
    }

    async def ask() -> TimedToken:
        answer = await http.request(
            VERB, "POST", url, seconds=REQUEST_SECONDS, headers={"Accept": "application/json"}, data=form
        )
        return _granted(answer, lives=_seconds(answer.object().get("expires_in")))

    return ask


def with_managed_identity(
    config: TeamsConfig, http: Http, environ: Mapping[str, str], clock: Clock, *, resource: str
) -> TokenRequest:
    """Returns what asks for a token with the identity that the machine has, for the service `resource`: App Service and
    Container Apps (`IDENTITY_ENDPOINT`, `IDENTITY_HEADER`), else the metadata service of virtual machines.

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

    async def ask() -> TimedToken:
        answer = await http.request(VERB, "GET", url, seconds=REQUEST_SECONDS, headers=headers)
        until = _seconds(answer.object().get("expires_on"))
        return _granted(answer, lives=until - clock())

    return ask


def _granted(answer: HttpAnswer, lives: float) -> TimedToken:
    said = answer.object()
    token = said.get("access_token")
    if answer.status != 200:
        raise _refusal(answer.status, said)
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise CallFailed(VERB, "bad_answer", status=200)
    return TimedToken(token, max(_SHORTEST_LIFE, lives))


def _refusal(status: int, said: Mapping[str, Any]) -> CallFailed:
    error = said.get("error")
    # IMDS and Entra put a word here, App Service an object or nothing.
    word = error if isinstance(error, str) and _WORD.fullmatch(error) else ""
    code = _ENTRA_CODE.match(str(said.get("error_description", "")))
    shown = code.group() if code else word or f"http_{status}"
    return CallFailed(VERB, shown, status=status, permanent=status < 500 and word in _REFUSED)


def _seconds(value: object) -> float:
    """A number of seconds, which some of these services write as text; 0 when it is none."""
    try:
        return float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        return 0.0


# ------------------------------------------------------------------- whether Microsoft lets us in

_WHAT_TO_DO = {
    "AADSTS7000215": "MICROSOFT_APP_PASSWORD is not a secret of this app. Copy the secret's value, not its id.",
    "AADSTS7000222": "MICROSOFT_APP_PASSWORD has expired. Make a new secret for the app in Entra.",
    "AADSTS700016": "MICROSOFT_APP_ID is not known in the tenant. Compare it, and MICROSOFT_APP_TENANT_ID, with Entra.",
    "AADSTS90002": "MICROSOFT_APP_TENANT_ID is not a tenant that Entra knows.",
    "AADSTS900023": "MICROSOFT_APP_TENANT_ID is not a tenant that Entra knows.",
    "identity_not_found": "This machine has no managed identity with the client id MICROSOFT_APP_ID.",
}
"""What Microsoft's codes mean for the operator."""
_OTHERWISE = (
    "Compare MICROSOFT_APP_ID, MICROSOFT_APP_PASSWORD, MICROSOFT_APP_TENANT_ID and MICROSOFT_APP_TYPE with Entra."
)


async def connect(config: TeamsConfig, tokens: ConnectorTokens) -> None:
    """Get the bot's token once. Raises `NotConnected`, with what to do, when Microsoft refuses us, and `CallFailed`
    when it cannot be reached."""
    try:
        await tokens.token()
    except CallFailed as failure:
        if not failure.permanent:
            raise
        sentence = _WHAT_TO_DO.get(failure.error, _OTHERWISE)
        raise NotConnected(f"Microsoft refuses the bot ({failure.error}): {sentence}") from failure
    log.info("teams_connected", app_id=config.app_id or "(local)", tenants=sorted(config.allowed_tenants))
