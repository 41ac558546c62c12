"""A program that uses tools at `/mcp`, written from MCP's specification alone: a test may break off its requests, and
sees whether a process died before or after it had answered.

program = GatewayProgram(url, http, "ana", "cursor")
called = await program.call("effects__act", key="one")   # begins a session before its first call
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from adapters.shared.outages import AWAY
from tests.api.contract_clients import token

Json = dict[str, Any]
VERSION = "2025-11-25"
LONGEST_LINE = 8 * 1024 * 1024
"""Bytes of a result, which is one line."""


class NotAnsweredError(aiohttp.ClientError):
    """The process ended, or ends, before it has answered, or its records are away: the same may be asked again."""


class GatewayError(Exception):
    """What was asked for was answered with an error of the protocol."""


@dataclass(frozen=True)
class Called:
    """The result of a call."""

    is_error: bool
    text: str
    """Its texts, one below the other."""
    structured: Json | None
    meta: Json

    @property
    def still_waits(self) -> bool:
        """Whether there is no result yet, and the same call goes on waiting."""
        return "countersign/status" in self.meta


class GatewayProgram:
    """One program of one person's. Any number of its calls may be under way.

    Args:
        name: as it calls itself.
    """

    def __init__(self, url: str, http: aiohttp.ClientSession, person: str = "ana", name: str = "cursor") -> None:
        self.url = url
        self.told: list[str] = []
        """What it was told while it waited."""
        self._http = http
        self._person = person
        self._name = name
        self._session = ""
        self._ids = itertools.count(1)

    def at(self, url: str) -> GatewayProgram:
        """The same program in the same session, at another process."""
        other = copy.copy(self)
        other.url = url
        return other

    async def begin(self) -> None:
        """Begin a session, which lasts whatever becomes of the process that it was begun at."""
        about = {"name": self._name, "version": "1.0"}
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        await self._ask("initialize", params)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call(self, tool: str, **arguments: Any) -> Called:
        """Call a tool, and wait for what comes of it. Raises `aiohttp.ClientError` when that was not answered."""
        if not self._session:
            await self.begin()
        number = next(self._ids)
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": number}}
        result = await self._ask("tools/call", params, number)
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        return Called(
            result.get("isError", False), "\n".join(texts), result.get("structuredContent"), result.get("_meta", {})
        )

    async def _ask(self, method: str, params: Json, number: int | None = None) -> Json:
        asked = next(self._ids) if number is None else number
        for message in await self._post({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}):
            if message.get("id") != asked:
                continue
            if "error" in message:
                is_away = message["error"]["message"] == AWAY
                raise NotAnsweredError(AWAY) if is_away else GatewayError(message["error"])
            result: Json = message["result"]
            return result
        raise NotAnsweredError(f"{method} was not answered")

    async def _post(self, message: Json) -> list[Json]:
        """Send a message; what was answered. What it is told meanwhile is `told` at once."""
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token(self._person)}",
            "MCP-Protocol-Version": VERSION,
        }
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        async with self._http.post(
            f"{self.url}/mcp", json=message, headers=headers, read_bufsize=LONGEST_LINE
        ) as response:
            if response.status >= 500:
                raise NotAnsweredError(f"{response.status}: {await response.text()}")
            assert response.status < 300, (response.status, await response.text())
            self._session = response.headers.get("Mcp-Session-Id", self._session)
            if response.content_type != "text/event-stream":
                said = await response.text()
                return [json.loads(said)] if said else []
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> list[Json]:
        """The messages of an event stream. What it broke off after has been answered all the same."""
        answers: list[Json] = []
        try:
            async for line in response.content:
                if line.startswith(b"data:") and (data := line.removeprefix(b"data:").strip()):
                    answers.append(json.loads(data))
                    if answers[-1].get("method") == "notifications/progress":
                        self.told.append(answers[-1]["params"]["message"])
        except aiohttp.ClientError:
            if not any("result" in answer for answer in answers):
                raise
        return answers


@asynccontextmanager
async def programs() -> AsyncIterator[aiohttp.ClientSession]:
    """Connections for any number of them: one for each request, so that what is broken off is gone."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=100)
    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(), connector=connector, timeout=timeout
    ) as session:
        yield session
