"""The one event stream of an open page: first everything there is, then what changes.

Connecting again sends the same snapshot again. Entries have ids and revisions, so the page ends up the same however
often it reconnects and whatever it missed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

from aiohttp import web

from adapters.shared.live.board import LiveBoard
from adapters.shared.live.entries import agents_json, asked_json, entry_json, person_json, thread_json, threads_json
from adapters.shared.live.hub import SHOW_ANEW, THREADS_CHANGED, EndedError, Hub, Reader, frame, framed
from adapters.shared.outages import AGAIN_SECONDS, AWAY
from adapters.web.access import SECURITY_HEADERS, PageVisitor
from adapters.web.bodies import RefusalError
from adapters.web.config import PageFacts, setup_json
from adapters.web.inbound import thread_id_of
from bot.agent_choices import AgentChoices
from bot.conversations import Conversations, no_conversation
from bot.domain import PendingApprovals, Person, ThreadView, Unknown
from bot.queries import Queries
from bot.records.database import is_outage
from translations import gettext as _
from translations import language

HEARTBEAT_SECONDS = 15.0
"""Proxies close what is silent for longer; 30 to 60 s is usual."""
THREADS_EVERY_SECONDS = 0.25
"""The list of threads is read at most this often for one page, whatever happens."""
PENDING_SECONDS = 5.0
"""What waits for somebody is read anew after so long at the latest: also by whom changes with time."""
MOST_KEPT = 200
"""People for whom it is kept."""
OPERATOR_SECONDS = 60.0
"""So long a page is told what was found out of whether somebody is an operator: a service may have to be asked. What
an operator sees is judged each time."""
WRITE_SECONDS = 10.0
"""A page that takes nothing for so long is disconnected."""
RETRY_MILLISECONDS = 1000
LARGEST_SNAPSHOT = 4 * 1024 * 1024
"""Characters of JSON of the entries that a page gets at first, the newest of a thread: 300 messages of 20,000 emoji
would be 70 MB, which take 0.1 s to be put together. Every page gets one entry at least, which has up to 1.2 MB."""
SNAPSHOTS_ANEW = 8
"""Snapshots that are sent at a time to pages that are open already, of whoever: all pages may need one at once."""
SNAPSHOTS_AT_A_TIME = 4
"""Snapshots that are sent to one person's pages at a time: each is kept until it is taken, and a page may not read."""

NOTHING_LIVE: Mapping[str, Any] = {"status": "", "drafts": [], "activity": []}
_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    **SECURITY_HEADERS,
}


class EventStreams:
    """Serves `GET /api/events?thread=ID`.

    Args:
        facts: what the page says about the server.
        is_local: whether everybody who uses the page sets the server up, and not operators alone.
        is_stopped: whether an operator has stopped everything.
    """

    def __init__(
        self,
        conversations: Conversations,
        queries: Queries,
        hub: Hub,
        board: LiveBoard,
        *,
        agents: AgentChoices,
        facts: Callable[[], PageFacts],
        is_local: bool,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._conversations = conversations
        self._agents = agents
        self._facts = facts
        self._is_local = is_local
        self._is_stopped = is_stopped
        self._hub = hub
        self._board = board
        self._lists = ThreadLists(conversations, queries, hub)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """Person → held while a snapshot is sent to one of their pages."""
        self._anew = asyncio.Semaphore(SNAPSHOTS_ANEW)
        self._operators: dict[str, bool] = {}
        self._operators_until = 0.0

    def check_records(self, _request: web.Request) -> None:
        """Refuse (503) while nothing can be read: what could be waits for up to 15 s, and another process may answer
        now."""
        if self._hub.records_are_away:
            raise RefusalError(503, _(AWAY), retry_after=AGAIN_SECONDS)

    async def events(self, request: web.Request, visitor: PageVisitor) -> web.StreamResponse:
        """Send the snapshot and then every event until either side goes away."""
        thread_id = thread_id_of(request.query.get("thread", ""))
        person = visitor.person
        turn = self._turns.setdefault(person.person_id, asyncio.Semaphore(SNAPSHOTS_AT_A_TIME))
        with self._hub.reading(
            thread_id, person.person_id, visitor.session.session_id, written_in=language()
        ) as reader:
            reader.connection = request.transport
            response = web.StreamResponse(headers=_HEADERS)
            async with turn:
                snapshot = await self._snapshot(reader, visitor)
                if snapshot is None:
                    raise RefusalError(404, no_conversation().text)
                try:
                    await response.prepare(request)
                    await _write(response, b"retry: %d\n\n" % RETRY_MILLISECONDS + snapshot)
                except (ConnectionError, TimeoutError):
                    return _gone(request, response)
            del snapshot
            try:
                async for chunk in self._changes(reader, visitor.person):
                    if chunk != SHOW_ANEW:
                        await _write(response, chunk)
                        continue
                    async with turn, self._anew:
                        anew = await self._snapshot(reader, visitor)
                        if anew is None:
                            return response  # not theirs to see any more: the page comes back, and is told so
                        await _write(response, anew)
            except (ConnectionError, TimeoutError):
                return _gone(request, response)
            except Exception as error:
                if is_outage(error):
                    _gone(request, response)
                raise
        return response

    async def _snapshot(self, reader: Reader, visitor: PageVisitor) -> bytes | None:
        """All that this person may see of the conversation; `None`: nothing of it is for them."""
        view = await self._conversations.view(reader.thread_id, visitor.person)
        if isinstance(view, Unknown):
            return None
        # A conversation that nobody has written in yet has an id (the page's) and no row. Whose it is is asked again
        # when somebody has.
        reader.sees_all = None if view is None else view.seen_as == "owner"
        view = view or ThreadView(reader.thread_id, "", ())
        entries: list[str] = []
        space_left = LARGEST_SNAPSHOT
        for entry in reversed(view.entries):
            written = json.dumps(entry_json(entry))
            space_left -= len(written)
            if entries and space_left < 0:
                break
            entries.append(written)
            await asyncio.sleep(0)  # a card with a megabyte of arguments takes 15 ms
        thread = json.dumps(thread_json(view) | {"live": self._live(reader)})
        whole = f'{thread.removesuffix("}")}, "entries": [{", ".join(reversed(entries))}]}}'
        is_operator = await self._is_operator(visitor.person)
        setup = setup_json(self._facts()) if is_operator or self._is_local else []
        agents = agents_json(await self._agents.listed(visitor.person.person_id, ""))
        reader.knows_stopped = self._is_stopped()
        said = {
            "me": person_json(visitor.person),
            "is_operator": is_operator,
            "is_stopped": reader.knows_stopped,
            "setup": setup,
            "agents": agents,
        }
        me = frame("session", said)
        return me + await self._lists.now(visitor.person) + framed("thread", whole)

    async def _is_operator(self, person: Person) -> bool:
        if monotonic() >= self._operators_until:
            self._operators.clear()
            self._operators_until = monotonic() + OPERATOR_SECONDS
        if person.person_id not in self._operators:
            self._operators[person.person_id] = await self._conversations.is_operator(person)
        return self._operators[person.person_id]

    def _live(self, reader: Reader) -> Mapping[str, Any]:
        return self._board.snapshot(reader.thread_id) if reader.sees_all else NOTHING_LIVE

    async def _changes(self, reader: Reader, person: Person) -> AsyncIterator[bytes]:
        threads_from = monotonic() + THREADS_EVERY_SECONDS
        threads_due = False
        while True:
            if self._is_stopped() != reader.knows_stopped:
                reader.knows_stopped = not reader.knows_stopped
                yield frame("stop", {"is_stopped": reader.knows_stopped})
            within = max(0.0, threads_from - monotonic()) if threads_due else HEARTBEAT_SECONDS
            try:
                event = await reader.next(within)
            except EndedError:
                return
            if event == THREADS_CHANGED:
                threads_due = True
            elif event is not None:
                yield event
            elif not threads_due:
                yield b": still here\n\n"
            if threads_due and monotonic() >= threads_from:
                threads_due = False
                threads_from = monotonic() + THREADS_EVERY_SECONDS
                yield await self._lists.since_the_change(person)


class ThreadLists:
    """The list of threads, with what others have asked a person to decide, as that person's pages show it.

    Read for one person after the other, and at each change once for all pages of a person: hundreds of open pages that
    all read at once would hold up everybody.
    """

    def __init__(self, conversations: Conversations, queries: Queries, hub: Hub) -> None:
        self._conversations = conversations
        self._queries = queries
        self._hub = hub
        self._turn = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._as_of = hub.changes
        self._frames: dict[tuple[str, str], bytes] = {}
        """By person and language, since one may have the page open in two; likewise below."""
        self._pending: dict[tuple[str, str], PendingApprovals] = {}
        self._pending_while: tuple[object, float] = (None, 0.0)
        """What waited when those were read, and until when they are believed."""

    async def now(self, person: Person) -> bytes:
        """The list as it is at this moment."""
        async with self._turns.setdefault(person.person_id, asyncio.Lock()):
            return await self._read(person)

    async def since_the_change(self, person: Person) -> bytes:
        """The list as it was read for this person since it last changed."""
        async with self._turns.setdefault(person.person_id, asyncio.Lock()):
            as_of = self._hub.changes
            if self._as_of != as_of:
                self._as_of = as_of
                self._frames.clear()
            page = (person.person_id, language())
            if page in self._frames:
                return self._frames[page]
            read = await self._read(person)
            if self._as_of == as_of:
                self._frames[page] = read
            return read

    async def _read(self, person: Person) -> bytes:
        cards = await self._queries.cards_that_wait()
        # May take two seconds, where another service has to be asked.
        pending = await self._approvals_of(person, cards)
        async with self._turn:
            threads = await self._conversations.owned(person)
            programs = await self._queries.asked_through_programs(person) if cards[-1] else ()
            # Reading from the database does not yield, so that the next in turn would follow within the same step.
            await asyncio.sleep(0)
        return frame("threads", {**threads_json(threads), **asked_json(pending, programs)})

    async def _approvals_of(self, person: Person, cards: tuple[int, ...]) -> PendingApprovals:
        """What they may decide, and what they asked for and others decide. Each word in any conversation changes the
        list of threads, and seldom what waits for decisions."""
        now = monotonic()
        if cards != self._pending_while[0] or now >= self._pending_while[1] or len(self._pending) >= MOST_KEPT:
            self._pending_while = (cards, now + PENDING_SECONDS)
            self._pending.clear()
        if not cards[0]:
            return PendingApprovals()
        page = (person.person_id, language())
        known, kept = self._pending.get(page), self._pending_while
        if known is None:
            known = await self._queries.pending(person)
            if kept == self._pending_while:
                self._pending[page] = known
        return known


async def _write(response: web.StreamResponse, chunk: bytes) -> None:
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(chunk)


def _gone(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The page went away or takes nothing: it comes back by itself and catches up."""
    if request.transport is not None:
        request.transport.abort()
    return response
