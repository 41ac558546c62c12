"""Requests to services that speak OpenAI's API, tried once and bounded: without them an answer is worse, no more.

Imported only where such a service is configured: its libraries take half a second.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import cast

import httpx2
from openai import OpenAI

LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes. Our own choice: 64 vectors of 4,096 numbers, each written with 20 characters, take 5 million."""


def client_of(base_url: str, key: str) -> OpenAI:
    """A client that does not try again: it would wait for as long as the service says. Whoever asks tries again.

    Args:
        base_url: empty: OpenAI.
        key: empty: the service needs none.
    """
    connections = httpx2.Client(event_hooks={"response": [_bound]})
    client = OpenAI(
        base_url=base_url or None,
        api_key=key or "none",
        max_retries=0,
        default_headers={"Accept-Encoding": "identity"},
        http_client=connections,
    )
    weakref.finalize(client, connections.close)
    return client


def _bound(response: httpx2.Response) -> None:
    """Let the body of an answer take only as long, as a whole, as httpx2 would wait for each piece of it. Raises
    `httpx2.ReadError` for one that would have to be decompressed: a kilobyte may become a gigabyte."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise httpx2.ReadError("the answer is compressed", request=response.request)
    seconds = response.request.extensions.get("timeout", {}).get("read")
    ends = time.monotonic() + seconds if seconds else None
    response.stream = _BoundedBody(cast(httpx2.SyncByteStream, response.stream), response.request, ends)


class _BoundedBody(httpx2.SyncByteStream):
    """The body of an answer, up to a moment (as `time.monotonic`; `None`: whenever it ends) and a size."""

    def __init__(self, body: httpx2.SyncByteStream, request: httpx2.Request, ends: float | None) -> None:
        self._body = body
        self._request = request
        self._ends = ends

    def __iter__(self) -> Iterator[bytes]:
        """Yields what comes. Raises `httpx2.ReadTimeout`, `httpx2.ReadError`."""
        size = 0
        for piece in self._body:
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise httpx2.ReadError("the answer is too large", request=self._request)
            if self._ends is not None and time.monotonic() > self._ends:
                raise httpx2.ReadTimeout("the answer takes too long", request=self._request)
            yield piece

    def close(self) -> None:
        """Let go of the connection."""
        self._body.close()
