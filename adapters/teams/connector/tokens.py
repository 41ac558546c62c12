"""The bot's own token: fetched ahead of need, without blocking, so that nobody waits for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

import structlog

from adapters.teams.api import ConnectorFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.grants import VERB, Ask, Grant, bots_tenant, with_managed_identity, with_secret
from adapters.teams.connector.http import Http
from adapters.teams.connector.remembered import Shared
from bot.clock import Clock, system_clock

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


class Tokens(Protocol):
    """As whom the Bot Connector is spoken to."""

    @property
    def connected(self) -> bool:
        """Whether there is a token that can be used now."""
        ...

    @property
    def failure(self) -> str:
        """Why the last request for a token failed, in a word; empty: it did not."""
        ...

    async def token(self) -> str:
        """The token; empty: this bot has none. Raises `ConnectorFailed` with the verb `token`, `permanent` when the
        configuration has to be set right."""
        ...

    def refused(self, token: str) -> None:
        """The Bot Connector did not take a token: it counts no more, unless another was refused a moment ago."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


def tokens_of(config: TeamsConfig, *, environ: Mapping[str, str] = os.environ, clock: Clock = system_clock) -> Tokens:
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
    """`Tokens` for local clients only."""

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
    """`Tokens` of an app. Concurrent callers share one request. `close` in the end."""

    def __init__(self, ask: Ask, http: Http, clock: Clock = system_clock) -> None:
        self._ask = ask
        self._http = http
        self._clock = clock
        self._grant: Grant | None = None
        self._expires = self._ahead = self._too_late = 0.0
        self._refused_at = float("-inf")
        self._not_before = 0.0
        self._failure: ConnectorFailed | None = None
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
        """The token, from memory most of the time. Raises `ConnectorFailed`."""
        now, grant = self._clock(), self._usable()
        if grant is not None and now < self._ahead:
            return grant.token
        if grant is not None and now < self._too_late:
            if now >= self._not_before:
                self._not_before = now + AGAIN_AFTER
                self._requests.start(VERB, self._renew)
            return grant.token
        try:
            return await self._fresh(now)
        except ConnectorFailed as failure:
            if grant is None:
                # Each caller gets an exception of its own: one that many raise would gather all their traces.
                raise _again(failure) from None
            return grant.token

    def refused(self, token: str) -> None:
        """The Bot Connector did not take it."""
        now = self._clock()
        if self._grant is None or self._grant.token != token or now - self._refused_at < _BETWEEN_REFUSALS:
            return
        self._grant, self._not_before, self._refused_at = None, 0.0, now

    async def close(self) -> None:
        """End the request that is under way, and close the connections."""
        await self._requests.close()
        await self._http.close()

    async def _fresh(self, now: float) -> str:
        if self._failure is not None and now < self._not_before:
            raise _again(self._failure)
        return await self._requests.ask(VERB, self._renew)

    async def _renew(self) -> str:
        try:
            grant = await self._ask()
        except ConnectorFailed as failure:
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

    def _usable(self) -> Grant | None:
        last = self._expires - _LAST_MOMENT
        return self._grant if self._grant is not None and self._clock() < last else None


def _again(failure: ConnectorFailed) -> ConnectorFailed:
    return ConnectorFailed(failure.verb, failure.error, status=failure.status, permanent=failure.permanent)
