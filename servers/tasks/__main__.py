"""`python -m servers.tasks [--http PORT]`; the file is `TASKS_DB`, by default `data/tasks.db`."""

from __future__ import annotations

from servers.start import start
from servers.tasks.server import build
from servers.tasks.todo import Tasks

if __name__ == "__main__":
    start("tasks", database_variable="TASKS_DB", build=lambda path: build(Tasks.open(path)))
