"""Whether there is room on the disk, and what is secret is read by its owner alone. Looks, and changes nothing."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from bot.crypto import KEY_FILE, Sealer
from bot.data_folder import OTHERS
from bot.findings import Finding, doubtful, fine, wrong

_DISK, _FOLDER, _KEY, _ENV = "disk space", "data folder", "key file", ".env"
LITTLE_SPACE, NO_SPACE = 1_000_000_000, 100_000_000
"""Bytes that are free, below which it is warned of, and below which SQLite may fail any time: its journal, the files
that people hand over, and a migration, which writes a large table anew, need some."""


def is_there(path: Path | str) -> bool:
    """Whether this user sees anything there. `Path.exists` raises for what is in a folder that they may not enter."""
    return os.access(path, os.F_OK, effective_ids=True)


def free_bytes(folder: Path) -> int:
    """Returns how much of the disk is free where a folder is, or would be made. Raises `OSError`."""
    there = next(each for each in (folder, *folder.absolute().parents) if is_there(each))
    return shutil.disk_usage(there).free


def disk_findings(folder: Path, free: Callable[[Path], int] = free_bytes) -> list[Finding]:
    """Whether there is room. `free`: says how many bytes are."""
    left = free(folder)
    where = f"{folder}: {left / 1e9:.1f} GB are free"
    remedy = f"Make room, or move the folder and set DATABASE_URL (see what is large: du -sh {folder}/*)."
    if left < NO_SPACE:
        return [wrong(_DISK, where, remedy)]
    return [doubtful(_DISK, where, remedy) if left < LITTLE_SPACE else fine(_DISK, where)]


def rights_findings(folder: Path | None, env_file: Path, *, key_is_set: bool) -> list[Finding]:
    """Whether others on this machine can read what they should not.

    Args:
        folder: of the data; `None`: it is in PostgreSQL.
        key_is_set: whether ENCRYPTION_KEY is, so that no key file counts.
    """
    found = []
    # Also whether this user may enter it: else nothing in it can be looked at.
    if folder is not None and is_there(f"{folder}/."):
        found.append(_private(_FOLDER, folder, f"chmod 700 {folder}"))
        if not key_is_set:
            found += _key_file(folder / KEY_FILE)
    if env_file.is_file():
        found.append(_private(_ENV, env_file, f"chmod 600 {env_file}"))
    return found


def _private(what: str, path: Path, remedy: str) -> Finding:
    mode = path.stat().st_mode
    if mode & OTHERS:
        return doubtful(what, f"{path}: others on this machine can use it ({stat.S_IMODE(mode):o})", remedy)
    return fine(what, f"{path}: is for its owner alone")


def _key_file(path: Path) -> list[Finding]:
    if not path.exists():
        return []
    if path.stat().st_mode & OTHERS:
        mode = stat.S_IMODE(path.stat().st_mode)
        return [wrong(_KEY, f"{path}: others on this machine can use it ({mode:o})", f"chmod 600 {path}")]
    if sealer_of(path.parent, None) is None:
        return [wrong(_KEY, f"{path}: is not a key that can be read", "Put the right one back from a backup.")]
    return [fine(_KEY, f"{path}: is for its owner alone")]


def sealer_of(folder: Path | None, given: bytes | None) -> Sealer | None:
    """What opens what is sealed, with the key that is set, else with the one in the data folder; `None`: there is none.
    None is made."""
    try:
        key = given if given is not None or folder is None else (folder / KEY_FILE).read_bytes().strip()
        return Sealer(key) if key is not None else None
    except (OSError, ValueError):
        return None
