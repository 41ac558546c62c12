from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent, Tool

from tests.support.forks import quick_python

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Client:
    """A session with a server, as an MCP client has it."""

    session: ClientSession

    async def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in (await self.session.list_tools()).tools}

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call that must succeed."""
        result = await self.session.call_tool(name, arguments)
        assert not result.isError, result.content
        assert result.structuredContent is not None
        return result.structuredContent

    async def text(self, name: str, /, **arguments: Any) -> str:
        """The text of a call that must succeed."""
        return await self._text(name, arguments, refused=False)

    async def refusal(self, name: str, /, **arguments: Any) -> str:
        """The sentence with which a call is refused."""
        return await self._text(name, arguments, refused=True)

    async def _text(self, name: str, arguments: dict[str, Any], *, refused: bool) -> str:
        result = await self.session.call_tool(name, arguments)
        assert result.isError is refused, result.content
        (content,) = result.content
        assert isinstance(content, TextContent)
        return content.text


Serving = Callable[[str], AbstractAsyncContextManager[Client]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The database files are in folders that do not exist yet; the local time is not UTC."""
    return {
        "CALENDAR_DB": str(tmp_path / "new" / "calendar.db"),
        "TASKS_DB": str(tmp_path / "new" / "tasks.db"),
        "TZ": "Europe/Berlin",
    }


@pytest.fixture
def stdio(environment: dict[str, str]) -> Serving:
    """Starts a bundled server by its name as a process of its own; ends it with the block."""

    @asynccontextmanager
    async def serving(name: str) -> Any:
        command, *arguments = quick_python("-m", f"servers.{name}")
        parameters = StdioServerParameters(command=command, args=arguments, env=environment, cwd=ROOT)
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield Client(session)

    return serving
