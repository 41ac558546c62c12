"""Servers that nobody here wrote: two from npm, and one from PyPI that says nothing of what its tools do."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from graph.ports import Failed, Given, QuestionPut, SignInNeeded, Succeeded
from policies.model import Annotations

from .conftest import Heard, call, running, until

PACKAGES = Path(__file__).parents[1] / "npm" / "node_modules" / "@modelcontextprotocol"
NODE = shutil.which("node")
needs_node = [
    pytest.mark.node,
    pytest.mark.skipif(
        NODE is None or not PACKAGES.exists(),
        reason="needs node, and: npm install --no-package-lock --prefix tests/npm",
    ),
]


def node(package: str, *arguments: str | Path, **more: Any) -> dict[str, Any]:
    return {"command": NODE, "args": [str(PACKAGES / package / "dist" / "index.js"), *map(str, arguments)], **more}


@asynccontextmanager
async def everything_over_http() -> AsyncIterator[str]:
    assert NODE
    program = PACKAGES / "server-everything" / "dist" / "index.js"
    process = await asyncio.create_subprocess_exec(
        NODE,
        str(program),
        "streamableHttp",
        env={"PORT": "0"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        ports: list[int] = []

        def is_listening() -> bool:
            listening = psutil.Process(process.pid).net_connections("tcp")
            ports[:] = [each.laddr.port for each in listening if each.status == psutil.CONN_LISTEN]
            return bool(ports)

        await until(is_listening, "the start of server-everything")
        yield f"http://127.0.0.1:{ports[0]}/mcp"
    finally:
        process.kill()
        await process.wait()


class TestServerEverything:
    pytestmark = needs_node

    @pytest.mark.parametrize("transport", ["stdio", "http"])
    async def test_its_tools_can_be_used(self, tmp_path: Path, transport: str) -> None:
        async with everything_over_http() as url:
            entry = {"url": url} if transport == "http" else node("server-everything", "stdio")
            async with running(tmp_path, {"everything": {**entry, "trustAnnotations": True}}) as servers:
                env = await servers.find("everything__get-env")
                assert env
                assert env.annotations == Annotations(
                    read_only=True, destructive=False, idempotent=True, open_world=False
                )
                assert env.repeatable
                assert await call(servers, "everything__echo", message="hi") == Succeeded("Echo: hi")
                assert "5" in str(await call(servers, "everything__get-sum", a=2, b=3))
                wrong = await call(servers, "everything__get-sum", a="two", b=3)
                assert isinstance(wrong, Failed)
                assert "\"a\": 'two' is not of type 'number'" in wrong.text
                image = await call(servers, "everything__get-tiny-image")
                assert "[image: image/png" in str(image)
                links = await call(servers, "everything__get-resource-links", count=2)
                assert str(links).count("[link: ") == 2
                weather = await call(servers, "everything__get-structured-content", location="Chicago")
                assert isinstance(weather, Succeeded)
                assert weather.text.count("temperature") == 1

    @pytest.mark.parametrize("transport", ["stdio", "http"])
    async def test_it_reports_progress(self, tmp_path: Path, transport: str) -> None:
        async with everything_over_http() as url:
            entry = {"url": url} if transport == "http" else node("server-everything", "stdio")
            async with running(tmp_path, {"everything": entry}) as servers:
                heard = Heard()
                got = await call(servers, "everything__trigger-long-running-operation", heard, duration=0.2, steps=4)
                assert isinstance(got, Succeeded)
                assert [fraction for _, fraction in heard.steps] == [0.25, 0.5, 0.75, 1.0]

    async def test_its_link_becomes_a_sign_in(self, tmp_path: Path) -> None:
        async with running(tmp_path, {"everything": node("server-everything", "stdio")}) as servers:
            got = await call(
                servers, "everything__trigger-url-elicitation", url="https://example.com/connect", errorPath=True
            )
            assert isinstance(got, SignInNeeded)
            assert got.url.startswith("https://")
            assert got.elicitation_id

    @pytest.mark.parametrize("transport", ["stdio", "http"])
    async def test_a_call_that_waits_for_a_link_goes_on_when_it_was_opened(
        self, tmp_path: Path, transport: str
    ) -> None:
        async with everything_over_http() as url:
            entry = {"url": url} if transport == "http" else node("server-everything", "stdio")
            async with running(tmp_path, {"everything": entry}) as servers:
                ask = partial(call, servers, "everything__trigger-url-elicitation", url="https://example.com/")
                link = await ask()
                assert isinstance(link, SignInNeeded)
                assert link.url == "https://example.com/"
                opened = (Given(1, "accept"),)
                assert "User completed the URL elicitation flow" in str(await ask(answers=opened))

    @pytest.mark.parametrize("transport", ["stdio", "http"])
    async def test_its_form_is_asked_and_answered_in_the_middle_of_the_call(
        self, tmp_path: Path, transport: str
    ) -> None:
        async with everything_over_http() as url:
            entry = {"url": url} if transport == "http" else node("server-everything", "stdio")
            async with running(tmp_path, {"everything": entry}) as servers:
                question = await call(servers, "everything__trigger-elicitation-request")
                assert isinstance(question, QuestionPut)
                fields = {field.name: field for field in question.fields}
                assert (fields["name"].required, fields["check"].required) == (True, False)
                assert fields["titledSingleSelectEnum"].options == ("hero-1", "hero-2", "hero-3")
                assert "hero-1: Superman" in fields["titledSingleSelectEnum"].help
                values = {"name": "Ana", "integer": 7, "titledSingleSelectEnum": "hero-2"}
                given = Given(question.number, "accept", values, question.digest)
                got = await call(servers, "everything__trigger-elicitation-request", answers=(given,))
                assert isinstance(got, Succeeded)
                assert "Name: Ana" in got.text
                assert "Favorite Integer: 7" in got.text

    async def test_it_cannot_print_the_secrets_it_was_given(self, tmp_path: Path) -> None:
        entry = node("server-everything", "stdio", env={"DRIVE_TOKEN": "hunter2hunter2"})
        async with running(tmp_path, {"everything": entry}) as servers:
            got = await call(servers, "everything__get-env")
            assert "DRIVE_TOKEN" in str(got)
            assert "hunter2" not in str(got)


class TestServerFilesystem:
    pytestmark = needs_node

    async def test_files_can_be_read_and_written_and_nothing_outside(self, tmp_path: Path) -> None:
        folder = tmp_path / "files"
        folder.mkdir()
        (folder / "a.txt").write_text("hello")
        async with running(tmp_path, {"files": node("server-filesystem", folder, category="files")}) as servers:
            assert await call(servers, "files__read_text_file", path=str(folder / "a.txt")) == Succeeded("hello")
            written = await call(servers, "files__write_file", path=str(folder / "b.txt"), content="new")
            assert isinstance(written, Succeeded)
            assert (folder / "b.txt").read_text() == "new"
            outside = await call(servers, "files__read_text_file", path="/etc/passwd")
            assert isinstance(outside, Failed)
            assert "outside allowed directories" in outside.text


class TestServerSqlite:
    async def test_it_can_be_used_although_it_says_nothing_of_its_tools(self, tmp_path: Path) -> None:
        program = Path(sys.executable).with_name("mcp-server-sqlite")
        entry = {"command": str(program), "args": ["--db-path", str(tmp_path / "test.db")]}
        async with running(tmp_path, {"sqlite": entry}) as servers:
            assert {each.annotations for each in await servers.available()} == {Annotations()}
            assert not any(each.repeatable for each in await servers.available())
            created = await call(servers, "sqlite__create_table", query="CREATE TABLE t (n INTEGER)")
            assert isinstance(created, Succeeded)
            await call(servers, "sqlite__write_query", query="INSERT INTO t VALUES (7)")
            assert await call(servers, "sqlite__read_query", query="SELECT n FROM t") == Succeeded("[{'n': 7}]")
