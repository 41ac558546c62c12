"""docs/operations.md, "Backup and restore": its commands, word by word, while the product runs."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess

import pytest

from tests.support.forks import ROOT
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting

WHILE_IT_RUNS = re.compile(r"While it runs, copy with SQLite's own backup.*?```sh\n(.*?)```", re.DOTALL)


@pytest.mark.sqlite
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the commands need SQLite's own program")
async def test_what_was_copied_while_it_ran_goes_on_with_all_that_was_in_the_folder(home: ProductFolder) -> None:
    found = WHILE_IT_RUNS.search((ROOT / "docs/operations.md").read_text())
    assert found is not None
    data, backup = home.folder / "data", home.folder / "backup"
    home.bundled_tool_servers("calendar")
    config = home.folder / "mcp.json"
    servers = json.loads(config.read_text())["mcpServers"]
    servers["calendar"]["env"]["CALENDAR_DB"] = str(data / "calendar.db")  # as with the settings' own values
    home.tool_servers(servers)
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("create a meeting called Standup tomorrow at 9am")
        (first,) = await thread.waiting()
        await thread.approve(first["id"])
        await thread.says("created")
        await thread.send("create a meeting called Review tomorrow at 10am")
        (waiting,) = await thread.waiting()
        await asyncio.to_thread(subprocess.run, ["sh", "-e", "-c", found[1]], cwd=home.folder, check=True)
        kept = {path.name for path in data.iterdir() if path.suffix in {".db", ".key"}}
    assert {path.name for path in backup.iterdir()} == kept >= {"calendar.db", "countersign.db", "encryption.key"}
    shutil.rmtree(data)
    backup.rename(data)
    async with product_here(home) as url, visiting(url) as ana, ana.thread(thread.thread_id) as thread:
        await thread.approve(waiting["id"])
        await thread.says("created", "review")
        await thread.send("what is on my calendar tomorrow?")
        await thread.says("standup", "review")
