"""The tools of the tasks server."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

from mcp.server.fastmcp import FastMCP
from pydantic import BeforeValidator, Field, WithJsonSchema

from servers.fields import Text, Title, described
from servers.plain_server import ADDS, MARKS, READS, REPLACES, PlainServer
from servers.tasks.todo import Status, Task, TaskChange, TaskList, Tasks

INSTRUCTIONS = """A list of things to do. Look up a task's id with list before changing, completing or deleting it."""


def read_date(given: Any) -> str:
    """An ISO 8601 date; an empty text stays empty and means none. Raises `ValueError` with a sentence."""
    mistake = f"{str(given)[:60]!r} is not a date; write it like 2026-11-30."
    if not isinstance(given, str):
        raise ValueError(mistake)  # noqa: TRY004 - pydantic reports ValueError
    try:
        return date.fromisoformat(given.strip()).isoformat() if given.strip() else ""
    except ValueError as error:
        raise ValueError(mistake) from error


Day = Annotated[str, BeforeValidator(read_date), WithJsonSchema({"type": "string", "format": "date"})]
TaskId = Annotated[UUID, described("Task", "The task's id, as list gives it.")]
Due = Annotated[Day | None, described("Due", "The day it is due, such as 2026-11-30.")]
NewTitle = Annotated[Title | None, described("Title", "A new title.")]
NewDue = Annotated[Day | None, described("Due", "A new due day; empty removes it.")]
NewNotes = Annotated[Text | None, described("Notes", "New notes; empty removes them.")]
NewStatus = Annotated[Status | None, described("Status", "open brings a task back, done completes it.")]


def build(tasks: Tasks) -> FastMCP:
    """The server over one task file."""
    server = PlainServer("tasks", instructions=INSTRUCTIONS, log_level="WARNING")

    @server.tool(title="Add task", annotations=ADDS)
    async def add(
        title: Annotated[Title, described("Title", "What is to be done.")],
        due: Due = None,
        notes: Annotated[Text, Field(title="Notes")] = "",
    ) -> Task:
        """Add a task."""
        return await asyncio.to_thread(tasks.add, title, due or "", notes)

    @server.tool(name="list", title="List tasks", annotations=READS)
    async def list_tasks(
        status: Annotated[
            Literal["open", "done", "all"], Field(title="Status", description="Which tasks: open, done or all.")
        ] = "open",
    ) -> TaskList:
        """List tasks with their ids, those due first at the top."""
        return await asyncio.to_thread(tasks.having, status)

    @server.tool(title="Complete task", annotations=MARKS)
    async def complete(task_id: TaskId) -> Task:
        """Mark a task as done."""
        return await asyncio.to_thread(tasks.complete, task_id)

    @server.tool(title="Update task", annotations=REPLACES)
    async def update(
        task_id: TaskId, title: NewTitle = None, due: NewDue = None, notes: NewNotes = None, status: NewStatus = None
    ) -> Task:
        """Change a task; what is left out stays as it is."""
        change = TaskChange(title=title, due=due, notes=notes, status=status)
        return await asyncio.to_thread(tasks.update, task_id, change)

    @server.tool(title="Delete task", annotations=REPLACES)
    async def delete(task_id: TaskId) -> Task:
        """Delete a task for good; the result is the task as it was."""
        return await asyncio.to_thread(tasks.delete, task_id)

    return server
