"""What the processes that serve the page tell each other, where several do.

A browser's event stream may be served by another process than the one that handles the thread. Only keys are told:
whoever hears one reads the records, and renders what is there for its own readers. What an answer says while it is
written is no record. Who handles a thread keeps it where others can read it, and only while one of them has said, not
long ago, that it has readers of that thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import structlog

from adapters.shared.live.board import LiveBoard
from adapters.shared.live.entries import message_json, post_json
from adapters.shared.live.hub import Hub
from bot.domain import MessageView, Post
from bot.platform import PostFailed
from bot.queries import Queries
from bot.records.database import is_outage
from bot.repeated_failures import RepeatedFailure

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.live_answers import LiveAnswers
    from bot.records.notifications import Notifications

log = structlog.get_logger(__name__)
CHANNEL = "countersign_page"
SESSION_SECONDS = 2.0
"""Seconds that somebody who signs out waits until the others are told."""
TELL_SECONDS = 5.0
"""Seconds that a post waits until the others are told of it, before it is sent again."""
BETWEEN_WRITES = 0.1
"""Seconds between two writes of what is happening here in threads that others have readers of."""
RENEW_SECONDS = 2.0
"""Seconds between two writes of what does not change, and between two looks at what was written elsewhere."""
TELL_READERS_SECONDS = 5.0
"""Seconds between two times that the others are told which threads have readers here."""
READERS_SECONDS = 3 * TELL_READERS_SECONDS
"""Seconds after which a thread whose readers nobody has told of has none elsewhere."""
THREADS_AT_ONCE = 60
"""Threads that one key names; their ids have up to 84 characters."""
MOST_TO_READ = 1_000
"""Posts and messages that wait to be read; of more, all readers get everything anew."""
FORGET_SECONDS = 60.0
"""Seconds between two times that what dead processes left is forgotten."""
LOOK_SECONDS = 0.5
"""Seconds between two looks whether the records are away."""
PAUSE = 1.0
"""Seconds until what the records did not say is asked again."""


class OtherReplicas:
    """Tells the other processes what their readers have to show, and shows the readers here what others tell."""

    def __init__(self, hub: Hub, board: LiveBoard, notifications: Notifications, answers: LiveAnswers) -> None:
        self._hub = hub
        self._board = board
        self._notifications = notifications
        self._answers = answers
        self._queries: Queries | None = None
        self._is_ready: Callable[[], bool] = lambda: False
        self._was_ready = False
        self._tasks: list[asyncio.Task[None]] = []
        self._readers_elsewhere: dict[str, float] = {}
        """Thread → until when it is taken to have readers in another process."""
        self._to_write: set[str] = set()
        self._written: dict[str, int] = {}
        """Thread → epoch of the claim under which something is kept of it."""
        self._something_to_write = asyncio.Event()
        self._posts_to_read: dict[tuple[str, str, str], str | None] = {}
        """What has to be read, in order: kind, thread and key; and the draft that it ends."""
        self._something_to_show = asyncio.Event()
        self._live_to_read: set[str] = set()
        """Threads of which something was told."""
        self._live_to_check: set[str] = set()
        """Threads of which nothing may have been told for some time."""
        self._something_live = asyncio.Event()

    async def start(self, queries: Queries, is_ready: Callable[[], bool]) -> None:
        """Begin to hear others; before the notifications are started.

        Args:
            is_ready: whether this process takes work. Once it does, it always does while the records answer.
        """
        self._queries, self._is_ready = queries, is_ready
        self._notifications.subscribe(CHANNEL, self._was_told, self._missed_some)
        self._hub.opened = self._has_reader
        self._board.changed = self._has_changed
        loops = (
            self._write_changes,
            self._renew,
            self._tell_readers,
            self._show_told,
            self._show_live,
            self._forget,
            self._send_away,
        )
        self._tasks = [asyncio.create_task(self._going_on(loop), name=f"page {loop.__name__}") for loop in loops]

    async def stop(self) -> None:
        """Hear nothing more. What was kept of threads here is forgotten."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._written:
            ended, self._written = self._written, {}
            try:
                async with asyncio.timeout(PAUSE):
                    await self._answers.write({}, ended)
            except Exception as error:  # noqa: BLE001  # whoever reads it sees that it is not renewed
                log.warning("live_answers_left", cause=type(error).__name__)
            self._tell_live([*ended])

    # ------------------------------------------------------------------------------------------- telling

    async def post(self, post: Post, ended_draft: str | None) -> None:
        """There is a post, or it shows something else. Raises `PostFailed`."""
        key = self._key("post", post.thread_id, post.post_id, ended_draft)
        if not await self._notifications.tell_now(CHANNEL, key, TELL_SECONDS):
            raise PostFailed("the processes that serve the page were not told of it")

    def message(self, thread_id: str, view: MessageView) -> None:
        """Somebody has written something."""
        self._tell("message", thread_id, view.key)

    def changed(self, thread_id: str) -> None:
        """A conversation is called something else, or was deleted."""
        self._tell("thread", thread_id)

    async def session_ended(self, session_id: str) -> None:
        """A browser's session has ended, or is somebody else's now. Returns when the others are told, or cannot be for
        the moment: then they are later, or find that they may have missed something."""
        await self._notifications.tell_now(CHANNEL, self._key("session", session_id), SESSION_SECONDS)

    def _tell(self, kind: str, *parts: Any) -> None:
        self._notifications.tell(CHANNEL, self._key(kind, *parts))

    def _key(self, kind: str, *parts: Any) -> str:
        return json.dumps([self._notifications.name, kind, *parts])

    # ------------------------------------------------------------------------------------------- hearing

    def _was_told(self, key: str) -> None:
        match json.loads(key):
            case [self._notifications.name, *_]:
                pass
            case [_, "post", str(thread_id), str(post_id), ended_draft]:
                if ended_draft is not None:
                    self._board.forget_draft(thread_id, ended_draft)
                self._has_to_read("post", thread_id, post_id, ended_draft)
            case [_, "message", str(thread_id), str(message_key)]:
                self._has_to_read("message", thread_id, message_key, None)
            case [_, "thread", str(thread_id)]:
                self._hub.show_anew(thread_id)
                self._hub.threads_changed()
            case [_, "session", str(session_id)]:
                self._hub.end_session(session_id)
            case [_, "live", [*thread_ids]]:
                self._live_to_read.update(each for each in thread_ids if self._hub.has_readers(each))
                self._something_live.set()
            case [_, "readers", [*thread_ids]]:
                self._has_readers_elsewhere(thread_ids)
            case [_, "who reads"]:
                self._tell_readers_of(self._hub.threads_read())
            case _:
                log.debug("page_key_unknown")  # of a newer version

    def _missed_some(self) -> None:
        self._posts_to_read.clear()
        # A browser may be nobody's now, or somebody else's, which only its own next request says: pages come back at
        # once, and are shown everything.
        self._hub.end_all()
        self._tell("who reads")

    def _has_to_read(self, kind: str, thread_id: str, key: str, ended_draft: str | None) -> None:
        self._hub.threads_changed()
        if not self._hub.has_readers(thread_id):
            return
        if len(self._posts_to_read) >= MOST_TO_READ:
            self._posts_to_read.clear()
            self._hub.end_all()
        of = kind, thread_id, key
        self._posts_to_read[of] = ended_draft or self._posts_to_read.get(of)
        self._something_to_show.set()

    async def _show_told(self) -> None:
        """One after the other, so that of one post nothing older is read after what is newer."""
        await self._something_to_show.wait()
        self._something_to_show.clear()
        while self._posts_to_read:
            (kind, thread_id, key), ended_draft = next(iter(self._posts_to_read.items()))
            del self._posts_to_read[kind, thread_id, key]
            if not self._hub.has_readers(thread_id):
                continue
            try:
                await (self._show_post if kind == "post" else self._show_message)(thread_id, key, ended_draft)
            except Exception:
                self._hub.show_anew(thread_id)  # which reads it once it can be read
                raise

    async def _show_post(self, thread_id: str, key: str, ended_draft: str | None) -> None:
        assert self._queries is not None  # noqa: S101  # since the start
        post = await self._queries.post(key)
        if post is not None and post.place.key == post.thread_id == thread_id:
            event = post_json(post) | {"ends_draft": ended_draft}
            self._hub.publish(thread_id, "post", event, only_for=post.only_for)

    async def _show_message(self, thread_id: str, key: str, _ended_draft: str | None) -> None:
        assert self._queries is not None  # noqa: S101  # since the start
        view = await self._queries.message(thread_id, key)
        if view is not None:
            self._hub.publish(thread_id, "message", message_json(view))

    # ------------------------------------------------------------------------------------------- who reads what

    def _has_reader(self, thread_id: str) -> None:
        self._tell_readers_of([thread_id])
        self._live_to_read.add(thread_id)
        self._something_live.set()

    def _tell_readers_of(self, thread_ids: Sequence[str]) -> None:
        for first in range(0, len(thread_ids), THREADS_AT_ONCE):
            self._tell("readers", thread_ids[first : first + THREADS_AT_ONCE])

    async def _tell_readers(self) -> None:
        await asyncio.sleep(TELL_READERS_SECONDS)
        self._tell_readers_of(self._hub.threads_read())
        now = monotonic()
        for thread_id in [each for each, until in self._readers_elsewhere.items() if until < now]:
            del self._readers_elsewhere[thread_id]

    def _has_readers_elsewhere(self, thread_ids: Sequence[str]) -> None:
        until = monotonic() + READERS_SECONDS
        for thread_id in thread_ids:
            if thread_id not in self._readers_elsewhere:
                self._readers_elsewhere[thread_id] = until
                self._has_changed(thread_id)
            self._readers_elsewhere[thread_id] = until

    # ------------------------------------------------------------------------- what is happening here

    def _has_changed(self, thread_id: str) -> None:
        if thread_id in self._readers_elsewhere or thread_id in self._written:
            self._to_write.add(thread_id)
            self._something_to_write.set()

    async def _write_changes(self) -> None:
        """All that has changed in one transaction: at once, and then no more often than every `BETWEEN_WRITES`."""
        await self._something_to_write.wait()
        self._something_to_write.clear()
        threads, self._to_write = self._to_write, set()
        happening = {
            thread_id: answer
            for thread_id in sorted(threads)
            if thread_id in self._readers_elsewhere and (answer := self._board.happening_here(thread_id)) is not None
        }
        ended = {each: self._written[each] for each in sorted(threads) if each in self._written.keys() - happening}
        if not happening and not ended:
            return
        try:
            await self._answers.write(happening, ended)
        except Exception:
            self._to_write |= threads
            raise
        for thread_id in ended:
            del self._written[thread_id]
        self._written |= {thread_id: answer.epoch for thread_id, answer in happening.items()}
        self._tell_live([*happening, *ended])
        await asyncio.sleep(BETWEEN_WRITES)

    def _tell_live(self, thread_ids: Sequence[str]) -> None:
        for first in range(0, len(thread_ids), THREADS_AT_ONCE):
            self._tell("live", thread_ids[first : first + THREADS_AT_ONCE])

    async def _renew(self) -> None:
        """Others take what is not renewed for a dead process's; so does this one with theirs."""
        await asyncio.sleep(RENEW_SECONDS)
        self._board.drop_overtaken()
        if self._written:
            self._to_write.update(self._written)
            self._something_to_write.set()
        self._live_to_check.update(self._board.threads_elsewhere)
        self._something_live.set()

    # ------------------------------------------------------------------------- what is happening elsewhere

    async def _show_live(self) -> None:
        await self._something_live.wait()
        self._something_live.clear()
        told, self._live_to_read = self._live_to_read, set()
        threads, self._live_to_check = told | self._live_to_check, set()
        read_here = sorted(each for each in threads if self._hub.has_readers(each))
        self._board.forget_elsewhere(threads.difference(read_here))
        if not read_here:
            return
        try:
            found = await self._answers.read(read_here)
        except Exception:
            self._live_to_read |= told
            raise
        for thread_id in read_here:
            if thread_id in found or thread_id in told:
                self._board.show_elsewhere(thread_id, found.get(thread_id))
            else:
                self._board.drop_elsewhere(thread_id)
            await asyncio.sleep(0)  # a long answer takes up to 40 ms to be made visible

    async def _forget(self) -> None:
        await self._answers.forget()
        await asyncio.sleep(FORGET_SECONDS)

    async def _send_away(self) -> None:
        """Pages that stayed while the records are away would show nothing of what others do, and not say so."""
        await asyncio.sleep(LOOK_SECONDS)
        was_ready, self._was_ready = self._was_ready, self._is_ready()
        if self._was_ready:
            self._hub.records_are_away = False
        elif was_ready:
            self._hub.lose_records()

    async def _going_on(self, once: Callable[[], Awaitable[None]]) -> None:
        failure = RepeatedFailure("page_not_shared")
        while True:
            try:
                await once()
                failure.worked()
            except Exception as error:  # noqa: BLE001  # the database fails in many ways, and may be back any time
                failure.failed(error, with_traceback=not is_outage(error), what=once.__name__)
                await asyncio.sleep(PAUSE)
                for event in (self._something_to_write, self._something_to_show, self._something_live):
                    event.set()
