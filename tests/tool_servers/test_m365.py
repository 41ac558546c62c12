"""Rule 9, with the server for Microsoft 365 that companies use: what the documentation shows, held against the package.

It starts without an account; running a command needs one, and the CLI itself, so no command is run here.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policies.judging import Policy, judge
from policies.model import Allow, Ask, Call, Deny, Facts, Mode, Tool
from policies.policy_file import parse_policy

from .conftest import running

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "npm" / "node_modules" / "@pnp" / "cli-microsoft365-mcp-server" / "dist" / "index.js"
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(
        NODE is None or not SERVER.exists(),
        reason="needs node, and: npm install --no-package-lock --prefix tests/npm",
    ),
]

SECTION = (ROOT / "docs" / "policies.md").read_text().partition("### A command line")[2].partition("\n### ")[0]
ENTRY = json.loads("{" + re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)[0] + "}")["m365"]
POLICY = parse_policy(re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)[0], "docs")


@pytest.fixture
async def tools(tmp_path: Path) -> dict[str, Tool]:
    """Its tools by their own names, with what the documentation says of them."""
    entry = {**ENTRY, "command": NODE, "args": [str(SERVER)]}
    async with running(tmp_path, {"m365": entry}) as servers:
        return {tool.name: tool for tool in await servers.available()}


def judged(tool: Tool, mode: Mode = Mode.DEFAULT, policy: Policy = POLICY, **arguments: str) -> object:
    facts = Facts(mode, "web:ana", "web", "", datetime(2026, 11, 20, tzinfo=UTC))
    return type(judge(policy, Call(tool, arguments), facts))


async def test_what_the_documentation_shows_fits_the_tools_that_the_server_has(tools: dict[str, Tool]) -> None:
    assert ENTRY["args"][-1].endswith(json.loads((SERVER.parents[1] / "package.json").read_text())["version"])
    assert set(tools) == {*ENTRY["readOnlyTools"], "m365_run_command"}
    for tool in tools.values():
        assert tool.reads_only is (tool.name in ENTRY["readOnlyTools"])
        assert (tool.annotations.read_only, tool.annotations_trusted) == (None, False)

    command = tools["m365_run_command"]
    documents = tools["m365_get_command_docs"]
    for mode, otherwise in ((Mode.DEFAULT, Ask), (Mode.READ_ONLY, Deny)):
        assert judged(tools["m365_search_commands"], mode, query="list teams") is Allow
        assert judged(tools["m365_get_best_practices"], mode) is Allow
        assert judged(documents, mode, commandName="x", docs="teams/team/team-list.mdx") is Allow
        assert judged(documents, mode, commandName="x", docs="../../../../../etc/passwd.md") is Deny
        assert judged(command, mode, command="m365 teams team list") is Allow
        assert judged(command, mode, command="m365 teams team get --id 7 --output json") is Allow
        assert judged(command, mode, command="m365 teams team add --name Ops") is otherwise
        assert judged(command, mode, command="m365 spo file get --url x --asFile --path /tmp/x") is otherwise
        assert judged(command, mode, command="m365 teams team remove --id 7") is Deny
        assert judged(command, mode, command="m365 teams team list & m365 teams team remove --id 7") is Deny


async def test_without_the_operators_word_nothing_of_it_is_known_to_read_but_commands(tools: dict[str, Tool]) -> None:
    anything = parse_policy("version: 1\nrules: [{name: all, match: {}, decide: allow}]", "test")
    for tool in tools.values():
        silent = Tool(tool.server, tool.name, input_schema=tool.input_schema)
        assert judged(silent, Mode.READ_ONLY, anything) is Deny
    command = Tool("m365", "m365_run_command", input_schema=tools["m365_run_command"].input_schema)
    assert judged(command, Mode.READ_ONLY, anything, command="m365 teams team list") is Allow
