"""The event stream of a conversation for programs: its entries, then what changes, on whichever replica.

Every entry has an id that says all that the stream has sent so far, so that a client that comes back with it
(`Last-Event-ID`) is sent what it has not, and nothing that it has. What happens is heard from the hub; what is sent is
read, so that it is as it stands.
"""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from aiohttp import web

from adapters.api.operations import ApiCall
from adapters.shared.live.board import LiveBoard
from adapters.shared.live.entries import entry_json
from adapters.shared.live.hub import ENTRIES, SHOW_ANEW, THREADS_CHANGED, EndedError, Hub, Reader
from adapters.shared.long_answers import LongAnswers
from adapters.shared.outages import AGAIN_SECONDS, AWAY
from adapters.shared.problems import Problem
from adapters.shared.program_access import ProgramAccess
from adapters.shared.server_sent import ClientGone, EventStream, OpenStreams, named_event
from adapters.shared.token_watch import TokenWatch
from bot.conversations import Conversations, no_conversation
from bot.crypto import random_token
from bot.domain import MessageView, Person, Post, ThreadView, Unknown
from bot.identity.principal import Principal

HEARTBEAT_SECONDS = 15.0
"""Proxies close what is silent for longer."""
READ_EVERY_SECONDS = 0.2
"""A conversation is read at most this often for one stream, whatever happens in it."""
RETRY_MILLISECONDS = 1000
MOST_STREAMS = 8
"""Of one person, in one process."""
LIVE = frozenset({"text", "status"})
"""Events of what happens now, as the API describes them; the page has others."""
READ_AT_A_TIME = 8
"""Conversations that are read for streams at a time."""
LONGEST_EVENT_ID = 8000
"""Characters: as much as a header may have."""
_PAIR = "[0-9a-z]{1,12}-[0-9a-z]{1,8}"
_EVENT_ID = re.compile(rf"([0-9]{{1,18}})\.([0-9]{{1,18}})\.([0-9]{{1,9}})\.((?:{_PAIR}(?:_{_PAIR})*)?)")
_FRAME_NAME = re.compile(rb"event: (\w+)\n")

Entry = MessageView | Post


@dataclass(slots=True)
class SentEntries:
    """What a client has of a conversation."""

    message: int = 0
    """The greatest number of a message."""
    post: int = 0
    """The greatest number of a post."""
    count: int = 0
    """How many entries."""
    changed: dict[int, int] = field(default_factory=dict)
    """Posts by number → revision, of those that have changed since they were posted."""

    @classmethod
    def of_event_id(cls, text: str) -> SentEntries | None:
        """As an id says; `None`: it is none of ours."""
        found = _EVENT_ID.fullmatch(text) if len(text) <= LONGEST_EVENT_ID else None
        if found is None:
            return None
        message, post, count = (int(found[group]) for group in (1, 2, 3))
        pairs = (pair.split("-") for pair in found[4].split("_") if pair)
        return cls(message, post, count, {post - int(back, 36): int(revision, 36) for back, revision in pairs})

    def event_id(self) -> str:
        """The same as an id."""
        pairs = (f"{_base36(self.post - number)}-{_base36(revision)}" for number, revision in self.changed.items())
        return f"{self.message}.{self.post}.{self.count}.{'_'.join(pairs)}"

    def missing(self, entries: Collection[Entry]) -> list[Entry]:
        """Which of the entries that there are the client does not have as they are; each is to be added when sent."""
        # Fewer than before: the oldest are not shown any more. More: somebody who sees parts of a conversation sees
        # another part of it, older than what they have.
        if sum(map(self._knows, entries)) > self.count:
            self.message = self.post = self.count = 0
            self.changed.clear()
        return [each for each in entries if not self._knows(each) or self._has_changed(each)]

    def add(self, entry: Entry) -> None:
        """The client has this entry now."""
        self.count += not self._knows(entry)
        if isinstance(entry, MessageView):
            self.message = max(self.message, entry.number)
            return
        self.post = max(self.post, entry.number)
        if entry.revision > 1:
            self.changed[entry.number] = entry.revision

    def _knows(self, entry: Entry) -> bool:
        return entry.number <= (self.message if isinstance(entry, MessageView) else self.post)

    def _has_changed(self, entry: Entry) -> bool:
        return isinstance(entry, Post) and entry.revision > self.changed.get(entry.number, 1)


class ThreadEvents:
    """Serves `GET /api/v1/threads/{id}/events`."""

    def __init__(
        self, conversations: Conversations, hub: Hub, board: LiveBoard, access: ProgramAccess, watch: TokenWatch
    ) -> None:
        self._conversations = conversations
        self._hub = hub
        self._board = board
        self._watch = watch
        self._open = OpenStreams(access, watch, LongAnswers(MOST_STREAMS, "conversations are streamed to"))
        self._reading = asyncio.Semaphore(READ_AT_A_TIME)

    async def serve(self, call: ApiCall, thread_id: str) -> web.StreamResponse:
        """Send what the client does not have, and then what happens, until either side goes away. Raises `Problem`."""
        if self._hub.records_are_away:
            raise Problem(503, AWAY, retry_after=AGAIN_SECONDS)
        sent = SentEntries.of_event_id(call.request.headers.get("Last-Event-ID", "")) or SentEntries()
        person = call.principal.person
        with (
            self._open.opened(call.request, call.principal) as stream,
            self._hub.reading(thread_id, person.person_id, random_token(), sees_all=False) as reader,
        ):
            view = await self._view(thread_id, person)
            if view is None:
                raise Problem(404, no_conversation().text)
            reader.connection, stream.reader = call.request.transport, reader
            with suppress(ClientGone):
                await stream.begin()
                await stream.send(b"retry: %d\n\n" % RETRY_MILLISECONDS)
                await self._send(stream, sent, view)
                reader.sees_all = view.seen_as == "owner"
                await self._show_live(stream, reader)
                await self._follow(stream, reader, sent, call.principal)
        return stream.response

    async def _follow(self, stream: EventStream, reader: Reader, sent: SentEntries, principal: Principal) -> None:
        read_at, again = monotonic(), monotonic() + HEARTBEAT_SECONDS
        is_due = show_live = False
        while True:
            wait = (read_at + READ_EVERY_SECONDS if is_due else again) - monotonic()
            try:
                frame = await reader.next(max(0.0, wait))
            except EndedError:
                return
            if frame == SHOW_ANEW:
                is_due = show_live = True
            elif frame is not None and frame != THREADS_CHANGED:
                if _name_of(frame) in ENTRIES:
                    is_due = True
                elif reader.sees_all and _name_of(frame) in LIVE:
                    await stream.send(frame)
            now = monotonic()
            if now >= again:
                again = now + HEARTBEAT_SECONDS
                await stream.beat()
                is_due = True  # a time may have come at which a card shows something else
            if is_due and now >= read_at + READ_EVERY_SECONDS:
                is_due, read_at = False, now
                view = await self._view(reader.thread_id, principal.person)
                if view is None or await self._watch.is_over(principal):
                    return
                reader.sees_all = view.seen_as == "owner"
                await self._send(stream, sent, view)
                if show_live:
                    show_live = False
                    await self._show_live(stream, reader)

    async def _view(self, thread_id: str, person: Person) -> ThreadView | None:
        async with self._reading:
            view = await self._conversations.view(thread_id, person)
        return None if isinstance(view, Unknown) else view

    async def _send(self, stream: EventStream, sent: SentEntries, view: ThreadView) -> None:
        """The entries that the client does not have, messages and posts each in the order of their numbers: an id says
        up to which of each it has all."""
        missing = sent.missing(view.entries)
        ordered = [
            sorted((each for each in missing if isinstance(each, kind)), key=_number) for kind in (MessageView, Post)
        ]
        for entry in heapq.merge(*ordered, key=_at):
            sent.add(entry)
            name = "message" if isinstance(entry, MessageView) else "post"
            await stream.send(named_event(name, entry_json(entry), sent.event_id()))
            await asyncio.sleep(0)  # a card with a megabyte of arguments takes 15 ms

    async def _show_live(self, stream: EventStream, reader: Reader) -> None:
        if not reader.sees_all:
            return
        live = self._board.snapshot(reader.thread_id)
        await stream.send(named_event("status", {"text": live["status"]}))
        for draft in live["drafts"]:
            event = {"message_id": draft["message_id"], "n": draft["n"], "delta": draft["text"], "whole": True}
            await stream.send(named_event("text", event))


def _name_of(frame: bytes) -> str:
    found = _FRAME_NAME.match(frame)
    return found[1].decode() if found else ""


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text or "0"


_number: Callable[[Entry], int] = lambda entry: entry.number  # noqa: E731
_at: Callable[[Entry], float] = lambda entry: entry.at  # noqa: E731
