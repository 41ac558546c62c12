"""What the bot says: kept first, then shown, then updated in place. At least once, in order within a thread."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence

import structlog

from bot.clock import Clock
from bot.platform import Platform, PostFailed
from bot.records import posts, threads
from bot.records.database import Database, Transaction
from bot.records.posts import NewPost, PostRow
from bot.views import post_of
from bot.vocabulary import Notice, Place, Post
from graph.ports import Spoken

log = structlog.get_logger(__name__)

MAX_TRIES = 8
"""Times a post is tried before it is given up, over about two minutes."""
LONGEST_PAUSE = 60.0
"""Seconds between two tries at most."""


def notice(key: str, thread_id: str, text: Notice, *, only_for: str | None = None) -> NewPost:
    """A sentence of the house."""
    return NewPost(key, thread_id, "notice", content={"text": text.text, "tone": text.tone}, only_for=only_for)


def said(thread_id: str, spoken: Spoken) -> NewPost:
    """What the model said, once."""
    return NewPost(f"said:{spoken.message_id}", thread_id, "said", content={"text": spoken.text})


class Posts:
    """The outbox. Posts are kept in the caller's transaction and shown once it is committed."""

    def __init__(self, database: Database, clock: Clock, platforms: Mapping[str, Platform]) -> None:
        self._database = database
        self._clock = clock
        self._platforms = platforms
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._left_over: set[str] = set()
        self._stopping = False

    async def say(self, tx: Transaction, post: NewPost) -> bool:
        """Keep a post; false when it had been said before."""
        is_new = await posts.add(tx, post, self._clock())
        if is_new:
            tx.afterwards(lambda: self._wake(post.thread_id))
        return is_new

    async def show_again(self, tx: Transaction, subjects: Sequence[str]) -> None:
        """What the cards of these approvals, questions, sign-ins or attempts show has changed."""
        for thread_id in dict.fromkeys(await posts.touch(tx, subjects) if subjects else ()):
            tx.afterwards(lambda thread_id=thread_id: self._wake(thread_id))  # type: ignore[misc]

    async def start(self) -> None:
        """Show what was kept before a crash; what may have been sent already is looked for first."""
        async with self._database.reading() as tx:
            left = await posts.threads_with_unsent(tx)
        self._left_over.update(left)
        for thread_id in left:
            self._wake(thread_id)

    async def stop(self, seconds: float) -> None:
        """Give what is being sent `seconds` to arrive; the rest is sent at the next start."""
        self._stopping = True
        senders = list(self._senders.values())
        if senders:
            _, late = await asyncio.wait(senders, timeout=seconds)
            for sender in late:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)

    def _wake(self, thread_id: str) -> None:
        if thread_id in self._senders:
            self._again.add(thread_id)
        elif not self._stopping:
            self._senders[thread_id] = asyncio.create_task(self._send_thread(thread_id), name=f"posts {thread_id}")

    async def _send_thread(self, thread_id: str) -> None:
        try:
            while True:
                self._again.discard(thread_id)
                if not await self._send_unsent(thread_id) and thread_id not in self._again:
                    return
        except Exception:
            # Only the database can fail here; the rows stay unsent and are sent after the next change or start.
            log.exception("posts_not_sent", thread=thread_id)
        finally:
            del self._senders[thread_id]

    async def _send_unsent(self, thread_id: str) -> bool:
        """Show everything that is unsent; false when there was nothing."""
        async with self._database.reading() as tx:
            rows = await posts.unsent(tx, thread_id)
            thread = await threads.get(tx, thread_id) if rows else None
            shown = [(row, await post_of(tx, row, thread.place)) for row in rows] if thread else []
        if not shown or thread is None:
            return False
        for row, post in shown:
            await self._show(row, post, thread.place)
        self._left_over.discard(thread_id)
        return True

    async def _show(self, row: PostRow, post: Post | None, place: Place) -> None:
        platform = self._platforms.get(place.platform)
        if post is None or platform is None:
            cause = "its subject is gone" if post is None else f"platform {place.platform} is not connected"
            await self._give_up(row, cause)
            return
        reference = row.reference
        for attempt in range(MAX_TRIES):
            try:
                if reference is None and row.thread_id in self._left_over:
                    reference = await platform.find(post)
                if reference is None:
                    reference = await platform.send(post)
                else:
                    reference = await platform.update(post, reference)
            except PostFailed as failure:
                if failure.permanent or attempt == MAX_TRIES - 1:
                    await self._give_up(row, str(failure))
                    return
                await asyncio.sleep(_pause(attempt, failure.retry_after))
            else:
                async with self._database.writing() as tx:
                    await posts.sent(tx, row.key, row.revision, reference)
                return

    async def _give_up(self, row: PostRow, cause: str) -> None:
        log.error("post_given_up", post=row.key, thread=row.thread_id, cause=cause)
        async with self._database.writing() as tx:
            await posts.failed(tx, row.key, cause)
            await posts.sent(tx, row.key, row.revision, row.reference or {})


def _pause(attempt: int, retry_after: float | None) -> float:
    if retry_after is not None:
        return retry_after
    return min(LONGEST_PAUSE, 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, not a secret
