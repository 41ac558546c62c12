"""The image: built by the Dockerfile's own steps, and run as it would be in a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
import sqlalchemy as sa

from tests.deploy.image import Image, built_image, why_not_here
from tests.replicas.cluster import Cluster, running_cluster
from tests.support.ports import free_port
from tests.support.product import KEY, PASSWORD
from tests.support.visitor import Visitor

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(why_not_here()), reason=why_not_here()),
]
TOKEN = "a-token-that-a-program-made"
SECRET = "one that a program made, and 32 characters long"
TRIES = """
import os
for folder in ("/", "/app", "/app/policies", "/etc", "/usr", "/home", "/var/tmp"):
    try:
        open(f"{folder}/tried", "w")
    except OSError:
        continue
    print("could write to", folder)
open("/tmp/tried", "w")
print("as", os.getuid(), os.getgid(), os.getgroups())
"""


async def test_the_image_can_be_built_and_does_what_it_is_for(tmp_path: Path) -> None:
    """One test, since building it takes minutes."""
    async with AsyncExitStack() as stack:
        cluster = stack.enter_context(running_cluster())
        image = await asyncio.to_thread(stack.enter_context, built_image())
        await check(image, cluster, tmp_path, stack)


async def check(image: Image, cluster: Cluster, folder: Path, stack: AsyncExitStack) -> None:
    check_that_nothing_is_left_to_build_with(image)
    check_that_all_is_compiled_and_the_rules_for_secrets_are_there(image)
    check_how_it_is_to_be_run(image)
    database = await stack.enter_async_context(over_tcp(cluster.new_database()))
    setting = Setting(image, database, folder)
    await check_that_it_runs_without_rights_and_can_write_to_tmp_only(setting)
    await check_that_replicas_and_tool_servers_work(setting)
    await check_that_one_process_keeps_its_records_on_a_volume(setting)


@asynccontextmanager
async def over_tcp(address: str) -> AsyncIterator[str]:
    """The address of the same database for those who may not open the cluster's socket."""
    url = sa.make_url(address)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_unix_connection(f"{url.query['host']}/.s.PGSQL.5432")
        await asyncio.gather(_pass_on(reader, there[1]), _pass_on(there[0], writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield url.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
    server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while read := await reader.read(65_536):
            writer.write(read)
            await writer.drain()
    writer.close()


class Setting:
    """The folders and variables of everything that is run of an image."""

    def __init__(self, image: Image, database: str, folder: Path) -> None:
        self.image = image
        self.database = database
        self.data = folder / "data"
        self.data.mkdir()
        os.chown(self.data, 10001, 10001)

    async def start(self, *arguments: str, **variables: str) -> asyncio.subprocess.Process:
        """Run it; stdout and stderr are one."""
        command = self.image.command(*arguments, data=self.data, **variables)
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=asyncio.subprocess.STDOUT)

    async def run(self, *arguments: str, **variables: str) -> tuple[int | None, str]:
        """Run it to its end; its exit code and what it said."""
        process = await self.start(*arguments, **variables)
        said, _ = await process.communicate()
        return process.returncode, said.decode()

    @asynccontextmanager
    async def running(self, url: str, *arguments: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """The same, once it answers 200 at `url`; killed with the block."""
        process = await self.start(*arguments, **variables)
        lines: list[str] = []
        reading = asyncio.create_task(_read(process, lines))
        try:
            async with asyncio.timeout(120), aiohttp.ClientSession() as http:
                while not await _answers(http, url):
                    assert process.returncode is None, "".join(lines)
                    await asyncio.sleep(0.1)
            yield process
        finally:
            if process.returncode is None:
                inside(process).kill()  # and with the first process all others within
            await process.wait()
            await reading


async def _read(process: asyncio.subprocess.Process, lines: list[str]) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        lines.append(line.decode())  # noqa: PERF401  # they are looked at meanwhile


async def _answers(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


def inside(process: asyncio.subprocess.Process) -> psutil.Process:
    """The first process within, which signals are sent to."""
    (first,) = psutil.Process(process.pid).children()
    return first


async def check_that_it_runs_without_rights_and_can_write_to_tmp_only(setting: Setting) -> None:
    assert await setting.run("-c", TRIES) == (0, "as 10001 10001 []\n")


def check_that_nothing_is_left_to_build_with(image: Image) -> None:
    folders = ("usr/bin", "usr/sbin", "app/.venv/bin")
    there = {path.name for folder in folders for path in (image.root / folder).iterdir()}
    assert there & {"gcc", "cc", "make", "ld", "pip", "pip3", "uv", "git", "curl", "wget"} == set()
    assert not (image.root / "opt" / "uv").exists()
    assert not list((image.root / "app").glob("tests*"))
    assert not list(image.root.glob("app/.venv/lib/python3*/site-packages/pytest*"))


def check_that_all_is_compiled_and_the_rules_for_secrets_are_there(image: Image) -> None:
    app = image.root / "app"
    assert (app / "policies" / "secret_rules.json").stat().st_size > 10_000
    modules = [path for path in app.rglob("*.py") if ".venv" not in path.parts]
    assert modules
    assert [path for path in modules if not list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))] == []


def check_how_it_is_to_be_run(image: Image) -> None:
    assert image.config["User"] == "10001:10001"
    assert image.config["StopSignal"] == "SIGTERM"
    assert image.config["Entrypoint"][0] == "/usr/bin/tini"
    assert list(image.config["ExposedPorts"]) == ["3978/tcp"]


async def check_that_replicas_and_tool_servers_work(setting: Setting) -> None:
    code, said = await setting.run("app.py", "migrate", "up", DATABASE_URL=setting.database)
    assert code == 0, said
    assert "ready (schema " in said

    tasks_port, ports = free_port(), (free_port(), free_port())
    config: dict[str, Any] = {
        "url": f"http://127.0.0.1:{tasks_port}/mcp",
        "headers": {"Authorization": "Bearer ${TOOL_SERVER_TOKEN}"},
    }
    config |= {"trustAnnotations": True, "tellRequester": True, "requesterSecret": "${TASKS_SECRET}"}
    (setting.data / "mcp.json").write_text(json.dumps({"mcpServers": {"tasks": config}}))
    of_both = {
        "DATABASE_URL": setting.database,
        "ENCRYPTION_KEY": KEY,
        "PUBLIC_URL": "http://127.0.0.1:3978",
        "WEB_PASSWORD": PASSWORD,
        "MCP_CONFIG": "/app/data/mcp.json",
        "TOOL_SERVER_TOKEN": TOKEN,
        "TASKS_SECRET": SECRET,
    }
    async with AsyncExitStack() as stack:
        server = ("-m", "servers.tasks", "--http", str(tasks_port), "--host", "0.0.0.0")
        health = f"http://127.0.0.1:{tasks_port}/health"
        variables = {"TOOL_SERVER_TOKEN": TOKEN, "COUNTERSIGN_REQUESTER_SECRET": SECRET}
        await stack.enter_async_context(setting.running(health, *server, **variables))
        replicas = []
        for port in ports:
            url = f"http://127.0.0.1:{port}"
            running = setting.running(f"{url}/ready", *setting.image.config["Cmd"], **of_both, PORT=str(port))
            replicas.append(await stack.enter_async_context(running))

        cookies = aiohttp.CookieJar(unsafe=True)
        http = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=cookies))
        ana = Visitor(f"http://127.0.0.1:{ports[0]}", http)
        await ana.arrive("web:ana")
        async with ana.thread(within=60) as thread:
            await thread.send("add a task to buy milk")
            (card,) = await thread.waiting()
            await thread.approve(card["id"])
            await thread.card(card["id"], "approved", result="buy milk")

        kind, *check = setting.image.config["Healthcheck"]["Test"]
        assert (kind, check[0]) == ("CMD", "python")
        assert (await setting.run(*check[1:], PORT=str(ports[0])))[0] == 0
        assert (await setting.run(*check[1:], PORT=str(free_port())))[0] == 1

        await _end_well(replicas)


async def _end_well(replicas: Sequence[asyncio.subprocess.Process]) -> None:
    for process in replicas:
        inside(process).send_signal(signal.SIGTERM)
    async with asyncio.timeout(12):
        assert [await process.wait() for process in replicas] == [0, 0]


async def check_that_one_process_keeps_its_records_on_a_volume(setting: Setting) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    variables = {"PORT": str(port), "WEB_PASSWORD": PASSWORD}
    async with setting.running(f"{url}/ready", *setting.image.config["Cmd"], **variables):
        assert (setting.data / "countersign.db").stat().st_uid == 10001
