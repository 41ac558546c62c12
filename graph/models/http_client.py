"""The HTTP client of a model's service. What the service sends is bounded before anybody reads it.

httpx2 is what the OpenAI client speaks: it follows redirects, and knows the proxies and certificates of the
environment. Connections and HTTP itself are aiohttp's, which reads it in C: beside httpx2's own, in Python, that saves
a third of a model's call.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import httpx2
from yarl import URL

from graph.http_bounds import LONGEST_HEAD, NoCookies, in_pieces, is_encoded
from graph.http_connections import only_asked

LONGEST_ERROR = 64 * 1024
"""Bytes of anything but an answer, which is read to its end before anybody looks at it. What follows is left out."""
_ERROR_SECONDS = 10.0
"""For which it is read; what comes later is left out, too. Each byte may come shortly before the time for it is up."""
LONGEST_EVENT = 8 * 1024 * 1024
"""Bytes of one event, which an empty line ends: the longest arguments of a call, each character escaped."""
LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of one answer in all its events, of which each token has one of some 250 bytes."""
_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
_MOST_CONNECTIONS = 1_000
_IDLE_SECONDS = 5.0
"""How long a connection is kept for the next request; with the number above, as the OpenAI client has them."""
_BUFFER = 16 * 1024
"""Bytes of a body that wait to be read; twice as many stop the reading from its connection."""


def http_client(timeout: float, connect: float) -> httpx2.AsyncClient:
    """A client for one model's service, which is closed with the model. Times are seconds.

    It raises `httpx2.RemoteProtocolError` for what is too large, or compressed."""
    return _HttpClient(
        timeout=httpx2.Timeout(timeout, connect=connect),
        headers={"Accept-Encoding": "identity"},
        cookies=NoCookies(),
        event_hooks={"response": [_bound]},
        follow_redirects=True,
    )


def blocking_client() -> httpx2.Client:
    """The client for requests that block, of which nobody here makes any: the one that LangChain would make reads the
    certificates twice, 2 MB and 30 ms."""
    return httpx2.Client(transport=httpx2.MockTransport(_not_asked), trust_env=False)


def _not_asked(_: httpx2.Request) -> httpx2.Response:
    raise NotImplementedError("a model is asked without blocking")


class _HttpClient(httpx2.AsyncClient):
    """Speaks by `_Transport`, also with the proxies of the environment."""

    def _init_transport(self, *_: Any, verify: Any = True, trust_env: bool = True, **__: Any) -> _Transport:
        return _Transport(httpx2.create_ssl_context(verify=verify, trust_env=trust_env))

    def _init_proxy_transport(
        self, proxy: httpx2.Proxy, *_: Any, verify: Any = True, trust_env: bool = True, **__: Any
    ) -> _Transport:
        return _Transport(httpx2.create_ssl_context(verify=verify, trust_env=trust_env), _address_of(proxy))


def _address_of(proxy: httpx2.Proxy) -> URL:
    """With the name and the password that belong to it. Raises `ValueError` for a proxy of another kind."""
    address = URL(str(proxy.url), encoded=True)
    if address.scheme not in {"http", "https"}:
        raise ValueError("the environment names a proxy that does not speak HTTP")
    name, password = proxy.auth or (None, None)
    return address.with_user(name).with_password(password) if name is not None else address


class _Transport(httpx2.AsyncBaseTransport):
    """httpx2's requests over aiohttp's connections."""

    def __init__(self, certificates: ssl.SSLContext, proxy: URL | None = None) -> None:
        self._certificates = certificates
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, of which the head has been read. Raises `httpx2.TransportError`."""
        limits = request.extensions.get("timeout", {})
        connect, read, write = limits.get("connect"), limits.get("read"), limits.get("write")
        # aiohttp waits for writing, and for heads that tell of others to come, as long as it takes.
        whole = None if None in {connect, read, write} else connect + write + read
        with _failing():
            async with asyncio.timeout(whole):
                answer = await self._opened().request(
                    request.method,
                    _without_account(URL(str(request.url), encoded=True)),
                    headers=request.headers,
                    data=await request.aread() or None,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(sock_connect=connect, sock_read=read, connect=limits.get("pool")),
                )
        if sum(len(name) + len(value) for name, value in answer.raw_headers) > LONGEST_HEAD:
            answer.close()
            raise httpx2.RemoteProtocolError("the head of its answer is too long")
        return httpx2.Response(
            answer.status,
            headers=answer.raw_headers,
            stream=_BoundBody(answer),
            extensions={
                "http_version": b"HTTP/1.1",
                "reason_phrase": (answer.reason or "").encode(errors="surrogateescape"),
            },
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Made in the running loop, at its first use."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=only_asked(
                    aiohttp.TCPConnector(
                        ssl=self._certificates, limit=_MOST_CONNECTIONS, keepalive_timeout=_IDLE_SECONDS
                    )
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=_BUFFER,
                proxy=self._proxy,
            )
        return self._session


def _without_account(address: URL) -> URL:
    """The name and the password in an address are in the request's `Authorization` already."""
    has_account = address.raw_user is not None or address.raw_password is not None
    return address.with_user(None) if has_account else address


@contextmanager
def _failing() -> Iterator[None]:
    """aiohttp's failures as httpx2's."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except TimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError) as error:
        raise httpx2.ProxyError(str(error)) from error
    except aiohttp.InvalidURL as error:
        raise httpx2.UnsupportedProtocol(str(error)) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise httpx2.ReadError(str(error)) from error
    except ValueError as error:
        raise httpx2.LocalProtocolError("a request that cannot be written") from error


class _BoundBody(httpx2.AsyncByteStream):
    """A body as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _failing():
            while piece := await self._answer.content.readany():
                yield piece

    async def aclose(self) -> None:
        """Closes its connection, unless all of it was read: then another request may have it."""
        if not self._answer.content.at_eof():
            self._answer.close()
        self._answer.release()


async def _bound(response: httpx2.Response) -> None:
    """Called before anything of the body is read, also of a redirect's."""
    if is_encoded(response.headers.get("content-encoding")):
        raise httpx2.RemoteProtocolError("its answer is compressed, which nobody asked for")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, whole=response.is_success)


class _Bounded(httpx2.AsyncByteStream):
    """A body as far as it is read. `whole`: one that is too large is a failure, and not cut."""

    def __init__(self, stream: httpx2.AsyncByteStream, *, whole: bool) -> None:
        self._stream = stream
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = event = 0
        before = b""
        until = time.monotonic() + _ERROR_SECONDS
        async for piece in in_pieces(self._stream):
            yield piece
            total += len(piece)
            seen = before + piece
            ends = max((end.end() for end in _END_OF_EVENT.finditer(seen)), default=0)
            event = len(seen) - ends if ends else event + len(piece)
            before = seen[-3:]
            if not self._whole and (total >= LONGEST_ERROR or time.monotonic() > until):
                return
            if event > LONGEST_EVENT or total > LONGEST_ANSWER:
                raise httpx2.RemoteProtocolError("its answer is too large")

    async def aclose(self) -> None:
        """Part of httpx2's protocol."""
        await self._stream.aclose()
