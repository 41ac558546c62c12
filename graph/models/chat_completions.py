"""Requests to `/chat/completions`, and the events of their answers, JSON in and JSON out.

The OpenAI client's own way copies and checks each request several times, and hands each event through five generators:
a third of a model's call. Addresses, headers, connections, redirects and the kinds of failures stay the client's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx2
import openai

from graph.models.event_stream import BROKEN, json_events


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
        with _failing(request):
            response = await self._http.send(request, stream=True)
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


def events_of(response: httpx2.Response, seconds: float | None) -> AsyncGenerator[Any]:
    """Yields what each event says, until the service says that it is done; closes the answer.

    Args:
        response: Its body is bounded already, also within an event.
        seconds: The longest wait for an event; comments do not count.

    Raises `openai.APIError` for an error that is sent as an event, and what the OpenAI client raises for a connection
    that breaks; otherwise what `json_events` raises.
    """
    request = response.request

    def read(said: str) -> Any:
        return _without_error(json.loads(said), request)

    return json_events(response, seconds, read, partial(_failing, request))


@contextmanager
def _failing(request: httpx2.Request) -> Iterator[None]:
    """Failures of the connection as the OpenAI client's."""
    try:
        yield
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=request) from error
    except BROKEN as error:
        raise openai.APIConnectionError(request=request) from error


def _without_error(event: Any, request: httpx2.Request) -> Any:
    if isinstance(event, dict) and (error := event.get("error")):
        message = error.get("message") if isinstance(error, dict) else None
        text = message if isinstance(message, str) and message else "An error occurred during streaming"
        raise openai.APIError(text, request=request, body=error)
    return event
