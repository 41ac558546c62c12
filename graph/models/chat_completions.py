"""Requests to `/chat/completions`, and the events of their answers, JSON in and JSON out.

The OpenAI client's own way copies and checks each request several times, and hands each event through five generators:
a third of a model's call. Addresses, headers, connections, redirects and the kinds of failures stay the client's.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any

import anyio
import httpx2
import openai

from graph.http_bounds import OutsideStrings
from graph.models.problems import ModelProblem, Trouble

MOST_VALUES = 50_000
"""Lists, objects, and elements and members of them, of one event. The events in which OpenAI repeats all tools that it
was given have half as many at most; this many take 30 ms."""
_LONG = 64 * 1024
"""Bytes of an event from which on it is looked through before it is parsed; at a time."""
_MANY_DIGITS = re.compile(rb"(?<![0-9])[0-9]{100}")
"""Part of a number that nobody needs: reading one of 4,000 digits takes 35 µs, and writing it three times as long."""
_AT_ONCE = 50
"""Events that are read one after the other before others get their turn, some 5 ms: they may all be there already."""
_REST_SECONDS = 0.1
"""What is waited for the end of a body after its last event, so that its connection can be used again."""
_BROKEN = (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream)
"""What the HTTP client raises where a connection fails; some failures of TLS go past its own errors."""


class ChatCompletions:
    """`/chat/completions` of one service, by an OpenAI client. The client's key and headers stay as they are now."""

    def __init__(self, client: openai.AsyncOpenAI, http: httpx2.AsyncClient) -> None:
        """`http`: the HTTP client that `client` was made with."""
        self._client = client
        self._http = http
        self._pattern: httpx2.Request | None = None

    async def ask(self, body: Mapping[str, Any]) -> httpx2.Response:
        """The answer, of which the head has been read; to be closed.

        Raises what the OpenAI client raises: `openai.APIError` for an answer that is none, and where there is none.
        `ValueError`: the body is no JSON.
        """
        request = await self._request(body)
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request=request) from error
        except _BROKEN as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            await response.aread()
            raise self._client._make_status_error_from_response(response)
        return response

    async def _request(self, body: Mapping[str, Any]) -> httpx2.Request:
        """Each request differs from the others in its body alone: making its address and headers anew takes 0.2 ms."""
        if self._pattern is None:
            client, url = self._client, self._client.base_url
            await asyncio.to_thread(client.platform_headers)  # reads files, once
            given = client.default_headers.items()
            self._pattern = self._http.build_request(
                "POST",
                url.copy_with(raw_path=url.raw_path.rstrip(b"/") + b"/chat/completions"),
                headers={name: value for name, value in given if isinstance(value, str)} | client.auth_headers,
                timeout=client.timeout,
            )
            del self._pattern.headers["Content-Length"]
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        pattern = self._pattern
        return httpx2.Request(
            "POST", pattern.url, headers=pattern.headers, content=content, extensions=pattern.extensions
        )


async def events_of(response: httpx2.Response, seconds: float | None) -> AsyncGenerator[Any]:
    """Yields what each event says, until the service says that it is done; closes the answer.

    Args:
        response: Its body is bounded already, also within an event.
        seconds: The longest wait for an event; comments do not count.

    Raises `openai.APIError` for an error that is sent as an event, and what the OpenAI client raises for a connection
    that breaks; `TimeoutError`; `ModelProblem` for an event that takes too long to be parsed; `ValueError` for one that
    is no JSON.
    """
    pieces, events, read, loop = response.aiter_raw(), _AnswerEvents(), 0, asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    try:
        while (piece := await _next(pieces, until, response.request)) is not None:
            for said in events.feed(piece):
                if said.startswith("[DONE]"):
                    await _read_rest(pieces)
                    return
                if await takes_long(said):
                    raise ModelProblem(Trouble.TOO_MUCH)
                yield _without_error(json.loads(said), response.request)
                read += 1
                if read % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                until = None if seconds is None else loop.time() + seconds
    finally:
        await response.aclose()


async def _next(pieces: AsyncIterator[bytes], until: float | None, request: httpx2.Request) -> bytes | None:
    try:
        async with asyncio.timeout_at(until):
            return await anext(pieces, None)
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=request) from error
    except _BROKEN as error:
        raise openai.APIConnectionError(request=request) from error


def _without_error(event: Any, request: httpx2.Request) -> Any:
    if isinstance(event, dict) and (error := event.get("error")):
        message = error.get("message") if isinstance(error, dict) else None
        text = message if isinstance(message, str) and message else "An error occurred during streaming"
        raise openai.APIError(text, request=request, body=error)
    return event


async def _read_rest(pieces: AsyncIterator[bytes]) -> None:
    """What becomes of it is no failure of the answer, which is whole."""
    with suppress(*_BROKEN, httpx2.StreamError, TimeoutError):
        async with asyncio.timeout(_REST_SECONDS):
            async for _ in pieces:
                pass


class _AnswerEvents:
    """Events in the making (https://html.spec.whatwg.org/multipage/server-sent-events.html). Their names, ids and
    pauses say nothing in chat completions. Linear in time, however the pieces are cut."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._after_return = False
        """Whether the last piece ended in a carriage return, to which a line feed may belong."""

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yields the data of the events that end in this piece. Raises `ValueError` at what is not UTF-8."""
        if self._after_return:
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r") or (self._after_return and not piece)
        for line in piece.splitlines(keepends=True):
            self._line.append(line)
            if not line.endswith((b"\n", b"\r")):
                return
            whole, self._line = b"".join(self._line).rstrip(b"\r\n").decode(), []
            name, _, value = whole.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif not whole and self._data:
                yield "\n".join(self._data)
                self._data = []


async def takes_long(said: str) -> bool:
    """Whether parsing an event would: with too many values, or a number of too many digits."""
    if len(said) <= _LONG:
        return False
    data, outside, values = said.encode(), OutsideStrings(), 0
    for start in range(0, len(data), _LONG):
        bare = outside.feed(data[start : start + _LONG])
        values += bare.count(b"[") + bare.count(b"{") + bare.count(b",")
        if values > MOST_VALUES or _MANY_DIGITS.search(bare):
            return True
        await asyncio.sleep(0)
    return False
