"""The HTTP client for a model's service. What the service sends is bounded before the OpenAI client reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpcore2
import httpx2
import openai

from graph.http_bounds import NoCookies, in_pieces, is_encoded, take_short_heads

LONGEST_ERROR = 64 * 1024
"""Bytes of anything but an answer, which the OpenAI client reads to its end before it looks at it. What follows is left
out."""
LONGEST_LINE = 8 * 1024 * 1024
"""Bytes of an answer without the end of a line: the longest arguments of a call in one event, each character escaped.
The OpenAI client gathers lines and events "without imposing a size limit"."""
LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of one answer in all its events, of which each token has one of some 250 bytes."""

take_short_heads(httpcore2.AsyncHTTP11Connection)


def http_client(timeout: float, connect: float) -> httpx2.AsyncClient:
    """A client for one model's service, which is closed with the model. Times are seconds.

    It raises `httpx2.RemoteProtocolError` for what is too large, or compressed."""
    return openai.DefaultAsyncHttpxClient(
        timeout=openai.Timeout(timeout, connect=connect),
        headers={"Accept-Encoding": "identity"},
        cookies=NoCookies(),
        event_hooks={"response": [_bound]},
    )


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
        total = line = 0
        async for piece in in_pieces(self._stream):
            yield piece
            total += len(piece)
            end = piece.rfind(b"\n")
            line = line + len(piece) if end < 0 else len(piece) - end - 1
            if not self._whole and total >= LONGEST_ERROR:
                return
            if line > LONGEST_LINE or total > LONGEST_ANSWER:
                raise httpx2.RemoteProtocolError("its answer is too large")

    async def aclose(self) -> None:
        """As httpx2 wants it."""
        await self._stream.aclose()
