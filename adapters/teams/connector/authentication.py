"""Who may send activities: the Bot Connector, with a token of its own, for the tenants that are allowed.

https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jwt

from adapters.shared.untrusted_json import words
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.addresses import service_url
from adapters.teams.connector.http import Http
from adapters.teams.connector.keys import Key, Keys, KeysUnavailable
from adapters.teams.connector.local import why_not_local
from bot.clock import Clock, system_clock

ALGORITHM = "RS256"
LEEWAY = 300.0
"""Seconds by which clocks may differ (Microsoft: "industry-standard clock-skew is 5 minutes")."""
CHANNEL = "msteams"

_BEARER = re.compile(r"Bearer +([\w-]+\.[\w-]+\.[\w-]+)", re.IGNORECASE | re.ASCII)
_REQUIRED = ["exp", "iss", "aud"]


class NotAdmitted(Exception):  # noqa: N818  # a word of the house
    """An activity that is not taken.

    `status`: 401 for whatever has no good token, 403 for a tenant that is not allowed, 503 when nobody can be judged
    since Microsoft's keys cannot be fetched.
    `reason`: for the log; the answer is the same for all of one status.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


class Authentication:
    """Judges requests, by their tokens. `close` in the end."""

    def __init__(self, config: TeamsConfig, *, clock: Clock = system_clock) -> None:
        self._config = config
        self._http = Http()
        self._keys = Keys(self._http, config.cloud.openid_metadata_url, clock)

    async def look_at(self, headers: Mapping[str, str]) -> None:
        """Judge what can be judged before a body is read: the token. Strangers' bodies are none of our work.

        Raises `NotAdmitted`, and nothing else.
        """
        authorization = headers.get("Authorization", "")
        if not self._may_do_without(authorization):
            await self._holder(authorization)

    async def admit(self, headers: Mapping[str, str], remote: str | None, activity: Mapping[str, Any]) -> None:
        """Return if the activity may be handled. Raises `NotAdmitted`, and nothing else.

        `headers` are looked up case-insensitively; `remote` is the address at the other end of the socket.
        """
        authorization = headers.get("Authorization", "")
        if self._may_do_without(authorization):
            objection = why_not_local(headers, remote, activity)
            if objection:
                raise NotAdmitted(401, f"no token, and {objection}")
            return
        await self._judge(authorization, activity)
        objection = foreign_tenant(self._config, activity)
        if objection:
            raise NotAdmitted(403, objection)

    async def close(self) -> None:
        """Close the connections."""
        await self._keys.close()
        await self._http.close()

    def _may_do_without(self, authorization: str) -> bool:
        """Whether a token is not asked for, since it may come from this machine."""
        return self._config.local_unauthenticated and not (authorization and self._config.app_id)

    async def _judge(self, authorization: str, activity: Mapping[str, Any]) -> None:
        key, claims = await self._holder(authorization)
        if activity.get("channelId") != CHANNEL or CHANNEL not in key.endorsements:
            raise NotAdmitted(401, "its key is not endorsed for the activity's channel")
        url = service_url(activity.get("serviceUrl"))
        if not url or service_url(claims.get("serviceurl")) != url:
            raise NotAdmitted(401, "its service URL is not the activity's")

    async def _holder(self, authorization: str) -> tuple[Key, Mapping[str, Any]]:
        """The key that a good token is signed with, and what it claims."""
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise NotAdmitted(401, "no bearer token" if not authorization else "no well-formed bearer token")
        if not self._config.app_id:
            raise NotAdmitted(401, "this bot has no app id that tokens could be for")
        token = bearer.group(1)
        key = await self._key(token)
        return key, self._claims(token, key)

    async def _key(self, token: str) -> Key:
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise NotAdmitted(401, "its header cannot be read") from None
        kid = header.get("kid")
        if header.get("alg") != ALGORITHM:
            raise NotAdmitted(401, "its algorithm is another one")
        if not isinstance(kid, str) or not kid:
            raise NotAdmitted(401, "it names no key")
        try:
            key = await self._keys.find(kid)
        except KeysUnavailable:
            raise NotAdmitted(503, "the keys cannot be fetched") from None
        if key is None:
            raise NotAdmitted(401, "its key is not known")
        return key

    def _claims(self, token: str, key: Key) -> Mapping[str, Any]:
        cloud, app_id = self._config.cloud, self._config.app_id
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[ALGORITHM],
                audience=app_id,
                issuer=cloud.token_issuer,
                leeway=LEEWAY,
                options={"require": _REQUIRED},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError, OverflowError) as error:
            # The library's own words can hold parts of the token.
            raise NotAdmitted(401, type(error).__name__) from None
        return claims


def foreign_tenant(config: TeamsConfig, activity: Mapping[str, Any]) -> str:
    """What speaks against an activity's tenants; empty: nothing.

    Wherever one is named it has to be allowed. The author's own is left to `allow_guests`, and otherwise judged here
    as well as by the roster (`people`), since not every activity names it.
    """
    allowed = {tenant.lower() for tenant in config.allowed_tenants}
    host = words(activity, "channelData", "tenant", "id")
    if not host:
        return "it names no tenant"
    named = [host, words(activity, "conversation", "tenantId")]
    if not config.allow_guests:
        named.append(words(activity, "from", "tenantId"))
    foreign = next((tenant for tenant in named if tenant and tenant.lower() not in allowed), None)
    return f"tenant {foreign[:80]!r} is not allowed" if foreign else ""
