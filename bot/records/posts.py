"""Rows of `posts`: the outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.tables import posts
from bot.records.upsert import insert_new


@dataclass(frozen=True, slots=True)
class NewPost:
    """Something the bot says. `content` is kept for plain sayings; a card is a view of its `subject`'s row."""

    key: str
    """The same thing is said once, however often it is handled."""
    thread_id: str
    kind: str
    subject: str | None = None
    content: Mapping[str, Any] | None = None
    only_for: str | None = None


@dataclass(frozen=True, slots=True)
class PostRow:
    """A post, and how far it has been shown."""

    key: str
    thread_id: str
    kind: str
    subject: str | None
    content: Mapping[str, Any] | None
    only_for: str | None
    revision: int
    sent_revision: int
    reference: Mapping[str, Any] | None
    tries: int
    at: float


_UNSENT = (
    sa.select(posts)
    .where(posts.c.thread_id == sa.bindparam("thread"), posts.c.sent_revision < posts.c.revision)
    .order_by(posts.c.seq)
)
_SENT = sa.update(posts).where(posts.c.key == sa.bindparam("of"), posts.c.sent_revision < sa.bindparam("shown"))


async def add(tx: Transaction, post: NewPost, now: float) -> bool:
    """Keep a post to be sent; false when it had been said before."""
    row = {
        "key": post.key,
        "thread_id": post.thread_id,
        "kind": post.kind,
        "subject": post.subject,
        "content": dict(post.content) if post.content is not None else None,
        "only_for": post.only_for,
        "revision": 1,
        "sent_revision": 0,
        "tries": 0,
        "at": now,
    }
    return await insert_new(tx, posts, row)


async def touch(tx: Transaction, subjects: Sequence[str]) -> Sequence[str]:
    """What these posts show has changed: show it anew. Returns the threads they are in."""
    statement = sa.update(posts).where(posts.c.subject.in_(subjects)).values(revision=posts.c.revision + 1)
    return [r.thread_id for r in await tx.all(statement.returning(posts.c.thread_id))]


async def unsent(tx: Transaction, thread_id: str) -> Sequence[PostRow]:
    """What has to be shown in a thread, in order."""
    return [_row(r) for r in await tx.all(_UNSENT, {"thread": thread_id})]


async def threads_with_unsent(tx: Transaction) -> Sequence[str]:
    """Threads in which something has to be shown."""
    query = sa.select(posts.c.thread_id).where(posts.c.sent_revision < posts.c.revision)
    return [r.thread_id for r in await tx.all(query.group_by(posts.c.thread_id))]


async def sent(tx: Transaction, key: str, revision: int, reference: Mapping[str, Any]) -> None:
    """This revision is shown; a newer one is not marked by an older one's arrival."""
    values = {"sent_revision": revision, "reference": dict(reference), "tries": 0, "cause": None}
    await tx.run(_SENT, {"of": key, "shown": revision, **values})


async def passed_over(tx: Transaction, key: str, revision: int) -> None:
    """This revision is given up. Without a reference a later one is sent, since there is nothing to update."""
    await tx.run(sa.update(posts).where(posts.c.key == key).values(sent_revision=revision))


async def failed(tx: Transaction, key: str, cause: str) -> None:
    """A try to show it failed."""
    await tx.run(sa.update(posts).where(posts.c.key == key).values(tries=posts.c.tries + 1, cause=cause))


async def of_thread(tx: Transaction, thread_id: str, limit: int) -> list[PostRow]:
    """The newest posts of a thread, oldest first."""
    query = sa.select(posts).where(posts.c.thread_id == thread_id).order_by(posts.c.seq.desc()).limit(limit)
    return [_row(r) for r in reversed(await tx.all(query))]


async def of_subjects(tx: Transaction, subjects: Sequence[str]) -> Mapping[str, PostRow]:
    """The card of each of these approvals, questions, sign-ins and attempts that has one."""
    rows = await tx.all(sa.select(posts).where(posts.c.subject.in_(subjects)).order_by(posts.c.seq.desc()))
    return {r.subject: _row(r) for r in rows}


async def get(tx: Transaction, key: str) -> PostRow | None:
    """The post, or none."""
    row = await tx.one(sa.select(posts).where(posts.c.key == key))
    return _row(row) if row else None


def _row(r: Any) -> PostRow:
    return PostRow(
        r.key,
        r.thread_id,
        r.kind,
        r.subject,
        r.content,
        r.only_for,
        r.revision,
        r.sent_revision,
        r.reference,
        r.tries,
        r.at,
    )
