"""A model's service that is asked in JSON and answers in events: ours for those whose own clients retry, buffer or
follow wherever they are sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import httpx2

from graph.models.event_stream import json_events
from graph.models.http_client import http_client

_CONNECT_SECONDS = 10.0
_LONGEST_SAID = 500
"""Characters of a service's own words about an error that go into the log."""


class ServiceError(Exception):
    """The service said that it does not answer: as its answer (with a status), or in the middle of one."""

    def __init__(self, body: Any, response: httpx2.Response | None = None) -> None:
        self.body = body
        """The JSON that it sent, if it was any."""
        self.response = response
        self.status_code = response.status_code if response is not None else None
        said = self.said[:_LONGEST_SAID] or "nothing that could be read"
        super().__init__(f"status {self.status_code}: {said}" if response is not None else said)

    @property
    def error(self) -> Mapping[str, Any]:
        """What stands under `error`, where these services say what is wrong."""
        body = self.body[0] if isinstance(self.body, list) and self.body else self.body
        error = body.get("error") if isinstance(body, Mapping) else None
        return error if isinstance(error, Mapping) else {}

    @property
    def said(self) -> str:
        """Its words."""
        message = self.error.get("message")
        return message if isinstance(message, str) else ""


class StreamingService:
    """One service, and its connections. It never retries: `stream_message` does."""

    def __init__(self, address: str, headers: Mapping[str, str], timeout: float) -> None:
        """`headers` go with each request. `timeout`: seconds to wait for the answer to begin, and for each further
        event of it."""
        self._address = address
        self._headers = {**headers, "Content-Type": "application/json"}
        self._timeout = timeout
        self._http = http_client(timeout, min(_CONNECT_SECONDS, timeout))

    async def ask(
        self, path: str, body: Callable[[], Any], read: Callable[[str], Any], take: Callable[[Any], None]
    ) -> None:
        """Ask, and give `take` what `read` makes of the data of each event, as it comes.

        Args:
            path: From the address on.
            body: Makes what is asked, in a thread: a long conversation takes tens of milliseconds.
            read: See `json_events`.

        Raises `ServiceError`, what `json_events` raises, and `httpx2.RequestError` where there is no answer.
        """
        content = await asyncio.to_thread(_written, body)
        request = self._http.build_request("POST", self._address + path, headers=self._headers, content=content)
        # Not followed anywhere: the key goes in a header of the service's own, which would go along.
        response = await self._http.send(request, stream=True, follow_redirects=False)
        if not response.is_success:
            await response.aread()
            raise ServiceError(_json(response.content), response)
        answer = json_events(response, self._timeout, read)
        async with aclosing(answer):
            async for event in answer:
                take(event)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def json_of(said: str) -> Any:
    """Returns the data of an event. Raises `ValueError` where it is no JSON, or nested too deep."""
    try:
        return json.loads(said)
    except RecursionError:
        raise ValueError("an event nested too deep") from None


def _written(body: Callable[[], Any]) -> bytes:
    return json.dumps(body(), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(errors="replace")


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
