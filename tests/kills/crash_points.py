"""`python -m tests.kills.crash_points`: the product, dying at one chosen durable write.

Each write has two points: just before it is on disk (or in memory, which is what a process has of it when it dies), and
just after.
"""

from __future__ import annotations

import fcntl
import functools
import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from langgraph.store.sqlite.aio import AsyncSqliteStore

import app
from bot.records.checkpoints import Checkpoints
from bot.records.sqlite import SqliteDatabase

WRITES: tuple[tuple[type[Any], str], ...] = (
    (SqliteDatabase, "commit"),
    (Checkpoints, "aput"),
    (Checkpoints, "aput_writes"),
    (Checkpoints, "prune_thread"),
    (Checkpoints, "sync"),
    (AsyncSqliteStore, "abatch"),
)
"""Every method that makes something durable, or keeps something that is to become so; that of the memories reads, too.
`sync` is called within
`commit`, before the commit of the records."""
DIED = 9
"""Exit code of the product that reached its crash point."""

COUNTDOWN = "KILLS_COUNTDOWN"
"""Variable of the file that counts down to the crash point."""

Write = Callable[..., Awaitable[Any] | None]


def install(countdown: Path) -> None:
    """Count down the number in this file at every point, and end as `kill -9` would at the one where it is 0.

    Without the file nothing happens; dying removes it, so that the next product lives.
    """

    def pass_point() -> None:
        with alone(countdown):
            try:
                left = int(countdown.read_text())
            except FileNotFoundError:
                return
            if left == 0:
                countdown.unlink()
                os._exit(DIED)
            write_whole(countdown, str(left - 1))

    for owner, name in WRITES:
        setattr(owner, name, _watched(getattr(owner, name), pass_point))


def set_countdown(countdown: Path, points: int) -> None:
    """Let so many points pass before the one to die at, whatever the product writes at this moment."""
    with alone(countdown):
        write_whole(countdown, str(points))


def write_whole(file: Path, content: str) -> None:
    """Whoever reads meanwhile sees all that was in it before, or all that is in it now."""
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(content)
    new.replace(file)


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Keeps the product, whose threads all write, and the test from writing over each other."""
    with file.with_name(f"{file.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _watched(write: Write, pass_point: Callable[[], None]) -> Write:
    @functools.wraps(write)
    async def watched(*args: Any, **kwargs: Any) -> Any:
        pass_point()
        result = await cast("Awaitable[Any]", write(*args, **kwargs))
        pass_point()
        return result

    @functools.wraps(write)
    def watched_blocking(*args: Any, **kwargs: Any) -> None:
        pass_point()
        write(*args, **kwargs)
        pass_point()

    return watched if inspect.iscoroutinefunction(write) else watched_blocking


if __name__ == "__main__":
    install(Path(os.environ[COUNTDOWN]))
    sys.exit(app.main())
