from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.servers.conftest import Serving


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
            ("complete_task", {"task_id": str(UUID(int=7))}, "There is no task with the id"),
            ("update_task", {"task_id": milk["id"]}, "Nothing to change was given."),
            ("delete_task", {"task_id": str(UUID(int=7))}, "There is no task with the id"),
        ):
            assert sentence in await tasks.refusal(name, **arguments)
        assert (await tasks.call("list_tasks", status="all"))["tasks"] == [milk]
