"""One request to one of Microsoft's services and its answer, or the reason why there is none. Nothing here blocks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from adapters.shared.answers import MOST_VALUES, AnswerTooLong, bounded_session
from adapters.shared.json_bodies import has_too_many_values

CONNECT_SECONDS = 5.0


class HttpFailed(Exception):  # noqa: N818  # like ConnectorFailed
    """No answer. `error`: `connection`, `timeout`, `bad_answer` or `bad_address`."""

    def __init__(self, error: str, *, may_have_acted: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.may_have_acted = may_have_acted


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Looked up case-insensitively."""
    body: bytes

    def json(self) -> Any:
        """What the body says; `None` when it is not JSON, or too much to be read."""
        if has_too_many_values(self.body, MOST_VALUES):
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def object(self) -> Mapping[str, Any]:
        """The JSON object that the body is; empty when it is none."""
        read = self.json()
        return read if isinstance(read, dict) else {}


class Http:
    """Connections, kept and shared. `close` in the end.

    Redirects are not followed: they would take our tokens along.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        data: bytes | str | Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """The answer, within `seconds` from connecting to the last byte. `data` that is a mapping is sent as a form.

        Raises `HttpFailed`.
        """
        # Causes are not kept: they hold the request, and with it texts, secrets and tokens.
        try:
            async with (
                asyncio.timeout(seconds),
                self._opened().request(
                    method,
                    URL(url, encoded=True),
                    headers=headers,
                    data=data,
                    allow_redirects=False,
                    proxy=_proxy_for(url),
                ) as response,
            ):
                return HttpAnswer(response.status, response.headers, await response.read())
        except aiohttp.InvalidURL:
            raise HttpFailed("bad_address") from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError):
            raise HttpFailed("connection") from None
        except TimeoutError:
            raise HttpFailed("timeout", may_have_acted=True) from None
        except AnswerTooLong:
            raise HttpFailed("bad_answer", may_have_acted=True) from None
        except aiohttp.ClientError:
            raise HttpFailed("connection", may_have_acted=True) from None
        except ValueError:
            raise HttpFailed("bad_address") from None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        """Made in the running loop, at its first use."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
            self._session = bounded_session(timeout)
        return self._session


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`)."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
