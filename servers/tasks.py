"""The tasks MCP server: a list of things to do for everybody who asks, in one SQLite file.

Where nobody says who asks (`servers/requester.py`), there is one list for all; what is in it nobody else gets to see.

`python -m servers.tasks [--http PORT [--host HOST]]`; the file is `TASKS_DB`, by default `data/tasks.db`.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from servers import database
from servers.plain_server import ADDS, MARKS, READS, REPLACES, CallRefused, PlainServer, Text, Title, described
from servers.requester import asking
from servers.start import start_server

INSTRUCTIONS = (
    """A list of things to do. Look up a task's id with list_tasks before changing, completing or deleting it."""
)

MOST_LISTED = 200
"""Tasks in one listing, so that it fits a model's context. Our own choice."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    due TEXT NOT NULL,    -- ISO 8601 date, or empty
    notes TEXT NOT NULL,
    status TEXT NOT NULL, -- open or done
    created_at TEXT NOT NULL,
    completed_at TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '' -- whose list it is in; empty: nobody in particular
);
"""
COLUMNS = "id, title, due, notes, status, created_at, completed_at"
"""What a task is made of; `owner` is nobody else's business."""


def read_date(given: Any) -> str:
    """An ISO 8601 date; an empty text stays empty and means none. Raises `ValueError` with a sentence."""
    mistake = f"{str(given)[:60]!r} is not a date; write it like 2026-11-30."
    if not isinstance(given, str):
        raise ValueError(mistake)  # noqa: TRY004 - pydantic reports ValueError
    try:
        return date.fromisoformat(given.strip()).isoformat() if given.strip() else ""
    except ValueError as error:
        raise ValueError(mistake) from error


Status = Literal["open", "done"]
Day = Annotated[str, BeforeValidator(read_date), WithJsonSchema({"type": "string", "format": "date"})]
TaskId = Annotated[UUID, described("Task", "Which task; its id is in list_tasks")]
Due = Annotated[Day | None, described("Due", "The day it is due")]
NewTitle = Annotated[Title | None, described("Title", "New title")]
NewDue = Annotated[Day | None, described("Due", "New due day; leave empty to remove it")]
NewNotes = Annotated[Text | None, described("Notes", "New notes; leave empty to remove them")]
NewStatus = Annotated[Status | None, described("Status", "“open” reopens the task, “done” completes it")]


class Task(BaseModel):
    """One thing to do."""

    id: str
    title: str
    status: Status
    due: str
    """ISO 8601 date; empty: none."""
    notes: str
    created_at: str
    completed_at: str
    """Empty while it is open."""


class TaskDetails(BaseModel):
    """What people know of a task."""

    title: str
    status: Status
    due: str
    notes: str


class TaskChange(BaseModel):
    """A task as it is, and as it would be."""

    before: TaskDetails
    after: TaskDetails | None
    """`None`: it would be gone."""


class TaskList(BaseModel):
    """Tasks, those due first at the top."""

    tasks: list[Task]
    left_out: int
    """How many more there are, when there are too many for one listing."""


def build(address: str) -> PlainServer:
    """The server over one task file, which is made if it is missing. Raises `OSError` or `sqlite3.Error`."""
    path = Path(address)
    database.create(path, SCHEMA)
    with database.writing(path) as connection:
        _bring_up_to_date(connection)
    server = PlainServer("tasks", instructions=INSTRUCTIONS, log_level="WARNING")

    @server.tool(title="Add task", annotations=ADDS)
    def add_task(
        title: Annotated[Title, described("Title", "What needs to be done")],
        due: Due = None,
        notes: Annotated[Text, Field(title="Notes")] = "",
    ) -> Task:
        """Add a task."""
        task = Task(
            id=str(uuid4()), title=title, status="open", due=due or "", notes=notes, created_at=_now(), completed_at=""
        )
        with database.writing(path) as connection:
            _save(connection, task)
        return task

    @server.tool(title="List tasks", annotations=READS)
    def list_tasks(
        status: Annotated[
            Literal["open", "done", "all"], Field(title="Status", description="Which tasks to list")
        ] = "open",
    ) -> TaskList:
        """List tasks with their ids, those due first at the top."""
        with database.reading(path) as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM tasks WHERE owner = ? AND ? IN ('all', status) "  # noqa: S608 - constant
                "ORDER BY due = '', due, created_at, id",
                (asking.get(), status),
            ).fetchall()
        tasks = [Task(**dict(row)) for row in rows[:MOST_LISTED]]
        return TaskList(tasks=tasks, left_out=max(0, len(rows) - MOST_LISTED))

    @server.tool(title="Complete task", annotations=MARKS)
    def complete_task(task_id: TaskId) -> Task:
        """Mark a task as done."""
        with database.writing(path) as connection:
            return _change(connection, task_id, status="done")

    @server.tool(title="Update task", annotations=REPLACES)
    def update_task(
        task_id: TaskId, title: NewTitle = None, due: NewDue = None, notes: NewNotes = None, status: NewStatus = None
    ) -> Task:
        """Change a task; what is left out stays as it is."""
        changes = _given(title=title, due=due, notes=notes, status=status)
        with database.writing(path) as connection:
            return _change(connection, task_id, **changes)

    @server.tool(title="Preview an update", annotations=READS)
    def preview_update_task(
        task_id: TaskId, title: NewTitle = None, due: NewDue = None, notes: NewNotes = None, status: NewStatus = None
    ) -> TaskChange:
        """What update_task would change, without changing it."""
        changes = _given(title=title, due=due, notes=notes, status=status)
        with database.reading(path) as connection:
            task = _find(connection, task_id)
        return TaskChange(before=_details(task), after=_details(task.model_copy(update=changes)))

    @server.tool(title="Delete task", annotations=REPLACES)
    def delete_task(task_id: TaskId) -> Task:
        """Delete a task for good; the result is the task as it was."""
        with database.writing(path) as connection:
            task = _find(connection, task_id)
            connection.execute("DELETE FROM tasks WHERE id = ?", (task.id,))
        return task

    @server.tool(title="Preview a deletion", annotations=READS)
    def preview_delete_task(task_id: TaskId) -> TaskChange:
        """What delete_task would delete, without deleting it."""
        with database.reading(path) as connection:
            return TaskChange(before=_details(_find(connection, task_id)), after=None)

    @server.tool(title="Get task", annotations=READS)
    def get_task(task_id: TaskId) -> Task:
        """Get one task."""
        with database.reading(path) as connection:
            return _find(connection, task_id)

    return server


def _given(**changes: str | None) -> dict[str, str]:
    """Those that were given. Raises `CallRefused` when none was."""
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise CallRefused("Nothing to change was given.")
    return given


def _details(task: Task) -> TaskDetails:
    return TaskDetails(**task.model_dump(include=set(TaskDetails.model_fields)))


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """What was there before everybody had a list of their own stays in the one that is nobody's."""
    if "owner" not in {column["name"] for column in connection.execute("PRAGMA table_info(tasks)")}:
        connection.execute("ALTER TABLE tasks ADD COLUMN owner TEXT NOT NULL DEFAULT ''")
    connection.execute("CREATE INDEX IF NOT EXISTS tasks_by_owner ON tasks (owner)")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _find(connection: sqlite3.Connection, task_id: UUID) -> Task:
    row = connection.execute(
        f"SELECT {COLUMNS} FROM tasks WHERE id = ? AND owner = ?",  # noqa: S608 - constant
        (str(task_id), asking.get()),
    ).fetchone()
    if row is None:
        raise CallRefused("There is no such task. It may have been deleted.")
    return Task(**dict(row))


def _change(connection: sqlite3.Connection, task_id: UUID, **changes: str) -> Task:
    task = _find(connection, task_id)
    changed = task.model_copy(update=changes)
    if changed.status != task.status:
        changed = changed.model_copy(update={"completed_at": _now() if changed.status == "done" else ""})
    _save(connection, changed)
    return changed


def _save(connection: sqlite3.Connection, task: Task) -> None:
    connection.execute(
        f"INSERT OR REPLACE INTO tasks ({COLUMNS}, owner) "  # noqa: S608 - constant
        "VALUES (:id, :title, :due, :notes, :status, :created_at, :completed_at, :owner)",
        {**task.model_dump(), "owner": asking.get()},
    )


if __name__ == "__main__":
    start_server("tasks", database_variable="TASKS_DB", build=build)
