"""Rows of `files`: what people handed over, as it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from bot.records.database import Transaction, insert_new, reader
from bot.records.statements import Prepared
from bot.records.tables import files


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that was read, or could not be."""

    file_id: str
    owner: str
    """Person id of who handed it over."""
    thread_id: str | None
    """`None`: no message has taken it yet."""
    message_key: str | None
    number: int | None
    """Its place among the files of the message, from 0."""
    name: str
    media_type: str
    size: int
    """Bytes of the file."""
    text: str
    """Markdown; never changes."""
    missing: int
    """Characters that were left out at its end."""
    reason: str
    """Why it could not be read; empty: it was."""
    created_at: float


_file = reader(FileRow)
_OF_MESSAGE = Prepared(sa.select(files).where(files.c.message_key == sa.bindparam("key")).order_by(files.c.number))
_WITH_ID = Prepared(sa.select(files).where(files.c.file_id == sa.bindparam("id")))
_UNUSED = Prepared(
    sa.select(sa.func.count().label("count")).where(files.c.thread_id.is_(None), files.c.owner == sa.bindparam("owner"))
)
_TAKE = Prepared(
    sa.update(files)
    .where(files.c.file_id == sa.bindparam("id"), files.c.owner == sa.bindparam("by"), files.c.thread_id.is_(None))
    .values(thread_id=sa.bindparam("thread"), message_key=sa.bindparam("key"), number=sa.bindparam("place"))
    .returning(files.c.file_id)
)
_DROP_UNUSED = Prepared(
    sa.delete(files).where(files.c.thread_id.is_(None), files.c.created_at < sa.bindparam("before"))
)
_DROP_OF_THREAD = Prepared(sa.delete(files).where(files.c.thread_id == sa.bindparam("thread")))


async def add(tx: Transaction, row: FileRow) -> bool:
    """Keep a file. Returns False when its message has one of that number already."""
    return await insert_new(tx, files, asdict(row))


async def take(tx: Transaction, file_id: str, owner: str, *, thread_id: str, key: str, number: int) -> bool:
    """A message takes a file that its author has uploaded. Returns False when there is none of theirs, or another
    message has taken it."""
    values = {"id": file_id, "by": owner, "thread": thread_id, "key": key, "place": number}
    return await tx.one(_TAKE, values) is not None


async def of_message(tx: Transaction, key: str) -> Sequence[FileRow]:
    """The files of a message, in its order."""
    return [_file(row) for row in await tx.all(_OF_MESSAGE, {"key": key})]


async def get(tx: Transaction, file_id: str) -> FileRow | None:
    """A file, or none."""
    return await tx.first(_file, _WITH_ID, {"id": file_id})


async def unused_of(tx: Transaction, owner: str) -> int:
    """How many files somebody has uploaded that no message has taken."""
    row = await tx.one(_UNUSED, {"owner": owner})
    return 0 if row is None else int(row.count)


async def drop_unused(tx: Transaction, before: float) -> None:
    """Forget what was uploaded before this time and no message has taken."""
    await tx.run(_DROP_UNUSED, {"before": before})


async def drop_of_thread(tx: Transaction, thread_id: str) -> None:
    """Forget all files of a thread."""
    await tx.run(_DROP_OF_THREAD, {"thread": thread_id})
