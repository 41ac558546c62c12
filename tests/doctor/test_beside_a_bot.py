"""`app.py doctor` in its own process, beside a bot that runs on the same records."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support.forks import forked
from tests.support.product import ProductFolder, product_process
from tests.support.visitor import visiting


async def test_beside_a_running_bot_all_is_fine_and_nothing_is_made(tmp_path: Path) -> None:
    home = ProductFolder(tmp_path, makes_its_records=True)
    home.bundled_tool_servers("tasks")
    written = tmp_path / "found.json"
    async with product_process(home) as product:
        async with visiting(product.url) as ana, ana.thread() as thread:
            await thread.send("list my tasks")
            await thread.says("task")  # the bot's own server of tasks has made what it keeps
        home.variables["PUBLIC_URL"] = product.url
        before = {*tmp_path.rglob("*"), written}
        with written.open("wb") as file:
            variables = {**os.environ, **home.environment()}
            doctor = ("app.py", "doctor", "--json")
            process = await forked(*doctor, environment=variables, output=file.fileno(), errors=2)
            code = await process.wait()
        assert {*tmp_path.rglob("*")} == before
    said = json.loads(written.read_text())
    assert (code, said["counts"]["wrong"]) == (0, 0), said
    found = {each["what"]: each["status"] for each in said["findings"]}
    looked_at = ("database", "schema", "encryption key", "tool server tasks", "public address", "policy")
    assert {what: found.get(what) for what in looked_at} == dict.fromkeys(looked_at, "fine")
