"""One process per data folder: the embedded engine is alone with its inbox."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.private_files import private_folder, private_opener


class FolderInUseError(Exception):
    """Another process works with this data folder."""


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the folder. The system lets go of it when the process ends, however it ends. Raises `FolderInUseError`."""
    private_folder(folder)
    with open(folder / "lock", "w", opener=private_opener) as handle:  # `Path.open` takes no opener
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FolderInUseError(
                f"Another Countersign works with {folder}. Stop it first, or set DATABASE_URL to another file."
            ) from None
        yield
