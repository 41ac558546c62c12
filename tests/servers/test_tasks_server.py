from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

from adapters.tool_servers.requester import told_requester
from tests.servers.conftest import Serving

SECRET = "one that a program made, and 32 characters long"


async def test_it_says_what_its_tools_are_and_what_they_may_do(stdio: Serving) -> None:
    async with stdio("tasks") as tasks:
        tools = await tasks.tools()
    hints: dict[str, Any] = {
        name: (a.readOnlyHint, a.destructiveHint, a.idempotentHint, a.openWorldHint)
        for name, tool in tools.items()
        if (a := tool.annotations)
    }
    assert hints == {
        "add_task": (False, False, False, False),
        "list_tasks": (True, False, True, False),
        "complete_task": (False, False, True, False),
        "update_task": (False, True, True, False),
        "delete_task": (False, True, True, False),
        "get_task": (True, False, True, False),
        "preview_update_task": (True, False, True, False),
        "preview_delete_task": (True, False, True, False),
    }
    assert {name: tool.title for name, tool in tools.items()}["add_task"] == "Add task"
    assert tools["add_task"].inputSchema["properties"]["due"]["format"] == "date"


async def test_a_task_lives_from_its_adding_to_its_deletion(stdio: Serving) -> None:
    async with stdio("tasks") as tasks:
        milk = await tasks.call("add_task", title="buy milk")
        report = await tasks.call("add_task", title="write report", due="2026-11-30", notes="short")
        assert UUID(milk["id"])
        assert (milk["status"], milk["due"], milk["completed_at"]) == ("open", "", "")
        assert (await tasks.call("list_tasks"))["tasks"] == [report, milk]

        done = await tasks.call("complete_task", task_id=milk["id"])
        assert done["status"] == "done"
        assert await tasks.call("complete_task", task_id=milk["id"]) == done
        assert (await tasks.call("list_tasks"))["tasks"] == [report]
        assert (await tasks.call("list_tasks", status="done"))["tasks"] == [done]
        assert len((await tasks.call("list_tasks", status="all"))["tasks"]) == 2

        assert await tasks.call("update_task", task_id=milk["id"], status="open") == milk
        assert await tasks.call("get_task", task_id=report["id"]) == report
        previewed = await tasks.call("preview_update_task", task_id=report["id"], title="send report", due="")
        before = {"title": "write report", "status": "open", "due": "2026-11-30", "notes": "short"}
        assert previewed == {"before": before, "after": {**before, "title": "send report", "due": ""}}
        deleted = await tasks.call("preview_delete_task", task_id=report["id"])
        assert deleted == {"before": before, "after": None}

        renamed = await tasks.call("update_task", task_id=report["id"], title="send report", due="")
        assert renamed == {**report, "title": "send report", "due": ""}
        assert await tasks.call("delete_task", task_id=report["id"]) == renamed
        assert (await tasks.call("list_tasks"))["tasks"] == [milk]


async def test_what_makes_no_sense_is_refused_in_a_sentence_and_changes_nothing(stdio: Serving) -> None:
    async with stdio("tasks") as tasks:
        milk = await tasks.call("add_task", title="buy milk")
        for name, arguments, sentence in (
            ("add_task", {"title": ""}, "“title” is empty"),
            ("add_task", {"title": "x", "due": "soon"}, "“due”: 'soon' is not a date; write it like 2026-11-30."),
            ("add_task", {"title": "x", "notes": "x" * 2001}, "“notes” is too long"),
            ("add_task", {"name": "x"}, "Unknown argument “name”: this tool takes title, due, notes."),
            ("list_tasks", {"status": "late"}, "“status” must be 'open', 'done' or 'all'."),
            ("complete_task", {"task_id": "buy milk"}, "“task_id” is not an id"),
            ("complete_task", {"task_id": str(UUID(int=7))}, "There is no such task."),
            ("update_task", {"task_id": milk["id"]}, "Nothing to change was given."),
            ("delete_task", {"task_id": str(UUID(int=7))}, "There is no such task."),
        ):
            assert sentence in await tasks.refusal(name, **arguments)
        assert (await tasks.call("list_tasks", status="all"))["tasks"] == [milk]


async def test_what_is_in_the_list_of_nobody_in_particular_is_nobodys_who_says_who_they_are(
    stdio: Serving, environment: dict[str, str]
) -> None:
    file = Path(environment["TASKS_DB"])
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as before, before:
        before.execute("CREATE TABLE tasks (id, title, due, notes, status, created_at, completed_at)")
        before.execute("INSERT INTO tasks VALUES (?, 'buy milk', '', '', 'open', '2026', '')", (str(UUID(int=7)),))
    async with stdio("tasks") as tasks:
        assert [task["title"] for task in (await tasks.call("list_tasks"))["tasks"]] == ["buy milk"]

    environment["COUNTERSIGN_REQUESTER_SECRET"] = SECRET
    async with stdio("tasks") as tasks:

        async def called(person: str, name: str, **arguments: Any) -> Any:
            meta = told_requester(person, "tasks", name, arguments, secret=SECRET, at=int(time.time()))
            result = await tasks.session.call_tool(name, arguments, meta=meta)
            return result.structuredContent or result.content

        assert "does not say who asks" in await tasks.refusal("list_tasks")
        assert await called("slack:T1:U2", "list_tasks") == {"tasks": [], "left_out": 0}
        bread = await called("slack:T1:U2", "add_task", title="buy bread")
        assert await called("slack:T1:U2", "list_tasks") == {"tasks": [bread], "left_out": 0}
        assert await called("web:ana", "list_tasks", status="all") == {"tasks": [], "left_out": 0}
        for name, more in (("complete_task", {}), ("update_task", {"title": "x"}), ("delete_task", {})):
            (refused,) = await called("web:ana", name, task_id=bread["id"], **more)
            assert "There is no such task." in refused.text
        assert await called("slack:T1:U2", "list_tasks") == {"tasks": [bread], "left_out": 0}
