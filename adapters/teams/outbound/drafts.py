"""What is shown of turns while they run: one line per conversation, in which posts and drafts take their turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager

import structlog

from adapters.teams.api import Activity, Connector
from adapters.teams.ids import TeamsLocation, location_of
from adapters.teams.outbound.manuscripts import Manuscript, Pace
from adapters.teams.outbound.refusals import Refusals
from adapters.teams.outbound.streams import LIVES, Stream
from adapters.teams.outbound.writing import Line, Setting, ThreadLive
from adapters.teams.render.posts import Audience, activities
from bot.clock import Clock, system_clock
from bot.domain import Place, Post, Said

log = structlog.get_logger(__name__)

MOST_REMEMBERED = 1_000
"""Answers whose drafts are kept in mind; far more than are ever written at once."""
_SAID = "said:"
CLOSING = 5.0
"""Seconds that ending the open drafts may take when the process ends, and taking away what was ended before."""


class Drafts:
    """The drafts of all conversations."""

    def __init__(self, connector: Connector, *, clock: Clock = system_clock, pace: Pace | None = None) -> None:
        self._connector = connector
        self._pace = pace or Pace()
        # Teams says the same where a stream of ours is still open, which it is for as long at most.
        self._unstreamed = Refusals(clock, memory=LIVES)
        self._lines: dict[str, Line] = {}
        self._answers: OrderedDict[str, Manuscript] = OrderedDict()
        """By the ids of the messages that the model writes, until their posts are shown."""
        self._working: dict[asyncio.Task[None], ThreadLive] = {}
        self._sweeps: set[asyncio.Task[None]] = set()
        self._closed = False

    def live(self, thread_id: str, place: Place, reader: str) -> ThreadLive:
        """`graph.ports.Live` for what one delivery does in a thread. `reader` makes no difference: everybody in the
        conversation sees it."""
        location = location_of(place)

        def draw(message_id: str, text: str) -> Activity:
            post = Post(f"{_SAID}{message_id}", thread_id, place, 0, 0.0, Said(text, final=False))
            return activities(post, Audience("personal"))[0]

        setting = Setting(
            self._connector, location, thread_id, self._pace, self._unstreamed, draw, self._begun, self._start
        )
        return ThreadLive(setting)

    # ------------------------------------------------------------------------------------------- for the outbox

    @asynccontextmanager
    async def posting(self, location: TeamsLocation) -> AsyncIterator[None]:
        """While a post is being shown there, nothing else is."""
        with self._line(location) as line:
            async with line.lock:
                yield

    async def show(self, post: Post, location: TeamsLocation, activity: Activity) -> str:
        """While `posting`: turn what was shown of a post, or of its turn so far, into the post's first message; its
        id. Empty: there is nothing, and it has to be posted. Raises `ConnectorFailed`."""
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
        await _ended(self._working)
        for answer in self._answers.values():
            self._sweep(answer)
        await _ended(self._sweeps)

    # ------------------------------------------------------------------------------------------- for the turns

    def _begun(self, answer: Manuscript) -> None:
        earlier = self._answers.pop(answer.message_id, None)
        if earlier is not None:
            self._sweep(earlier)  # of a try at the same answer that failed
        self._answers[answer.message_id] = answer
        while len(self._answers) > MOST_REMEMBERED:
            self._answers.popitem(last=False)

    def _start(self, live: ThreadLive) -> asyncio.Task[None]:
        if self._closed:
            live.close()
        task = asyncio.create_task(self._in_line(live), name="teams draft")
        self._working[task] = live
        task.add_done_callback(lambda done: self._working.pop(done, None))
        return task

    async def _in_line(self, live: ThreadLive) -> None:
        with self._line(live.location) as line:
            await _guarded(live.show(line))

    def _sweep(self, answer: Manuscript) -> None:
        if answer.stream is not None:
            task = asyncio.create_task(_guarded(answer.stream.vanish()), name="teams draft swept")
            self._sweeps.add(task)
            task.add_done_callback(self._sweeps.discard)

    @contextmanager
    def _line(self, location: TeamsLocation) -> Iterator[Line]:
        """The line of a conversation, kept while somebody uses it or its stream is open."""
        line = self._lines.setdefault(location.conversation, Line())
        line.users += 1
        try:
            yield line
        finally:
            line.users -= 1
            if not line.users and (line.stream is None or not line.stream.is_open):
                self._lines.pop(location.conversation, None)


def message_id_of(post: Post) -> str:
    """The id under which the model wrote what a post says; of other posts, nobody's."""
    return post.post_id.removeprefix(_SAID) if isinstance(post.content, Said) else ""


def _status_of(line: Line, post: Post) -> Stream | None:
    """The stream that says what the post's own turn is doing, and nothing else yet."""
    stream, owner = line.stream, line.owner
    is_its_own = stream is not None and owner is not None and owner.thread_id == post.thread_id
    return stream if is_its_own and stream is not None and stream.is_open and not stream.text else None


async def _ended(tasks: Collection[asyncio.Task[None]]) -> None:
    if tasks:
        _, late = await asyncio.wait(set(tasks), timeout=CLOSING)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


async def _guarded(showing: Coroutine[None, None, None]) -> None:
    try:
        await showing
    except Exception:
        # A defect of ours: drafts are an extra, and the turn knows nothing of them.
        log.exception("teams_draft_defect")
