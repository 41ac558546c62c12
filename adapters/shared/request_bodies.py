"""Bodies of requests, read with a limit on their size and on the time that they take."""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

BODY_SECONDS = 15.0
"""How long a client may take to send a body."""


class BodyNotReadError(Exception):
    """A body was not read; `status` is the answer's, and the text a sentence for whoever sent it."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def read_whole_body(request: web.Request, most: int, too_large: str) -> bytes:
    """Returns the body, of `most` bytes at most. Raises `BodyNotReadError`: 413 with the sentence `too_large`, without
    reading on; 408; 400."""
    raw = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                raw += chunk
                if len(raw) > most:
                    raise BodyNotReadError(413, too_large)
    except TimeoutError:
        raise BodyNotReadError(408, "The body did not arrive in time.") from None
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError):
        raise BodyNotReadError(400, "The body broke off.") from None
    return bytes(raw)
