"""Other agents: MCP clients by the SDK, each of some person's; and that person at the page, who decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from mcp import ClientSession
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult, Implementation, TextContent

from bot.gateway.thread_ids import is_gateway_thread
from tests.api.contract_clients import token
from tests.support.visitor import WITHIN, Json, Thread, visiting


def address(url: str, server: str = "") -> str:
    """Where clients reach the tools of all servers, or of one."""
    return f"{url}/mcp/{server}" if server else f"{url}/mcp"


def authorization(person: str = "ana") -> dict[str, str]:
    """The header of a client that acts for somebody."""
    return {"Authorization": f"Bearer {token(person)}"}


@asynccontextmanager
async def agent(
    url: str,
    *,
    person: str = "ana",
    name: str = "cursor",
    server: str = "",
    elicitation: ElicitationFnT | None = None,
) -> AsyncIterator[ClientSession]:
    """An agent of a person's, initialized."""
    async with (
        create_mcp_http_client(authorization(person)) as http,
        streamable_http_client(address(url, server), http_client=http) as (read, write, _),
        ClientSession(
            read,
            write,
            client_info=Implementation(name=name, version="1.0"),
            elicitation_callback=elicitation,
            read_timeout_seconds=timedelta(seconds=WITHIN),
        ) as session,
    ):
        await session.initialize()
        yield session


@dataclass
class Told:
    """What a client is told while it waits."""

    progress: list[float] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """The SDK's progress callback."""
        async with self._changed:
            self.progress.append(progress)
            self.messages.append(message or "")
            self._changed.notify_all()

    async def until(self, *words: str) -> str:
        """Wait until it is told something with all these words in it."""

        def found() -> str | None:
            return next((text for text in self.messages if all(word.lower() in text.lower() for word in words)), None)

        async with asyncio.timeout(WITHIN), self._changed:
            while (text := found()) is None:
                await self._changed.wait()
        return text


@dataclass
class Decider:
    """A person at the page, who decides about the calls of agents."""

    thread: Thread
    """Some conversation of theirs; what agents ask for stands beside whichever is open."""

    def waiting(self) -> list[Json]:
        """What waits for their decision now, as far as the page has heard."""
        return [each for each in self.thread.asked if is_gateway_thread(each["thread_id"])]

    async def asked(self, number: int = 1) -> list[Json]:
        """Wait until exactly so much waits for them, and return it."""
        await self.thread.until(lambda: len(self.waiting()) == number, f"{number} calls to decide")
        return self.waiting()

    async def approve(self, asked: Json, **values: Any) -> None:
        """Press Approve, or Approve with changes."""
        result = await self.thread.approve(asked["id"], values=values or None)
        assert result["kind"] == "settled", result

    async def reject(self, asked: Json, reason: str) -> None:
        """Press Reject, and say why."""
        result = await self.thread.reject(asked["id"], reason)
        assert result["kind"] == "settled", result


@asynccontextmanager
async def deciding(url: str, person: str = "ana") -> AsyncIterator[Decider]:
    """Somebody at the page."""
    async with visiting(url, person) as visitor, visitor.thread() as thread:
        yield Decider(thread)


def texts(result: CallToolResult) -> list[str]:
    """The texts of a result."""
    return [block.text for block in result.content if isinstance(block, TextContent)]


def as_sent(result: Any) -> Json:
    """A result or a tool as it went over the wire."""
    written: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return written


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something holds of a tool server."""
    async with asyncio.timeout(WITHIN):
        while not condition():
            await asyncio.sleep(0.01)
