"""The tasks of one SQLite file. Blocking: to be called from a worker thread."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID, uuid4

from pydantic import BaseModel

from servers import database
from servers.refusal import Refused

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
    completed_at TEXT NOT NULL
);
"""

Status = Literal["open", "done"]


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


class TaskList(BaseModel):
    """Tasks, those due first at the top."""

    tasks: list[Task]
    left_out: int
    """How many more there are, when there are too many for one listing."""


@dataclass(frozen=True, kw_only=True)
class TaskChange:
    """New values of a task; `None` leaves a value as it is."""

    title: str | None = None
    due: str | None = None
    notes: str | None = None
    status: Status | None = None


@dataclass(frozen=True)
class Tasks:
    """The task file; safe to use from many threads and processes at once."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Tasks:
        """Make the file if it is missing. Raises `OSError` or `sqlite3.Error`."""
        database.create(path, SCHEMA)
        return cls(path)

    def add(self, title: str, due: str, notes: str) -> Task:
        """Add an open task and return it."""
        task = Task(
            id=str(uuid4()), title=title, status="open", due=due, notes=notes, created_at=_now(), completed_at=""
        )
        with database.writing(self.path) as connection:
            _save(connection, task)
        return task

    def having(self, status: Literal["open", "done", "all"]) -> TaskList:
        """Tasks in a status, or all of them; by due date, then by age."""
        with database.reading(self.path) as connection:
            rows = connection.execute(
                "SELECT * FROM tasks WHERE ? IN ('all', status) ORDER BY due = '', due, created_at, id", (status,)
            ).fetchall()
        return TaskList(
            tasks=[Task(**dict(row)) for row in rows[:MOST_LISTED]], left_out=max(0, len(rows) - MOST_LISTED)
        )

    def complete(self, task_id: UUID) -> Task:
        """Mark a task as done and return it; a task that is done already stays as it is."""
        with database.writing(self.path) as connection:
            return _keep(connection, _find(connection, task_id), TaskChange(status="done"))

    def update(self, task_id: UUID, change: TaskChange) -> Task:
        """Change a task and return it as it is now."""
        if change == TaskChange():
            raise Refused("Nothing to change was given.")
        with database.writing(self.path) as connection:
            return _keep(connection, _find(connection, task_id), change)

    def delete(self, task_id: UUID) -> Task:
        """Remove a task and return it as it was."""
        with database.writing(self.path) as connection:
            task = _find(connection, task_id)
            connection.execute("DELETE FROM tasks WHERE id = ?", (task.id,))
        return task


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _find(connection: sqlite3.Connection, task_id: UUID) -> Task:
    row = connection.execute("SELECT * FROM tasks WHERE id = ?", (str(task_id),)).fetchone()
    if row is None:
        raise Refused(f"There is no task with the id {task_id}.")
    return Task(**dict(row))


def _keep(connection: sqlite3.Connection, task: Task, change: TaskChange) -> Task:
    given = {name: value for name, value in vars(change).items() if value is not None}
    changed = task.model_copy(update=given)
    if changed.status != task.status:
        changed = changed.model_copy(update={"completed_at": _now() if changed.status == "done" else ""})
    _save(connection, changed)
    return changed


def _save(connection: sqlite3.Connection, task: Task) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO tasks VALUES (:id, :title, :due, :notes, :status, :created_at, :completed_at)",
        task.model_dump(),
    )
