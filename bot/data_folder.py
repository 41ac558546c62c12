"""The data folder is for its owner alone: what people wrote, what tools said, and the key to what is sealed."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)
FOLDER, FILE = 0o700, 0o600
OTHERS = 0o077


def private_folder(folder: Path) -> None:
    """Make the folder, or take it, and the files that lie in it, from everybody else.

    A folder that is not for our files alone (the current folder or one above it, the home folder, one that is another
    user's or shared as `/tmp` is) is left as it is, and a line in the log says so; our own files are private there too.
    """
    if not folder.exists():
        folder.mkdir(mode=FOLDER, parents=True)
    if not _is_ours_alone(folder):
        log.warning("data_folder_not_private", folder=str(folder), note="Give DATABASE_URL a folder of its own.")
        return
    _tighten(folder, FOLDER)
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            _tighten(path, FILE)


def private_file(path: Path) -> None:
    """Make an empty file that only its owner can read, unless there is one; then take it from everybody else. Whatever
    SQLite puts beside a database is as private as the database."""
    path.touch(mode=FILE)
    for each in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))):
        if each.exists():
            _tighten(each, FILE)


def private_opener(path: str, flags: int) -> int:
    """Opener for `open(…, opener=)`: makes a file that only its owner can read, also when it is there already."""
    descriptor = os.open(path, flags, FILE)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, FILE)
    return descriptor


def _is_ours_alone(folder: Path) -> bool:
    here, now = folder.resolve(), folder.stat()
    shared = {Path.cwd(), *Path.cwd().parents, Path.home().resolve(), *Path.home().resolve().parents}
    return now.st_uid == os.geteuid() and not now.st_mode & stat.S_ISVTX and here not in shared


def _tighten(path: Path, mode: int) -> None:
    now = path.stat(follow_symlinks=False)
    if now.st_mode & OTHERS and now.st_uid == os.geteuid():
        path.chmod(mode)
        log.info("made_private", path=str(path), was=f"{stat.S_IMODE(now.st_mode):o}")


# One process per data folder: the embedded engine is alone with its inbox.


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
