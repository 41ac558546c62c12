"""What is shown of turns while they run: the answers being written, in order with the posts of the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import structlog

from adapters.shared.background_tasks import BackgroundTasks, drained, now
from adapters.shared.caches import Newest, Refusals
from adapters.shared.calls import CallFailed
from adapters.shared.sending import SAID, DraftPace, GrowingText, message_id_of
from adapters.teams.connector.client import AT_ONCE, BotConnector
from adapters.teams.ids import PLATFORM, Activity, TeamsLocation, location_of
from adapters.teams.outbound.streams import LIVES, TeamsStream, status_line
from adapters.teams.render.markdown import streamable
from adapters.teams.render.posts import Audience, activities
from bot.domain import Clock, ConversationReference, Post, Said, system_clock
from bot.events import happens
from graph.ports import TaskState

log = structlog.get_logger(__name__)
AT_LEAST_SILENT = 30.0
"""Seconds without typing after Teams did not take it."""
MOST_REMEMBERED = 1_000
"""Answers whose drafts are kept in mind; far more than are ever written at once."""
CLOSING = 5.0
"""Seconds that ending the open drafts may take when the process ends, and taking away what was ended before."""


@dataclass(frozen=True, slots=True)
class TeamsPace(DraftPace):
    """Seconds between what is shown."""

    chunk: float = 1.2
    """Between two updates of a stream (Teams: one a second)."""
    typing: float = 3.0
    """Between two signs of typing: clients show one for a few seconds."""
    longest_stream: float = 100.0
    """After which a stream is ended, before Teams does it (2 minutes)."""
    longest_turn: float = 900.0
    """After which a turn shows nothing more."""


@dataclass(slots=True, eq=False)
class AnswerDraft:
    """An answer in the making."""

    text: GrowingText = field(default_factory=GrowingText)
    is_complete: bool = False
    """The model has gone on to something else."""
    is_over: bool = False
    """Whether its post is being shown, or nothing more of the draft can be shown before."""
    stream: TeamsStream | None = None
    shown_as: Activity | None = None
    """The message that its stream has become, ahead of the post."""


# --------------------------------------------------------------------------------------- one delivery
# Shown late enough that a short answer never flickers, and never after its post. In 1:1 chats the text is shown as
# it is written, elsewhere that the bot is typing.


@dataclass(slots=True, eq=False)
class ConversationLock:
    """One conversation: whoever writes there holds the lock, and at most one stream is open (Teams)."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    stream: TeamsStream | None = None
    owner: TeamsLiveAnswer | None = None
    """The answer that uses the stream; a chat can have several threads."""
    users: int = 0


class TeamsLiveAnswer:
    """`graph.ports.Live` for one delivery. Each verb only takes note; one task does the rest."""

    def __init__(self, drafts: TeamsDrafts, thread_id: str, place: ConversationReference) -> None:
        self.thread_id = thread_id
        self.location = location_of(place)
        self._drafts = drafts
        self._pace = drafts.pace
        self._place = place
        self._answers: dict[str, AnswerDraft] = {}
        """Drafts by the ids of the messages that the model writes."""
        self._status = ""
        self._is_busy = False
        self._type_at = 0.0
        self._can_stream = self.location.kind == "personal"
        self._rested = asyncio.Event()
        self._closing = asyncio.Event()
        self._has_begun = False

    # ------------------------------------------------------------------------------------------- told by the turn

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        answer = self._answers.get(message_id)
        if answer is None:  # a new message: the one before it is complete
            self._complete_all()
            answer = self._answers[message_id] = self._drafts.begin(message_id)
        answer.text.add(delta)
        self._work()

    def status(self, text: str) -> None:
        """What the bot is doing; empty: nothing that has a name."""
        if text:
            self._status = status_line(text)
            self._work()

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """Shows a tool call and its state; the messages before it are complete."""
        self._complete_all()
        if state == "running":
            self._status = self._status or status_line(title)
            self._work()

    def end(self, *, waiting: bool) -> None:
        """Nothing more comes. Posts finish what was said, soon mostly; what they do not finish vanishes."""
        self._rested.set()

    def leave(self) -> None:
        """Another process goes on. It cannot know of a stream that is open here, beside which it may open none: that
        vanishes, too."""
        self._closing.set()
        self._rested.set()

    # ------------------------------------------------------------------------------------------- told by the outbox

    def posted(self) -> None:
        """A post is being shown in the thread: until the turn says something new, there is nothing more to show."""
        self._is_busy = False
        self._status = ""

    def close(self) -> None:
        """The process ends."""
        self._closing.set()
        self._rested.set()

    # ------------------------------------------------------------------------------------------- done by the task

    def _work(self) -> None:
        self._is_busy = True
        if not self._has_begun and not self._rested.is_set() and self.location.conversation:
            self._has_begun = True
            self._drafts.start(self)

    def _complete_all(self) -> None:
        for answer in self._answers.values():
            answer.is_complete = True

    async def show(self, line: ConversationLock) -> None:
        """Show the turn until it is at rest and what it has begun is ended."""
        until = now() + self._pace.longest_turn
        await happens(self._rested, self._pace.before)
        while not self._rested.is_set() and now() < until:
            async with line.lock:
                pause = 0.0 if self._rested.is_set() else await self._step(line)
            await happens(self._rested, pause)
        if self._is_mine(line) or self._left_behind():
            await happens(self._closing, self._pace.grace)
            async with line.lock:
                await self._wind_up(line)

    async def _step(self, line: ConversationLock) -> float:
        """Show what is new; seconds until the next time."""
        if line.stream is not None and not line.stream.is_open:
            line.stream = None
        refused = self._drafts.unstreamed.hold(self.location.conversation)
        if not self._can_stream or refused or not self._is_free(line):
            await self._type()
            return self._pace.chunk
        try:
            await self._stream(line)
        except CallFailed as failure:
            self._take_note(line, failure)
            return max(self._pace.chunk, failure.retry_after or 0.0)
        return self._pace.chunk

    async def _stream(self, line: ConversationLock) -> None:
        """One update at most. Raises `CallFailed`."""
        message_id, answer = next(((i, a) for i, a in self._answers.items() if not a.is_over), ("", None))
        shown = streamable(str(answer.text)) if answer is not None else ""
        if line.stream is not None and line.stream.age >= self._pace.longest_stream:
            await self._give_up(line)
        elif answer is not None and answer.is_complete:
            await self._finish(line, message_id, answer)
        elif answer is not None and shown.strip():
            stream = answer.stream = self._stream_of(line)
            if len(shown) > len(stream.text) and shown.startswith(stream.text):
                await stream.write(shown)
        elif self._is_busy and self._status and (line.stream is None or not line.stream.text):
            stream = self._stream_of(line)
            if stream.status != self._status:
                await stream.inform(self._status)

    def _stream_of(self, line: ConversationLock) -> TeamsStream:
        """The stream of the conversation, perhaps one that has yet to begin."""
        if line.stream is None:
            line.stream = TeamsStream(self._drafts.connector, self.location)
            line.owner = self
        return line.stream

    async def _finish(self, line: ConversationLock, message_id: str, answer: AnswerDraft) -> None:
        """The answer is whole, though its post comes only when the turn rests: what comes next has to stand below."""
        text = str(answer.text)
        if not text.strip():
            answer.is_over = True
            return
        post = Post(f"{SAID}{message_id}", self.thread_id, self._place, 0, 0.0, Said(text, final=False))
        whole = activities(post, Audience("personal"))[0]
        stream = answer.stream = self._stream_of(line)
        if not stream.is_open:
            await stream.write(str(whole["text"]))  # and ended the next time: two calls, since Teams wants a beginning
            return
        if await stream.become(whole):
            answer.shown_as = whole
        answer.is_over, line.stream = True, None

    async def _give_up(self, line: ConversationLock) -> None:
        """Ends a stream that takes too long: nothing more is shown until the post, which replaces what there is."""
        self._can_stream = False
        stream, line.stream = line.stream, None
        if stream is not None and stream.text:
            await stream.become({"type": "message", "text": stream.text, "textFormat": "markdown"})
        elif stream is not None:
            await stream.vanish()

    def _take_note(self, line: ConversationLock, failure: CallFailed) -> None:
        """Go on, or show nothing more of this turn."""
        stream = line.stream
        if stream is None or stream.is_open or not (failure.permanent or stream.lost):
            return
        where = self.location
        log.info("teams_stream_died", tenant=where.tenant, error=failure.error, begun=bool(stream.id))
        self._can_stream, line.stream = False, None
        if not stream.id:
            self._drafts.unstreamed.remember(where.conversation)

    async def _type(self) -> None:
        """Say that the bot is typing, if it is time to."""
        if not self._is_busy or now() < self._type_at:
            return
        self._type_at = now() + self._pace.typing
        try:
            await self._drafts.connector.send(self.location, {"type": "typing"}, patience=AT_ONCE)
        except CallFailed as failure:
            self._type_at = now() + max(AT_LEAST_SILENT, failure.retry_after or 0.0)

    async def _wind_up(self, line: ConversationLock) -> None:
        """The turn is at rest. What no post has finished does not stay: it is in no record."""
        for answer in self._left_behind():
            stream, answer.stream = answer.stream, None
            if stream is not None:
                await stream.vanish()
            if stream is line.stream:
                line.stream = None
        if line.stream is not None and self._is_mine(line) and not line.stream.text:
            stream, line.stream = line.stream, None
            await stream.vanish()

    def _left_behind(self) -> list[AnswerDraft]:
        """The answers that show something, and whose posts have not come."""
        return [a for a in self._answers.values() if a.stream is not None and not a.is_over]

    def _is_free(self, line: ConversationLock) -> bool:
        """Whether this turn may stream there: nobody else does, and no post is about to end its own stream."""
        is_awaited = any(a.is_over and a.stream is line.stream for a in self._answers.values())
        return line.stream is None or (self._is_mine(line) and not is_awaited)

    def _is_mine(self, line: ConversationLock) -> bool:
        return line.stream is not None and line.owner is self


# ------------------------------------------------------------------------------------- all deliveries
# One line per conversation, in which posts and drafts alternate.


class TeamsDrafts:
    """The drafts of all conversations."""

    def __init__(self, connector: BotConnector, *, clock: Clock = system_clock, pace: TeamsPace | None = None) -> None:
        self.connector = connector
        self.pace = pace or TeamsPace()
        # Teams says the same where a stream of ours is still open, which it is for as long at most.
        self.unstreamed: Refusals[str] = Refusals(clock, memory=LIVES)
        """Conversations in which streams were refused."""
        self._lines: dict[str, ConversationLock] = {}
        self._answers: Newest[str, AnswerDraft] = Newest(MOST_REMEMBERED)
        """Drafts by the ids of the messages that the model writes, until their posts are shown."""
        self._working: dict[asyncio.Task[None], TeamsLiveAnswer] = {}
        self._sweeps = BackgroundTasks(PLATFORM)
        self._closed = False

    def live(self, thread_id: str, place: ConversationReference, reader: str) -> TeamsLiveAnswer:
        """`graph.ports.Live` for what one delivery does in a thread. `reader` makes no difference: everybody in the
        conversation sees it."""
        return TeamsLiveAnswer(self, thread_id, place)

    # ------------------------------------------------------------------------------------------- for the outbox

    @asynccontextmanager
    async def posting(self, location: TeamsLocation) -> AsyncIterator[None]:
        """While a post is being shown there, nothing else is."""
        with self._line(location) as line:
            async with line.lock:
                yield

    async def show(self, post: Post, location: TeamsLocation, activity: Activity) -> str:
        """While `posting`: turn what was shown of a post, or of its turn so far, into the post's first message; its
        id. Empty: there is nothing, and it has to be posted. Raises `CallFailed`."""
        for live in self._working.values():
            if (live.thread_id, live.location.conversation) == (post.thread_id, location.conversation):
                live.posted()
        line = self._lines[location.conversation]
        answer = self._answers.get(message_id_of(post))
        if answer is not None:
            answer.is_over = True
        stream = _status_of(line, post) if answer is None or answer.stream is None else answer.stream
        if stream is None:
            return ""
        stays = (answer is not None and answer.shown_as == activity) or await stream.become(activity)
        if line.stream is stream:
            line.stream = None
        if answer is not None:
            answer.stream = stream if stays else None
        return stream.id if stays else ""

    def shown(self, post: Post) -> None:
        """The post is shown: its draft is not needed any more."""
        self._answers.pop(message_id_of(post), None)

    async def close(self) -> None:
        """Take away what no post has finished, which will be posted at the next start, and show nothing any more."""
        self._closed = True
        for live in self._working.values():
            live.close()
        await drained(self._working, CLOSING)
        for answer in self._answers.values():
            self._sweep(answer)
        await self._sweeps.drain(CLOSING)

    # ------------------------------------------------------------------------------------------- for the turns

    def begin(self, message_id: str) -> AnswerDraft:
        """Returns the draft of an answer. That of a try at the same answer that failed is taken away."""
        earlier = self._answers.get(message_id)
        if earlier is not None:
            self._sweep(earlier)
        answer = self._answers[message_id] = AnswerDraft()
        return answer

    def start(self, live: TeamsLiveAnswer) -> None:
        """Show what happens in a delivery, now that there is something to show."""
        if self._closed:
            live.close()
        task = asyncio.create_task(self._in_line(live), name="teams draft")
        self._working[task] = live
        task.add_done_callback(lambda done: self._working.pop(done, None))

    async def _in_line(self, live: TeamsLiveAnswer) -> None:
        with self._line(live.location) as line:
            try:
                await live.show(line)
            except Exception:
                # A defect of ours: drafts are an extra, and the turn knows nothing of them.
                log.exception("teams_draft_defect")

    def _sweep(self, answer: AnswerDraft) -> None:
        if answer.stream is not None:
            self._sweeps.start(answer.stream.vanish(), "draft swept")

    @contextmanager
    def _line(self, location: TeamsLocation) -> Iterator[ConversationLock]:
        """The line of a conversation, kept while somebody uses it or its stream is open."""
        line = self._lines.setdefault(location.conversation, ConversationLock())
        line.users += 1
        try:
            yield line
        finally:
            line.users -= 1
            if not line.users and (line.stream is None or not line.stream.is_open):
                self._lines.pop(location.conversation, None)


def _status_of(line: ConversationLock, post: Post) -> TeamsStream | None:
    """The stream that says what the post's own turn is doing, and nothing else yet."""
    stream, owner = line.stream, line.owner
    is_its_own = stream is not None and owner is not None and owner.thread_id == post.thread_id
    return stream if is_its_own and stream is not None and stream.is_open and not stream.text else None
