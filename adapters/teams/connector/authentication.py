"""Who may send activities: the Bot Connector with a signed token, for allowed tenants; local clients without one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
import structlog

from adapters.shared.caches import Shared
from adapters.shared.calls import CallFailed
from adapters.shared.http import Http
from adapters.shared.requests import why_not_from_here
from adapters.shared.untrusted_json import words
from adapters.teams.config import TeamsConfig, is_local, service_url
from bot.domain import Clock, system_clock

ALGORITHM = "RS256"
LEEWAY = 300.0
"""Seconds by which clocks may differ (Microsoft: "industry-standard clock-skew is 5 minutes")."""
CHANNEL = "msteams"
_BEARER = re.compile(r"Bearer +([\w-]+\.[\w-]+\.[\w-]+)", re.IGNORECASE | re.ASCII)
_REQUIRED = ["exp", "iss", "aud"]


class NotAdmitted(Exception):  # noqa: N818  # like PostFailed
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

    async def check_token(self, headers: Mapping[str, str]) -> None:
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


# -------------------------------------------------------------------------- keys of the Bot Connector

log = structlog.get_logger(__name__)
KEEP = 24 * 3600.0
"""Seconds for which keys are believed (Microsoft: refresh them at least once a day)."""
AGAIN_AFTER = 60.0
"""Seconds between two fetches, for the sake of a key that is not among those known or has grown old."""
AGAIN_AFTER_FAILURE = 5.0
"""Seconds between two fetches when Microsoft could not be reached and somebody cannot be judged for that."""
KNOWN_WAITS = 1.0
"""Seconds for which somebody whose key is known waits for it to be confirmed once it is old: they may have clicked, and
Teams waits 5 s for an answer."""
_FETCH = "keys"
MOST_KEYS = 500
"""Reading a key takes 20 µs; Microsoft publishes some twenty."""
FETCH_SECONDS = 4.0
"""Limit for each of the two documents: Teams waits 15 s for most answers, 5 s for those to invokes."""


class KeysUnavailable(Exception):  # noqa: N818  # like NotAdmitted
    """The keys could not be fetched, so that nobody can be judged who signs with one that is not known."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key and what it may sign for."""

    key: jwt.PyJWK
    endorsements: frozenset[str]
    """Channels (`msteams`) whose activities it may sign."""


class Keys:
    """The keys that an OpenID metadata document leads to. `close` in the end."""

    def __init__(self, http: Http, metadata_url: str, clock: Clock = system_clock) -> None:
        self._http = http
        self._metadata_url = metadata_url
        self._clock = clock
        self._keys: Mapping[str, Key] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._failed = False
        self._fetches: Shared[str, None] = Shared()

    async def find(self, kid: str) -> Key | None:
        """The key of that id; `None`: there is none. Old keys count while Microsoft does not answer.

        Raises `KeysUnavailable`.
        """
        if self._should_fetch(kid):
            fetch = self._fetches.start(_FETCH, self._fetch)
            await asyncio.wait({fetch}, timeout=KNOWN_WAITS if kid in self._keys else None)
            if fetch.done():
                fetch.result()
        key = self._keys.get(kid)
        if key is None and self._failed:
            raise KeysUnavailable
        return key

    async def close(self) -> None:
        """End the fetch that is under way."""
        await self._fetches.close()

    def _should_fetch(self, kid: str) -> bool:
        now, known = self._clock(), kid in self._keys
        if known and now - self._fetched_at < KEEP:
            return False
        pause = AGAIN_AFTER_FAILURE if self._failed and not known else AGAIN_AFTER
        return now - self._tried_at >= pause

    async def _fetch(self) -> None:
        try:
            self._keys = await self._ask()
        except CallFailed as failure:
            self._failed = True
            log.warning("teams_keys_not_fetched", error=failure.error, known=len(self._keys))
        else:
            self._fetched_at, self._failed = self._clock(), False
            log.info("teams_keys_fetched", keys=len(self._keys))
        # Not before it is over: who comes meanwhile is to wait for it too.
        self._tried_at = self._clock()

    async def _ask(self) -> Mapping[str, Key]:
        """Raises `CallFailed`, also for documents without a single key: those known are better than none."""
        metadata = await self._document(self._metadata_url)
        address = service_url(metadata.get("jwks_uri")).rstrip("/")
        if not address:
            raise CallFailed(_FETCH, "bad_answer")
        entries = (await self._document(address)).get("keys")
        keys = _keys(entries) if isinstance(entries, list) and len(entries) <= MOST_KEYS else {}
        if not keys:
            raise CallFailed(_FETCH, "bad_answer")
        return keys

    async def _document(self, url: str) -> Mapping[str, Any]:
        answer = await self._http.request(_FETCH, "GET", url, seconds=FETCH_SECONDS)
        if answer.status != 200:
            raise CallFailed(_FETCH, f"http_{answer.status}")
        return answer.object()


def _keys(entries: Sequence[object]) -> Mapping[str, Key]:
    """Those that can be read, by id."""
    keys: dict[str, Key] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("kty") != "RSA" or not isinstance(entry.get("kid"), str):
            continue
        try:
            public = jwt.PyJWK(entry, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            log.warning("teams_key_not_read", kid=entry["kid"][:80])
            continue
        endorsed = entry.get("endorsements")
        names = endorsed if isinstance(endorsed, list) else []
        keys[entry["kid"]] = Key(public, frozenset(name for name in names if isinstance(name, str)))
    return keys


# ------------------------------------------------------ activities without a token, from this machine
# `TEAMS_LOCAL_UNAUTHENTICATED`.
# Any page may send a form here, hence JSON only.


def why_not_local(headers: Mapping[str, str], remote: str | None, activity: Mapping[str, Any]) -> str:
    """What speaks against a request coming from this machine and being answered there; empty: nothing.

    `headers` are looked up case-insensitively; `remote` is the address at the other end of the socket.
    """
    if objection := why_not_from_here(headers, remote):
        return objection
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        return "it is not JSON"
    url = service_url(activity.get("serviceUrl"))
    if not url or not is_local(url):
        return "its service URL is not on this machine"
    return ""
