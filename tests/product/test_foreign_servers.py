"""A whole product over servers that nobody here wrote."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import Thread, visiting

PACKAGES = Path(__file__).parents[1] / "npm" / "node_modules" / "@modelcontextprotocol"
NODE = shutil.which("node")


def node_server(package: str, *arguments: str | Path, **more: Any) -> dict[str, Any]:
    return {"command": NODE, "args": [str(PACKAGES / package / "dist" / "index.js"), *map(str, arguments)], **more}


@pytest.fixture
def foreign(home: ProductFolder, model: FakeOpenAI, tmp_path: Path) -> ProductFolder:
    servers: dict[str, Any] = {
        "notes": {
            "command": str(Path(sys.executable).with_name("mcp-server-sqlite")),
            "args": ["--db-path", str(tmp_path / "notes.db")],
            "trustAnnotations": True,
        }
    }
    if NODE and PACKAGES.exists():
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "hello.txt").write_text("hello from a file")
        servers["files"] = node_server("server-filesystem", tmp_path / "files", trustAnnotations=True)
        servers["everything"] = node_server("server-everything", trustAnnotations=True)
    home.tool_servers(servers)
    home.policy(
        "version: 1\nrules:\n  - name: reading is free\n"
        "    match: {annotations: {readOnlyHint: true}}\n    decide: allow\n"
    )
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody", "LLM_MODEL": "x"}
    return home


@pytest.fixture
async def thread(foreign: ProductFolder) -> AsyncIterator[Thread]:
    async with product_here(foreign) as url, visiting(url) as ana, ana.thread() as thread:
        yield thread


async def test_a_server_without_annotations_asks_for_everything_even_for_reading(thread: Thread) -> None:
    await thread.send("use notes__list_tables")
    (card,) = await thread.waiting()
    assert set(card["risk"]) == {"reads", "reaches outside"}, "its server is trusted, and its name says that it reads"
    await thread.approve(card["id"])
    await thread.card(card["id"], "approved", result="done")
    await thread.says("results: []")


@pytest.mark.node
@pytest.mark.skipif(not (NODE and PACKAGES.exists()), reason="needs node, and: npm install in tests/npm")
async def test_files_are_read_freely_and_written_only_after_approval(thread: Thread, tmp_path: Path) -> None:
    file = tmp_path / "files" / "new.txt"
    await thread.send(f"use files__read_text_file path={file.with_name('hello.txt')}")
    await thread.says("hello from a file")
    await thread.send(f"use files__write_file path={file} content=written")
    (card,) = await thread.waiting()
    assert not file.exists()
    await thread.approve(card["id"])
    await thread.card(card["id"], "approved", result="done")
    assert file.read_text() == "written"


@pytest.mark.node
@pytest.mark.skipif(not (NODE and PACKAGES.exists()), reason="needs node, and: npm install in tests/npm")
async def test_everything_reports_progress_and_answers(thread: Thread) -> None:
    await thread.send("use everything__echo message=hello; everything__get-sum a=2 b=40")
    for card in await thread.until(lambda: thread.approvals("pending") or thread.said[1:]):
        if isinstance(card, dict):
            await thread.approve(*(c["id"] for c in thread.approvals("pending")))
            break
    await thread.says("hello", "42")
