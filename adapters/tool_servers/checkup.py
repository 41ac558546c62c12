"""Whether each tool server starts and lists its tools. Each is a process, or a session, of its own beside those that
run; the bundled ones keep what they know in a folder that is thrown away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from adapters.tool_servers.config import BUNDLED, HttpTransport, ServerConfig, StdioTransport, ToolServersConfig
from adapters.tool_servers.servers import ServerStatus, ToolServers
from adapters.tool_servers.sessions import Timings
from adapters.tool_servers.text import UNTRUSTED
from bot.findings import TRUST_IT, Finding, doubtful, fine, wrong
from bot.settings import is_loopback

START_SECONDS = 8.0
"""Seconds for a server to list its tools here. The bot itself waits longer, so that a slower one is only warned of."""


async def tool_server_findings(servers: Iterable[ServerConfig], *, timings: Timings | None = None) -> list[Finding]:
    """What each of the servers that everybody shares says; those with people's accounts are left out."""
    shared = [each for each in servers if each.account is None]
    with TemporaryDirectory(prefix="countersign-doctor-") as folder:
        tools = ToolServers(
            ToolServersConfig(tuple(_apart(each, Path(folder)) for each in shared)),
            timings=timings or Timings(),
        )
        await tools.start()
        try:
            await tools.settled(START_SECONDS)
            return [finding for status in tools.status() for finding in _said(status)]
        finally:
            await tools.close()


def reached_from_here(servers: Iterable[ServerConfig]) -> list[ServerConfig]:
    """Returns those that can be looked at without asking anybody outside."""
    return [
        each
        for each in servers
        if not isinstance(each.transport, HttpTransport) or is_loopback(urlsplit(each.transport.url).hostname or "")
    ]


def _apart(server: ServerConfig, folder: Path) -> ServerConfig:
    """The same server; a bundled one without its file, which it would make."""
    transport = server.transport
    if not isinstance(transport, StdioTransport):
        return server
    modules = BUNDLED.intersection(transport.args)
    files = {f"{name.rpartition('.')[2].upper()}_DB": str(folder / f"{server.name}.db") for name in modules}
    return replace(server, transport=replace(transport, env={**transport.env, **files}))


def _said(status: ServerStatus) -> list[Finding]:
    what = f"tool server {status.server}"
    if status.state == "starting":
        where = f"mcp.json: it has not listed its tools within {START_SECONDS:.0f} s; the bot waits longer"
        return [doubtful(what, where, "Start its command by hand and see what it waits for: docs/tool-servers.md")]
    if status.state != "up":
        where = f"mcp.json: it {status.reason or status.state}"
        remedy = "Mend its entry in mcp.json, or start its command by hand and see what it says: docs/tool-servers.md"
        return [wrong(what, where, TRUST_IT if (status.reason or "").startswith(UNTRUSTED) else remedy)]
    found = [fine(what, f"lists {status.tools} {'tool' if status.tools == 1 else 'tools'}")]
    remedy = "See docs/tool-servers.md, and the server's own documentation."
    return [*found, *(doubtful(what, sentence, remedy) for sentence in status.withheld)]
