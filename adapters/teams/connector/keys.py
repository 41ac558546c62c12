"""The keys that the Bot Connector signs its requests with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
import structlog

from adapters.teams.connector.addresses import service_url
from adapters.teams.connector.http import Http, HttpFailed
from adapters.teams.connector.remembered import Shared
from bot.clock import Clock, system_clock

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
MOST_KEYS = 500
"""Reading a key takes 20 µs; Microsoft publishes some twenty."""
FETCH_SECONDS = 4.0
"""For each of the two documents: Teams waits 15 s for most answers, 5 s for those to invokes."""


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
            fetch = self._fetches.start("keys", self._fetch)
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
        except HttpFailed as failure:
            self._failed = True
            log.warning("teams_keys_not_fetched", error=failure.error, known=len(self._keys))
        else:
            self._fetched_at, self._failed = self._clock(), False
            log.info("teams_keys_fetched", keys=len(self._keys))
        # Not before it is over: who comes meanwhile is to wait for it too.
        self._tried_at = self._clock()

    async def _ask(self) -> Mapping[str, Key]:
        """Raises `HttpFailed`, also for documents without a single key: those known are better than none."""
        metadata = await self._document(self._metadata_url)
        address = service_url(metadata.get("jwks_uri")).rstrip("/")
        if not address:
            raise HttpFailed("bad_answer")
        entries = (await self._document(address)).get("keys")
        keys = _keys(entries) if isinstance(entries, list) and len(entries) <= MOST_KEYS else {}
        if not keys:
            raise HttpFailed("bad_answer")
        return keys

    async def _document(self, url: str) -> Mapping[str, Any]:
        answer = await self._http.request("GET", url, seconds=FETCH_SECONDS)
        if answer.status != 200:
            raise HttpFailed(f"http_{answer.status}")
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
