"""What our aiohttp clients take of an answer from outside: no cookies, and a body that is counted while it comes, so
that nothing grows without bound or holds the event loop (rule 13)."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from adapters.shared.json_bodies import has_too_many_values

LONGEST_ANSWER = 4 * 1024 * 1024
"""Bytes, decompressed: 200 messages of a thread with all their blocks."""
MOST_VALUES = 50_000
"""Of a JSON answer, which takes up to 30 ms to be read: 200 messages with 250 each. Teams' pages of 500 members have
some 5,000."""
_READ = 64 * 1024


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
        """As aiohttp's. Raises `json.JSONDecodeError` also where there is too much to be read."""
        if has_too_many_values(await self.read(), MOST_VALUES):
            raise json.JSONDecodeError("too many values", "", 0)
        return await super().json(**how)

    def get_encoding(self) -> str:
        """As JSON is written."""
        return "utf-8"


def bounded_session(
    timeout: aiohttp.ClientTimeout, *middlewares: aiohttp.ClientMiddlewareType
) -> aiohttp.ClientSession:
    """A session for a service outside, to be made in the running loop."""
    return aiohttp.ClientSession(
        timeout=timeout,
        response_class=BoundedAnswer,
        middlewares=middlewares,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
