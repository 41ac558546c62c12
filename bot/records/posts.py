"""Rows of `posts`: the outbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain import ConversationReference
from bot.records.database import Transaction, insert_new, reader
from bot.records.prefixes import from_to, of_turn
from bot.records.statements import Prepared, PreparedForLists
from bot.records.tables import approvals, post_messages, posts, threads
from graph.json_values import storable

NOTICES = ("error", "limit", "wait", "form", "unwelcome")
"""What the keys of posts begin with that tell the author of a delivery what has become of it."""
CODE = "code:"
"""What the key of a post begins with that answers a one-time code; the rest is the key of the message that held it,
which is kept nowhere."""
CHANGE = "change:"
"""What the key of a post begins with that is the line of a change made without asking."""
NEWEST_THREADS = 10
"""Threads of a place in which an answer is looked for: a new one begins after hours of quiet."""


@dataclass(frozen=True, slots=True)
class NewPost:
    """Something the bot says. `content` is kept for plain sayings; a card is a view of its `subject`'s row."""

    key: str
    """What is said under one key is said once, however often it is handled."""
    thread_id: str
    kind: str
    subject: str | None = None
    content: Mapping[str, Any] | None = None
    only_for: str | None = None
    place: ConversationReference | None = None
    """Where it is shown; `None`: in its thread. A card may have several posts, in several places."""

    @property
    def lane(self) -> str:
        """What is shown in one lane is shown in order: a thread, or another place."""
        return self.thread_id if self.place is None else self.place.key


@dataclass(frozen=True, slots=True)
class PostRow:
    """A post, and how far it has been shown."""

    key: str
    thread_id: str
    lane: str
    place: ConversationReference | None
    kind: str
    subject: str | None
    content: Mapping[str, Any] | None
    only_for: str | None
    revision: int
    sent_revision: int
    reference: Mapping[str, Any] | None
    tries: int
    at: float
    seq: int = 0
    """Grows from one post to the next."""

    @property
    def is_nowhere(self) -> bool:
        """Whether it was given up and can be seen nowhere."""
        return self.reference is None and self.sent_revision >= self.revision


def _place(kept: Mapping[str, Any] | None) -> ConversationReference | None:
    return ConversationReference(**kept) if kept else None


_row = reader(PostRow, place=_place)
_FIRST = sa.func.row_number().over(order_by=posts.c.seq) == sa.literal_column("1")
_UNSENT = Prepared(
    sa.select(
        *(c if c.name in {"seq", "key"} else sa.case((_FIRST, c), else_=sa.null()).label(c.name) for c in posts.c),
        threads.c.place.label("place_of_lane"),
    )
    .join(threads, threads.c.thread_id == posts.c.lane, isouter=True)
    .where(posts.c.lane == sa.bindparam("lane"), posts.c.sent_revision < posts.c.revision)
    .order_by(posts.c.seq)
)
"""The first one whole: mostly there are no others."""
_TEXTS = Prepared(
    sa.select(posts.c.seq, posts.c.content)
    .where(posts.c.thread_id == sa.bindparam("thread"), posts.c.seq < sa.bindparam("before"), posts.c.kind == "said")
    .order_by(posts.c.seq.desc())
    .limit(sa.bindparam("most"))
)
_SENT = Prepared(
    sa.update(posts).where(posts.c.key == sa.bindparam("of"), posts.c.sent_revision < sa.bindparam("shown"))
)
_TOUCH = PreparedForLists(
    lambda subjects: (
        sa.update(posts)
        .where(posts.c.subject.in_(subjects))
        .values(revision=posts.c.revision + 1)
        .returning(posts.c.lane)
    )
)
_BY_SEQ = Prepared(sa.select(posts).where(posts.c.seq == sa.bindparam("number")))
_ANSWER = Prepared(
    sa.select(*(c for c in posts.c if c.name != "content"), sa.null().label("content")).where(
        posts.c.seq == sa.bindparam("number")
    )
)
_TOUCH_OF_CALL = Prepared(
    sa.update(posts)
    .where(posts.c.subject.in_(sa.select(approvals.c.approval_id).where(approvals.c.call_id == sa.bindparam("call"))))
    .values(revision=posts.c.revision + 1)
    .returning(posts.c.lane)
)
_BY_KEY = Prepared(sa.select(posts).where(posts.c.key == sa.bindparam("of")))


async def add(tx: Transaction, post: NewPost, now: float) -> bool:
    """Keep a post to be sent; false when it had been said before."""
    row = {**asdict(post), "lane": post.lane, "revision": 1, "sent_revision": 0, "tries": 0, "at": now}
    tx.shows(post.lane)
    return await insert_new(tx, posts, row)


async def touch(tx: Transaction, subjects: Sequence[str]) -> Sequence[str]:
    """What these posts show has changed: show it anew. Returns the lanes they are in."""
    return _woken(tx, await tx.all(*_TOUCH.of(subjects)))


async def touch_of_call(tx: Transaction, call_id: str) -> Sequence[str]:
    """The same for the posts of all approvals of a call."""
    return _woken(tx, await tx.all(_TOUCH_OF_CALL, {"call": call_id}))


async def touch_under(tx: Transaction, grant_id: str, limit: int) -> Sequence[str]:
    """The same for the newest lines of changes that were made under a standing approval."""
    of_grant = from_to(posts.c.key, change_key("", grant_id), f"{CHANGE}{grant_id};")  # ";" follows ":"
    newest = sa.select(posts.c.seq).where(of_grant).order_by(posts.c.seq.desc()).limit(limit)
    shown_anew = sa.update(posts).where(posts.c.seq.in_(newest)).values(revision=posts.c.revision + 1)
    return _woken(tx, await tx.all(shown_anew.returning(posts.c.lane)))


def change_key(attempt_id: str, grant_id: str | None = None) -> str:
    """Returns the key of the line of a change that was made without asking.

    Args:
        grant_id: the standing approval under which it was made.
    """
    return f"{CHANGE}{attempt_id}" if grant_id is None else f"{CHANGE}{grant_id}:{attempt_id}"


def _woken(tx: Transaction, touched: Sequence[Any]) -> Sequence[str]:
    lanes = [row.lane for row in touched]
    tx.shows(*lanes)
    return lanes


async def unsent(tx: Transaction, lane: str) -> Sequence[tuple[PostRow, ConversationReference | None]]:
    """What has to be shown in a lane, in order, and where: at its own place, or at that of the thread. `None`: the
    thread is not known."""
    found = await tx.all(_UNSENT, {"lane": lane})
    if not found:
        return []
    of_lane = _place(found[0].place_of_lane)
    return [(row, row.place or of_lane) for row in [_row(found[0]), *await _each(tx, found[1:])]]


async def lanes_with_unsent(tx: Transaction) -> Sequence[str]:
    """Lanes in which something has to be shown."""
    query = sa.select(posts.c.lane).where(posts.c.sent_revision < posts.c.revision)
    return [r.lane for r in await tx.all(query.group_by(posts.c.lane))]


async def sent(
    tx: Transaction, key: str, revision: int, reference: Mapping[str, Any], *, before: Mapping[str, Any] | None
) -> None:
    """This revision is shown; a newer one is not marked by an older one's arrival.

    Args:
        before: the reference that was kept for the revision before: its messages are known to be the post's.
    """
    values = {"sent_revision": revision, "reference": dict(reference), "tries": 0, "cause": None}
    await tx.run(_SENT, {"of": key, "shown": revision, **values})
    known = set(messages_in(before))
    for message in dict.fromkeys(messages_in(reference)):
        if message in known:
            continue
        await insert_new(tx, post_messages, {"message": message, "post": key})


def messages_in(reference: Any) -> Iterator[str]:
    """What a reference lists, however deep: the ids of its messages. What it names once is where they are."""
    match reference:
        case Mapping():
            for value in reference.values():
                yield from messages_in(value)
        case list() | tuple():
            for value in reference:
                if isinstance(value, str):
                    yield value
                else:
                    yield from messages_in(value)


async def passed_over(tx: Transaction, key: str, revision: int) -> None:
    """This revision is given up. Without a reference a later one is sent, since there is nothing to update."""
    await tx.run(sa.update(posts).where(posts.c.key == key).values(sent_revision=revision))


async def failed(tx: Transaction, key: str, cause: str) -> None:
    """A try to show it failed."""
    await tx.run(sa.update(posts).where(posts.c.key == key).values(tries=posts.c.tries + 1, cause=cause))


async def of_thread(tx: Transaction, thread_id: str, limit: int) -> list[PostRow]:
    """The newest posts of a thread, oldest first."""
    query = sa.select(posts.c.seq).where(posts.c.thread_id == thread_id).order_by(posts.c.seq.desc()).limit(limit)
    return await _each(tx, reversed(await tx.all(query)))


async def said_in_turn(tx: Transaction, thread_id: str, turn: str) -> list[PostRow]:
    """What the bot said in a turn, by the key of its delivery, oldest first."""
    # Keys of what is said hold the ids of messages, which begin with it (`bot.outbox.said`).
    in_it = of_turn(posts.c.key, f"said:{turn}")
    query = sa.select(posts.c.seq).where(posts.c.thread_id == thread_id, in_it).order_by(posts.c.seq)
    return await _each(tx, await tx.all(query))


async def texts_before(tx: Transaction, thread_id: str, before: int, limit: int) -> list[tuple[int, str]]:
    """The number and the text of the newest `limit` answers in a thread with numbers below `before`, the newest
    first."""
    rows = await tx.all(_TEXTS, {"thread": thread_id, "before": before, "most": limit})
    return [(row.seq, str((row.content or {}).get("text", ""))) for row in rows]


async def newest_number(tx: Transaction, thread_id: str) -> int:
    """The number of a thread's newest post; 0: it has none."""
    query = sa.select(posts.c.seq).where(posts.c.thread_id == thread_id).order_by(posts.c.seq.desc()).limit(1)
    row = await tx.one(query)
    return int(row.seq) if row is not None else 0


async def notices_about(
    tx: Transaction, thread_id: str, of: Sequence[str], reader: Collection[str]
) -> Sequence[PostRow]:
    """The bot's own sentences about these deliveries, for these people or for everybody, oldest first."""
    keys = [f"{kind}:{key}" for key in of for kind in NOTICES]
    query = sa.select(posts).where(posts.c.key.in_(keys), posts.c.thread_id == thread_id).order_by(posts.c.seq)
    return [row for r in await tx.all(query) if (row := _row(r)).only_for in {None, *reader}]


async def all_notices_about(tx: Transaction, of: Collection[str]) -> Sequence[PostRow]:
    """The bot's own sentences about these deliveries, for all readers, oldest first."""
    keys = [f"{kind}:{key}" for key in of for kind in NOTICES]
    return [_row(row) for row in await tx.all(sa.select(posts).where(posts.c.key.in_(keys)).order_by(posts.c.seq))]


async def failures_of_resumes(
    tx: Transaction, thread_id: str, since: float, reader: Collection[str]
) -> Sequence[PostRow]:
    """What was told since then of failures after people had decided or answered something in a thread, or the time for
    it was up, oldest first."""
    of_resumes = from_to(posts.c.key, "error:resume:", "error:resume;") | from_to(
        posts.c.key, "error:expire:", "error:expire;"
    )
    query = sa.select(posts).where(posts.c.thread_id == thread_id, of_resumes, posts.c.at >= since)
    return [r for row in await tx.all(query.order_by(posts.c.seq)) if (r := _row(row)).only_for in {None, *reader}]


async def _each(tx: Transaction, numbers: Iterable[Any], statement: Prepared = _BY_SEQ) -> list[PostRow]:
    """The posts with these numbers, one after the other: an answer may be a megabyte long."""
    return [_row(r) for r in await tx.each(statement, [{"number": row.seq} for row in numbers])]


async def of_subjects(tx: Transaction, subjects: Sequence[str]) -> Mapping[str, Sequence[PostRow]]:
    """The cards of each of these approvals, questions, sign-ins and attempts that has any, oldest first."""
    found: dict[str, list[PostRow]] = {}
    for r in await tx.all(sa.select(posts).where(posts.c.subject.in_(subjects)).order_by(posts.c.seq)):
        found.setdefault(r.subject, []).append(_row(r))
    return found


async def threads_of_subject(tx: Transaction, subject: str) -> Sequence[str]:
    """The threads in which there is a card of this approval, question, sign-in or attempt."""
    rows = await tx.all(sa.select(posts.c.thread_id).where(posts.c.subject == subject).distinct())
    return [row.thread_id for row in rows]


async def answers_at(tx: Transaction, place_key: str, limit: int) -> Sequence[PostRow]:
    """The newest answers in the newest threads of a place, newest first, without their content."""
    here = sa.select(threads.c.thread_id).where(threads.c.place_key == place_key)
    newest = await tx.all(here.order_by(threads.c.created_at.desc()).limit(NEWEST_THREADS))
    found: list[Any] = []
    for row in newest:  # one after the other: of several at once all posts would be read to find the newest
        query = sa.select(posts.c.seq).where(posts.c.thread_id == row.thread_id, posts.c.kind == "said")
        found += await tx.all(query.order_by(posts.c.seq.desc()).limit(limit - len(found)))
        if len(found) == limit:
            break
    return sorted(await _each(tx, found, _ANSWER), key=lambda post: post.at, reverse=True)


async def is_in_a_reference(tx: Transaction, message: str, within: str) -> bool:
    """Whether a post in a lane that begins with `within` has this message in its reference."""
    query = sa.select(posts.c.lane, posts.c.reference).join(post_messages, post_messages.c.post == posts.c.key)
    rows = await tx.all(query.where(post_messages.c.message == storable(message)))
    # A reference that has changed since does not have all the messages any more that it had.
    return any(row.lane.startswith(within) and message in messages_in(row.reference) for row in rows)


async def threads_with_unsent(tx: Transaction, lanes: Sequence[str]) -> Sequence[str]:
    """The threads of which something is unsent in these lanes: cards of one may be shown at the place of another."""
    query = sa.select(posts.c.thread_id).where(posts.c.lane.in_(lanes), posts.c.sent_revision < posts.c.revision)
    return list(dict.fromkeys(r.thread_id for r in await tx.all(query)))


async def give_up_lanes(tx: Transaction, lanes: Sequence[str]) -> None:
    """Nothing more is shown in these lanes of what is unsent now."""
    unsent = sa.update(posts).where(posts.c.lane.in_(lanes), posts.c.sent_revision < posts.c.revision)
    await tx.run(unsent.values(sent_revision=posts.c.revision))


async def get(tx: Transaction, key: str) -> PostRow | None:
    """The post, or none."""
    return await tx.first(_row, _BY_KEY, {"of": key})
