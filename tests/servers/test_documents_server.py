"""The documents server: what is kept for whom, and what is found by words."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

from adapters.tool_servers.requester import told_requester
from tests.servers.conftest import ROOT
from tests.support.forks import quick_python

SECRET = "one that a program made, and 32 characters long"
ANA, BEN = "slack:T1:U1", "teams:t1:u2"
C1, C2 = "slack:T1:C1", "teams:t1:c2"
HANDBOOK = "<!-- page 1 -->\n# Leave\nEverybody has 28 days of leave.\n\n<!-- page 2 -->\n# Travel\nBook early."


@dataclass(frozen=True)
class Host:
    """A host that says who asks, and where."""

    session: ClientSession
    person: str = ANA
    channel: str | None = ""
    secret: str = SECRET

    async def result(self, tool: str, files: dict[str, Any] | None = None, **arguments: Any) -> CallToolResult:
        meta = told_requester(
            self.person,
            "documents",
            tool,
            arguments,
            secret=self.secret,
            at=int(time.time()),
            channel=self.channel,
            files=files,
        )
        return await self.session.call_tool(tool, arguments, meta=meta)

    async def call(self, tool: str, files: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call that must succeed."""
        result = await self.result(tool, files, **arguments)
        assert not result.isError and result.structuredContent is not None, result.content
        return result.structuredContent

    async def refusal(self, tool: str, files: dict[str, Any] | None = None, **arguments: Any) -> str:
        """The sentence with which a call is refused."""
        result = await self.result(tool, files, **arguments)
        assert result.isError, result
        return str(result.content)

    async def finds(self, query: str) -> set[str]:
        """The names of the documents in which something is found."""
        return {each["name"] for each in (await self.call("search_documents", query=query))["passages"]}

    async def lists(self) -> set[str]:
        return {each["name"] for each in (await self.call("list_documents"))["documents"]}


@asynccontextmanager
async def documents(folder: Path, secret: str = SECRET, **variables: str) -> AsyncIterator[Host]:
    """The server as a process of its own; the host speaks for Ana, where nobody reads along."""
    command, *arguments = quick_python("-m", "servers.documents")
    environment = {"DOCUMENTS_DB": str(folder / "new" / "documents.db")}
    environment |= ({"COUNTERSIGN_REQUESTER_SECRET": secret} if secret else {}) | variables
    parameters = StdioServerParameters(command=command, args=arguments, env=environment, cwd=ROOT)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield Host(session)


async def test_it_says_what_its_tools_are_and_what_they_may_do(tmp_path: Path) -> None:
    async with documents(tmp_path) as host:
        tools = {tool.name: tool for tool in (await host.session.list_tools()).tools}
    reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.readOnlyHint}
    assert set(tools) - reads == {"add_document", "delete_document"}
    assert reads >= {"search_documents", "read_document", "list_documents", "get_document", "preview_delete_document"}


async def test_what_is_kept_for_whom_is_found_by_them_and_nobody_else(tmp_path: Path) -> None:
    """Two people, two channels, on two platforms; and where nobody reads along."""
    async with documents(tmp_path) as ana:
        ben = replace(ana, person=BEN)
        everywhere = {
            "ana alone": ana,
            "ben alone": ben,
            "ana in C1": replace(ana, channel=C1),
            "ben in C1": replace(ben, channel=C1),
            "ana in C2": replace(ana, channel=C2),
            "ben in C2": replace(ben, channel=C2),
        }
        for name, host, kept_for in (
            ("of ana", ana, "me"),
            ("of ben", everywhere["ben in C2"], "me"),
            ("of C1", everywhere["ana in C1"], "channel"),
            ("of C2", everywhere["ben in C2"], "channel"),
            ("of all", ana, "everybody"),
        ):
            await host.call("add_document", keep_for=kept_for, text=f"The colour {name} is green.", name=name)
        wanted = {
            "ana alone": {"of ana", "of all"},
            "ben alone": {"of ben", "of all"},
            "ana in C1": {"of C1", "of all"},
            "ben in C1": {"of C1", "of all"},
            "ana in C2": {"of C2", "of all"},
            "ben in C2": {"of C2", "of all"},
        }
        assert {where: await host.finds("colours") for where, host in everywhere.items()} == wanted
        assert {where: await host.lists() for where, host in everywhere.items()} == wanted
        ids = {
            each["name"]: each["document_id"]
            for host in everywhere.values()
            for each in (await host.call("list_documents"))["documents"]
        }
        for where, host in everywhere.items():
            for name in set(ids) - wanted[where]:
                for tool in ("read_document", "get_document", "preview_delete_document", "delete_document"):
                    assert "no such document here" in await host.refusal(tool, document_id=ids[name])
        assert "Only whoever added it" in await ben.refusal("delete_document", document_id=ids["of all"])
        for name, host in (("of all", ana), ("of C1", everywhere["ben in C1"]), ("of ben", ben)):
            await host.call("delete_document", document_id=ids[name])
        assert await everywhere["ben in C1"].finds("colours green") == set()
        assert await ben.lists() == set()


async def test_a_file_is_kept_as_it_was_handed_over_and_found_with_its_page(tmp_path: Path) -> None:
    files = {"file_1": {"name": "hand book.pdf", "mediaType": "application/pdf", "text": HANDBOOK}}
    async with documents(tmp_path) as host:
        added = await host.call("add_document", files, file="file_1", keep_for="everybody")
        assert (added["name"], added["characters"]) == ("hand book.pdf", len(HANDBOOK))
        found = await host.call("search_documents", query="how many days of leave do I have?")
        (first, *_) = found["passages"]
        assert (first["name"], first["page"], first["section"]) == ("hand book.pdf", 1, "Leave")
        assert "28 days" in first["text"] and "by words only" in found["note"]
        read = await host.call("read_document", document_id=added["document_id"], page=2)
        assert [each["page"] for each in read["passages"]] == [2]
        assert "no page 9" in await host.refusal("read_document", document_id=added["document_id"], page=9)
        assert "no such file here" in await host.refusal("add_document", file="file_1", keep_for="me")
        assert "either a file or a text" in await host.refusal("add_document", keep_for="me")
        assert "There is no channel here" in await host.refusal(
            "add_document", files, file="file_1", keep_for="channel"
        )


@pytest.mark.parametrize("tool", ["search_documents", "list_documents"])
async def test_whoever_does_not_say_who_asks_and_where_gets_nothing(tmp_path: Path, tool: str) -> None:
    arguments = {"query": "x"} if tool == "search_documents" else {}
    async with documents(tmp_path) as host:
        bare = await host.session.call_tool(tool, arguments)
        assert bare.isError and "does not say who asks" in str(bare.content)
        assert "told who asks, and in which channel" in await replace(host, channel=None).refusal(tool, **arguments)
        assert "not signed" in await replace(host, secret=SECRET[::-1]).refusal(tool, **arguments)
    async with documents(tmp_path, secret="") as host:
        bare = await host.session.call_tool(tool, arguments)
        assert bare.isError and "has to be told who asks" in str(bare.content)
