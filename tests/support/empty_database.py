"""Records with the present schema and nothing in them, without making each table anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.records.startup import upgrade_sqlite


def empty_database(path: Path) -> None:
    """Write the file of an empty database, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(_template())


@cache
def _template() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        upgrade_sqlite(file)
        return file.read_bytes()
