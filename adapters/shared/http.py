"""Requests to services outside: bounded in time and size, and with one failure. Nothing here blocks
(rule 13 in docs/architecture.md)."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from adapters.shared.calls import CallFailed
from adapters.shared.untrusted_json import has_too_many_values
from graph.http_connections import only_asked

CONNECT_SECONDS = 5.0
LONGEST_ANSWER = 4 * 1024 * 1024
"""Bytes, decompressed: 200 messages of a thread with all their blocks."""
MOST_VALUES = 50_000
"""Values in a JSON answer; reading so many takes up to 30 ms: 200 messages with 250 each. Teams' pages of 500 members
have some 5,000."""
LONGEST_WAIT = 600.0
"""Seconds that an answer may ask to wait. Who calls again earlier than it says is refused once more, and nothing else;
what waits for a time that never comes is silent until the next start."""
TOO_LARGE = "too_large"
"""What a download failed with that has more bytes than it may."""
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_READ = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Looked up case-insensitively."""
    body: bytes

    def json(self) -> Any:
        """Returns what the body says; `None` when it is not JSON, or too much to be read."""
        if has_too_many_values(self.body, MOST_VALUES):
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def object(self) -> Mapping[str, Any]:
        """Returns the JSON object that the body is; an empty one when it is none."""
        read = self.json()
        return read if isinstance(read, dict) else {}


class Http:
    """Connections, kept and shared. `close` in the end.

    Redirects are not followed: they would take our tokens along.

    Args:
        here: whether only this machine is asked, to which no proxy leads.
    """

    def __init__(self, *, here: bool = False) -> None:
        self._here = here
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        call: str,
        method: str,
        url: str,
        *,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        data: bytes | str | Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Returns the answer. Raises `CallFailed`, of the name `call`, where there is none.

        Args:
            seconds: From connecting to the last byte.
            data: A mapping is sent as a form.
        """
        try:
            with failing(call):
                async with (
                    asyncio.timeout(seconds),
                    self._opened().request(
                        method,
                        URL(url, encoded=True),
                        headers=headers,
                        data=data,
                        allow_redirects=False,
                        proxy=self._proxy_for(url),
                    ) as response,
                ):
                    return HttpAnswer(response.status, response.headers, await response.read())
        except ValueError:
            raise CallFailed(call, "bad_address") from None

    async def download(
        self, call: str, url: str, *, seconds: float, most: int, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Returns an answer of `most` bytes at most. Raises `CallFailed`, of the name `call`; `too_large` where it has
        more. Redirects are answers, as everywhere here."""
        try:
            with failing(call):
                async with (
                    asyncio.timeout(seconds),
                    self._opened().get(
                        URL(url, encoded=True),
                        headers=headers,
                        allow_redirects=False,
                        proxy=self._proxy_for(url),
                    ) as response,
                ):
                    body = bytearray()
                    async for chunk in response.content.iter_chunked(_READ):
                        body += chunk
                        if len(body) > most:
                            response.close()
                            raise CallFailed(call, TOO_LARGE, permanent=True)
                    return HttpAnswer(response.status, response.headers, bytes(body))
        except ValueError:
            raise CallFailed(call, "bad_address", permanent=True) from None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        self._session = None

    def _proxy_for(self, url: str) -> str | None:
        return None if self._here else proxy_for(url)

    def _opened(self) -> aiohttp.ClientSession:
        """Made in the running loop, at its first use."""
        if self._session is None:
            self._session = bounded_session(aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS))
        return self._session


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds that an answer asks to wait, at most `LONGEST_WAIT`; `None` where it says nothing that can be
    read. A date is held against when the answer was sent, by the same clock."""
    said = headers.get("Retry-After") or ""
    try:
        seconds = float(said or math.nan)
    except ValueError:
        seconds = _seconds_between(headers.get("Date") or "", said)
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)


def _seconds_between(first: str, second: str) -> float:
    """Seconds from one HTTP date to another; NaN where one is none."""
    try:
        return parsedate_to_datetime(second).timestamp() - parsedate_to_datetime(first).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def is_kept_at(address: str, hosts: Iterable[str]) -> bool:
    """Returns whether an address is one of these hosts, or below one, with `https`. It is read as it is requested."""
    try:
        url = URL(address, encoded=True)
        host = (url.host or "").lower()
    except ValueError:
        return False
    return url.scheme == "https" and any(host == each or host.endswith(f".{each}") for each in hosts)


@contextmanager
def failing(call: str) -> Iterator[None]:
    """aiohttp's failures, and time-outs, as `CallFailed`. Causes are not kept: they hold the request, and with it
    texts, secrets and tokens."""
    try:
        yield
    except aiohttp.InvalidURL:
        raise CallFailed(call, "bad_address") from None
    except aiohttp.ClientConnectorCertificateError:
        raise CallFailed(call, "certificate") from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError):
        raise CallFailed(call, "connection") from None
    except TimeoutError:
        raise CallFailed(call, "timeout", may_have_acted=True) from None
    except AnswerTooLong:
        raise CallFailed(call, "bad_answer", may_have_acted=True) from None
    except aiohttp.ClientError:
        raise CallFailed(call, "connection", may_have_acted=True) from None


def proxy_for(url: str) -> str | None:
    """Returns the proxy that the environment names for an address (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`)."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def ask_this_machine_itself(environment: MutableMapping[str, str]) -> None:
    """Have no library ask the environment's proxy for what is on this machine, such as a tool server: the proxy does
    not reach it, answers in its place, and is sent its token."""
    proxies = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy") and value}
    direct = proxies.pop("no_proxy", "")
    if proxies and direct != "*":
        listed = ",".join([*filter(None, [direct]), *_THIS_MACHINE])
        environment.update({"NO_PROXY": listed, "no_proxy": listed})


class AnswerTooLong(aiohttp.ClientPayloadError):
    """An answer longer than `LONGEST_ANSWER`."""


class BoundedAnswer(aiohttp.ClientResponse):
    """An answer whose body is counted while it comes, and is UTF-8 whatever it says itself: Python knows encodings
    (`punycode`) that take seconds for 200 kB."""

    async def read(self) -> bytes:
        """The whole body. Raises `AnswerTooLong`."""
        if self._body is None:
            body = bytearray()
            async for chunk in self.content.iter_chunked(_READ):
                body += chunk
                if len(body) > LONGEST_ANSWER:
                    self.close()
                    raise AnswerTooLong
            self._body = bytes(body)
        return self._body

    async def json(self, **how: Any) -> Any:
        """Reads the body as aiohttp does. Raises `json.JSONDecodeError` also where there is too much to be read."""
        if has_too_many_values(await self.read(), MOST_VALUES):
            raise json.JSONDecodeError("too many values", "", 0)
        return await super().json(**how)

    def get_encoding(self) -> str:
        """Returns UTF-8, in which JSON is written."""
        return "utf-8"


def bounded_session(
    timeout: aiohttp.ClientTimeout, *middlewares: aiohttp.ClientMiddlewareType
) -> aiohttp.ClientSession:
    """Returns a session for a service outside, without cookies; to be made in the running loop."""
    return aiohttp.ClientSession(
        connector=only_asked(aiohttp.TCPConnector()),
        timeout=timeout,
        response_class=BoundedAnswer,
        middlewares=middlewares,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
