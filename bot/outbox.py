"""The outbox: what the bot says is kept first, then sent, then updated in place. At least once, in order within a lane.

A lane is the thread that a post belongs to, or the place where else it is shown.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol

import structlog

from bot.card_masks import PLAIN, masked_post
from bot.domain import Clock, Content, ConversationReference, Notice, PlanView
from bot.platform import Platform, PostFailed, Reference
from bot.records import posts
from bot.records.claims import Overtaken, place_of
from bot.records.database import Database, Transaction, is_outage
from bot.records.posts import NewPost, PostRow
from bot.repeated_failures import RepeatedFailure
from bot.rounds import ANSWER_FIRST, after_rounds
from bot.task_threads import conversation_of, is_task_thread
from bot.views import post_of
from graph.citations import as_kept
from graph.observing import NOBODY, Observer, PostShown
from graph.ports import Spoken
from policies.masking import Masker
from translations import in_shared_language

log = structlog.get_logger(__name__)
MOST_POST_TRIES = 200
"""Tries of a post before it is given up, over about two and a half hours: platforms have such outages, and posts
are made at least once (rule 1 in docs/architecture.md)."""
MOST_DEFECTS = 8
"""Tries of a post that raises something unexpected here or in its adapter (about two minutes), before it is given
up for those after it."""
LONGEST_POST_PAUSE_SECONDS = 60.0
"""Seconds between two tries at most, unless the platform asks for more."""
LONGEST_RETRY_AFTER = 600.0
"""Seconds that a platform may ask to wait before the next try."""
MODEL_FIRST = 0.005
"""Seconds that the card of a call that has ended waits for the model's request, on which everything else waits."""
OUTCOME_FIRST = 0.25
"""Seconds that a card does not say that a call has begun: most have ended by then, and one update shows what two
would have."""
MARKED_AFTER = 0.05
"""Seconds after which updates that are shown are marked as sent, all that there were in one transaction."""
MOST_LINES_UPDATED = 20
"""Lines of changes that lose their button when the standing approval under which they were made is revoked: the button
of an older one says that it has ended."""
_SAID = "said:"
Pause = Callable[[int, float | None], float]
"""Seconds before the next try, from the number of the last (0, 1, …) and what the platform asked for."""
GivenUp = Callable[[Transaction, PostRow], Awaitable[None]]
"""Is told of a post that cannot be shown."""


def notice(
    key: str, thread_id: str, text: Notice, *, only_for: str | None = None, place: ConversationReference | None = None
) -> NewPost:
    """Returns a sentence of the bot's own.

    Args:
        key: under which it is kept, once.
        only_for: the person id of the only one who sees it.
        place: where it is shown instead of its thread.
    """
    content = {"text": text.text, "tone": text.tone}
    return NewPost(key, thread_id, "notice", content=content, only_for=only_for, place=place)


def said(thread_id: str, spoken: Spoken) -> NewPost:
    """Returns what the model said, to be kept once. Of an answer that calls may have been made for, with the key of the
    delivery whose turn it is."""
    turn, _, step = spoken.message_id.rpartition(".")  # `graph.calls.own_ids`; calls are made after the first step
    of_turn = {"turn": turn} if spoken.final and step != "0" else {}
    of_agent = {"agent": spoken.agent} if spoken.agent else {}
    citing = {"sources": as_kept(spoken.sources)} if spoken.sources else {}
    content = {"text": spoken.text, "final": spoken.final, **of_turn, **of_agent, **citing}
    return NewPost(f"{_SAID}{spoken.message_id}", thread_id, "said", content=content)


def message_of(post_id: str) -> str:
    """Returns the id of the model's message that a post of what it said shows."""
    return post_id.removeprefix(_SAID)


class LanesHere(Protocol):
    """Which lanes this process sends, where several could."""

    def context_of(self, lane: str) -> Context | None:
        """Within which a lane is sent; `None`: this process does not send it."""
        ...

    async def check(self) -> None:
        """Raises `Overtaken` when another process sends the lane of this task now."""
        ...

    def lane_ended(self, lane: str) -> None:
        """Nothing in the lane is being sent any more."""
        ...


class Outbox:
    """Keeps posts in the caller's transaction and sends them once it is committed.

    Args:
        platforms: by the name that begins their places' keys.
        pause: seconds between two tries; `pause_between` when none is given.
        lanes_here: which lanes are sent by this process; all of them when this is not given.
        observer: is told of each post that is shown, or given up.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        platforms: Mapping[str, Platform],
        *,
        pause: Pause | None = None,
        masker: Masker = PLAIN,
        lanes_here: LanesHere | None = None,
        observer: Observer = NOBODY,
    ) -> None:
        self._observer = observer
        self._database = database
        self._clock = clock
        self._platforms = platforms
        self._pause = pause or pause_between
        self._masker = masker
        self._lanes_here = lanes_here
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._left_over: set[str] = set()
        self._shown: dict[str, PostRow] = {}
        """Post → what of it is shown and not marked as sent yet."""
        self._marking: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        """Lane → when it is woken at the latest."""
        self._stopping = False
        self._given_up: GivenUp | None = None
        self._outage = RepeatedFailure("posts_not_sent")

    def when_given_up(self, told: GivenUp) -> None:
        """From now on `told` is told of each post that cannot be shown, in the transaction that notes it."""
        self._given_up = told

    async def say(self, tx: Transaction, post: NewPost) -> bool:
        """Keeps a post, to be sent. Returns False when its key was kept before: nothing changes then.

        What is asked in the thread of a task is shown in the conversation that it belongs to. What its agent says is
        not: it is the result of the task.
        """
        if is_task_thread(post.thread_id):
            if post.kind == "said":
                return False
            post = replace(post, thread_id=conversation_of(post.thread_id))
        is_new = await posts.add(tx, post, self._clock())
        if is_new:
            tx.afterwards(lambda: self._wake(post.lane))
        return is_new

    async def show_again(self, tx: Transaction, subjects: Sequence[str], *, within: float = 0.0) -> None:
        """Sends the cards of these approvals, questions, sign-ins or attempts again: what they show has changed.

        Args:
            within: seconds that this may wait for what is more urgent, and be overtaken by what is newer.
        """
        self._show_again(tx, await posts.touch(tx, subjects) if subjects else (), within)

    async def show_revoked(self, tx: Transaction, grant_id: str) -> None:
        """Sends the newest lines of changes under a standing approval again: it can be revoked no more."""
        self._show_again(tx, await posts.touch_under(tx, grant_id, MOST_LINES_UPDATED), 0.0)

    async def show_decided(self, tx: Transaction, subject: str) -> None:
        """Sends the cards of an approval again that somebody has decided about, once they have their answer."""
        for lane in dict.fromkeys(await posts.touch(tx, [subject])):
            tx.afterwards(partial(after_rounds, ANSWER_FIRST, partial(self._wake, lane)))

    async def show_call_again(self, tx: Transaction, call_id: str, *, within: float = 0.0) -> None:
        """Sends the cards of all approvals of a call again; `within` as for `show_again`."""
        self._show_again(tx, await posts.touch_of_call(tx, call_id), within)

    def _show_again(self, tx: Transaction, lanes: Sequence[str], within: float) -> None:
        for lane in dict.fromkeys(lanes):
            if self._waits_less(lane, within):
                self._wake(lane)  # it is shown as it was before, while this transaction is put to disk
            tx.afterwards(partial(self._wake_within, lane, within))

    async def start(self) -> None:
        """Sends what was kept before a crash; what may have been sent already is looked for first. Where several
        processes could send it, nothing is sent before they have agreed who does (`send`)."""
        if self._lanes_here is not None:
            return
        async with self._database.reading() as tx:
            left = await posts.lanes_with_unsent(tx)
        self._left_over.update(left)
        for lane in left:
            self._wake(lane)

    def send(self, lanes: Iterable[str], *, left_over: bool) -> None:
        """Sends what is unsent in these lanes. `left_over`: it may have been sent already, so it is looked for."""
        for lane in lanes:
            if left_over and lane not in self._senders:
                self._left_over.add(lane)
            self._wake(lane)

    def is_sending(self, place: str) -> bool:
        """Whether anything is being sent in the lanes of a place, or is going to be."""
        return any(place_of(lane) == place for lane in (*self._senders, *self._waiting))

    async def break_off(self, place: str) -> None:
        """Sends nothing more in the lanes of a place; what is being sent there may arrive nevertheless."""
        for lane in [each for each in self._waiting if place_of(each) == place]:
            self._waiting.pop(lane).cancel()
        senders = [sender for lane, sender in self._senders.items() if place_of(lane) == place]
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)

    async def stop(self, seconds: float) -> None:
        """Gives what is being sent `seconds` to arrive; the rest is sent at the next start."""
        self._stopping = True
        senders = list(self._senders.values())
        if senders:
            _, late = await asyncio.wait(senders, timeout=seconds)
            for sender in late:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
        if self._marking is not None:
            self._marking.cancel()
            await asyncio.gather(self._marking, return_exceptions=True)
            if self._shown:
                await self._mark_shown()

    def _waits_less(self, lane: str, seconds: float) -> bool:
        """Whether a lane waits, and is woken within these seconds."""
        waiting = self._waiting.get(lane)
        return waiting is not None and waiting.when() <= asyncio.get_running_loop().time() + seconds

    def _wake_within(self, lane: str, seconds: float) -> None:
        if not seconds:
            self._wake(lane)
        elif not self._waits_less(lane, seconds):
            if lane in self._waiting:
                self._waiting[lane].cancel()
            self._waiting[lane] = asyncio.get_running_loop().call_later(seconds, self._wake, lane)

    def _wake(self, lane: str) -> None:
        waiting = self._waiting.pop(lane, None)
        if waiting is not None:
            waiting.cancel()
        if lane in self._senders:
            self._again.add(lane)
        elif not self._stopping:
            context = None
            if self._lanes_here is not None:
                context = self._lanes_here.context_of(lane)
                if context is None:
                    return
            with in_shared_language():  # somebody's click may have led here
                self._senders[lane] = asyncio.create_task(self._send_lane(lane), name=f"posts {lane}", context=context)

    async def _send_lane(self, lane: str) -> None:
        try:
            self._again.add(lane)
            while lane in self._again:
                self._again.discard(lane)
                try:
                    await self._send_unsent(lane)
                    self._outage.worked()
                except Overtaken:
                    log.debug("place_overtaken", lane=lane)
                    return
                except Exception as error:
                    # Only the database can fail here. What could not be noted may have been shown nevertheless.
                    if is_outage(error):
                        self._outage.failed(error, with_traceback=True, lane=lane)
                    else:
                        log.exception("posts_not_sent", lane=lane)
                    self._left_over.add(lane)
                    self._again.add(lane)
                    await asyncio.sleep(self._pause(0, None))
        finally:
            del self._senders[lane]
            if self._lanes_here is not None:
                self._again.discard(lane)
                self._left_over.discard(lane)
                self._lanes_here.lane_ended(lane)

    async def _send_unsent(self, lane: str) -> None:
        """Sends everything that is unsent now; what is kept meanwhile wakes its lane again."""
        async with self._database.reading() as tx:
            unsent = [each for each in await posts.unsent(tx, lane) if not self._is_shown(each[0])]
        for row, place in unsent:
            if place is not None:
                await self._show(row, place)
        self._left_over.discard(lane)

    async def _show(self, row: PostRow, place: ConversationReference) -> None:
        """Tries until it is shown, or certainly cannot be."""
        may_be_there, defects, cause, began, attempt = row.lane in self._left_over, 0, "", self._clock(), 0
        for attempt in range(MOST_POST_TRIES):
            try:
                reference, call_id = await self._show_once(row, place, may_be_there=may_be_there)
            except PostFailed as failure:
                cause, retry_after = str(failure), failure.retry_after
                if failure.permanent:
                    break
            except Overtaken:
                raise
            except Exception as defect:
                if is_outage(defect):
                    raise  # it is no fault of the post, and is over as soon as the records can be used
                # A defect of ours or of the adapter must not silence the thread for good.
                log.exception("post_defect", post=row.key, thread_id=row.thread_id)
                cause, retry_after, defects = type(defect).__name__, None, defects + 1
                if defects == MOST_DEFECTS:
                    break
            else:
                outcome: Literal["sent", "updated"] = "sent" if row.reference is None else "updated"
                self._note(row, place, began, outcome=outcome, tries=attempt + 1, call_id=call_id)
                if reference == row.reference and self._lanes_here is None:
                    self._mark_later(row)
                    return
                async with self._database.writing_apart(row.lane, row.thread_id) as tx:
                    await posts.sent(tx, row.key, row.revision, reference, before=row.reference)
                return
            may_be_there = True
            await asyncio.sleep(self._pause(attempt, retry_after))
            if await self._is_given_up(row):
                return
        self._note(row, place, began, outcome="given up", tries=attempt + 1)
        await self._give_up(row, cause)

    def _note(
        self,
        row: PostRow,
        place: ConversationReference,
        began: float,
        *,
        outcome: Literal["sent", "updated", "given up"],
        tries: int,
        call_id: str = "",
    ) -> None:
        seconds = max(self._clock() - began, 0.0)
        shown = PostShown(row.key, row.kind, row.thread_id, place.platform, call_id, outcome, tries, began, seconds)
        self._observer.note(shown)

    async def _show_once(
        self, row: PostRow, place: ConversationReference, *, may_be_there: bool
    ) -> tuple[Reference, str]:
        """Shows it as it is now, in place of what it showed before. Returns where it is, and the id of the call that it
        is about. Raises `PostFailed`."""
        platform = self._platforms.get(place.platform)
        if platform is None:
            raise PostFailed(f"platform {place.platform} is not connected", permanent=True)
        async with self._database.reading() as tx:
            post = await post_of(tx, row, place, self._clock())
        if post is None:
            raise PostFailed("its subject is gone", permanent=True)
        post = await masked_post(post, self._masker)
        reference = row.reference
        if reference is None and may_be_there:
            reference = await platform.find(post)
        if self._lanes_here is not None:
            await self._lanes_here.check()
        shown_at = await platform.send(post) if reference is None else await platform.update(post, reference)
        return shown_at, _call_of(post.content)

    # Where a post is has to be on disk before anything else happens in its lane: it could not be found again. That an
    # update was shown need not be, since a second update shows the same. So what follows in the lane (the answer, after
    # the card of a click) does not wait for the disk, nor does a turn for a transaction that nobody waits for.

    def _is_shown(self, row: PostRow) -> bool:
        shown = self._shown.get(row.key)
        return shown is not None and row.revision <= shown.revision

    def _mark_later(self, row: PostRow) -> None:
        self._shown[row.key] = row
        if self._marking is None or self._marking.done():
            self._marking = asyncio.create_task(self._mark_all(), name="shown posts")

    async def _mark_all(self) -> None:
        while self._shown:
            await asyncio.sleep(MARKED_AFTER)
            await self._mark_shown()

    async def _mark_shown(self) -> None:
        shown = list(self._shown.values())
        try:
            async with self._database.writing_apart(*{row.thread_id for row in shown}) as tx:
                for row in shown:
                    await posts.sent(tx, row.key, row.revision, row.reference or {}, before=row.reference)
        except Exception:
            # Only the database can fail here. What is not marked when the process ends is shown once more.
            log.exception("posts_not_marked")
            await asyncio.sleep(self._pause(0, None))
            return
        for row in shown:
            if self._shown[row.key] is row:
                del self._shown[row.key]

    async def _is_given_up(self, row: PostRow) -> bool:
        """Whether the bot was removed from there between two tries."""
        async with self._database.reading() as tx:
            now = await posts.get(tx, row.key)
        return now is None or now.sent_revision >= row.revision

    async def _give_up(self, row: PostRow, cause: str) -> None:
        log.error("post_given_up", post=row.key, thread_id=row.thread_id, cause=cause)
        async with self._database.writing(row.thread_id, row.lane) as tx:
            await posts.failed(tx, row.key, cause)
            await posts.passed_over(tx, row.key, row.revision)
            if self._given_up is not None:
                await self._given_up(tx, row)


def _call_of(content: Content) -> str:
    """Id of the call that is shown; empty: none is."""
    return content.plan_id if isinstance(content, PlanView) else getattr(content, "call_id", "")


def pause_between(attempt: int, retry_after: float | None) -> float:
    """Returns the seconds before the next try: what the platform asks for, else ever more, with jitter."""
    if retry_after is not None:
        return min(max(retry_after, 0.0), LONGEST_RETRY_AFTER)
    return min(LONGEST_POST_PAUSE_SECONDS, 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, not a secret
