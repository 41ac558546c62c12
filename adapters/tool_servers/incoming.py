"""What servers send, read within limits: messages, event streams, and the questions to people in them.

A message is parsed in one go, in the event loop. What that costs depends on more than its bytes: a megabyte of text
takes 3 ms, a megabyte of `[],` two seconds. So a list or object counts as 300 bytes, a member of an object as 100
and an element as 20, counted outside of strings before anything is parsed. At `LARGEST_MESSAGE` each of these alone
takes at most 40 ms in the MCP SDK. So does a digit as 100, in a number that already has `LONGEST_NUMBER` of them.
What nests deeper than `DEEPEST` levels the SDK drops, so that its call would wait for nothing: it is treated as if it
were too large.

The SDK's session handles one message after another, a question included, so a question that waits for a person would
hold up every other answer. It is taken out before the session reads it, given to whoever made the call, and answered
whenever that may be.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import structlog
from mcp.types import ElicitRequest
from pydantic import ValidationError

from adapters.tool_servers.elicitation import Elicitation
from adapters.tool_servers.outcomes import RequestId
from graph.http_bounds import OutsideStrings, pieces

log = structlog.get_logger(__name__)
LARGEST_MESSAGE = 4 * 1024 * 1024
"""Bytes, as they are counted here. The model gets 16 kB of a result; this holds a picture of 3 MB, or 3,000 rows of ten
members."""
DEEPEST = 180
"""Levels of lists and objects in a message; at 200 the SDK's parser ends."""
TOO_LARGE = f"its answer is larger than can be read here (4 MB), or nests deeper ({DEEPEST} levels)"
"""Ends "… gave no answer"."""
LIST_OR_OBJECT = 300
MEMBER = 100
ELEMENT = 20
DIGIT = 100
"""A megabyte of integers of 4,000 digits is parsed in 7 ms, but takes 50 ms to be written, as into the log, and 0.4 s
where it stands in no message of the protocol: each of the SDK's complaints holds it."""
LONGEST_NUMBER = 99
"""Digits of a number that count for no more than their bytes."""
BURST = 4 * LARGEST_MESSAGE
"""Bytes that a server may send at once, counted as above."""
RATE = 1024 * 1024
"""Bytes per second beyond the burst. For events of a few bytes it is about 100 in a second (see `EVENT`), which takes a
tenth of a core."""
EVENT = 10_000
"""Bytes that a message counts for at least: even an empty one goes through the SDK, which takes half a millisecond."""
REQUEST = 4 * EVENT
"""Bytes that a server's request over HTTP counts for besides: its answer is a request of ours, which takes 4 ms."""
LONGEST_SKIPPED = 16 * LARGEST_MESSAGE
"""Bytes after which the end of a message that is too large is not waited for any longer."""
LOOKED_AT = 256
"""Bytes at either end of a message that is too large, where its id is looked for."""
ASKING = "elicitation/create"
"""Method of a server's question to a person (MCP 2025-11-25)."""
LARGEST_QUESTION_MESSAGE = 256 * 1024
"""Bytes. Larger messages are not looked into: the session cancels the question in them."""
TOOLS_CHANGED = "notifications/tools/list_changed"
LONGEST_CHANGE = 500
"""Bytes of a message that is looked at for whether it says so; a longer one the SDK reads."""
_ID_FIRST = re.compile(
    rb"(?:(?:[a-z]+:[^\n{]*\n)*data:)?"  # of an event
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15})\s*,'
)
_DIGITS = b"0123456789"
_OPENING, _CLOSING = b"[{", b"]}"
_NO_BRACKETS = bytes(set(range(256)) - {*_OPENING, *_CLOSING})
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{%d,}" % (LONGEST_NUMBER + 1))
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*([0-9]{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
REPLACED_AT_ONCE = 256 * 1024
"""Bytes in which halves of characters are looked for before others have their turn: 15 ms at most."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(rb"\\(?:%s(?!%s)|(?<!%s\\)%s)" % (_HIGH[2:], _LOW, _HIGH, _LOW[2:]))
_HALF_READ = re.compile("[\ud800-\udfff]")
_CUT = re.compile(rb"\\(?:(?!u[dD][c-fC-F])|(?<!%s\\))" % _HIGH)
"""An escape that is not the second half of a pair. Like that above it begins with a backslash: what has none is
passed over quickly."""
_REPLACEMENT = rb"\\ufffd"
_ASKING = (ASKING.encode(), ASKING.replace("/", r"\/").encode())
"""How the method is written in JSON; PHP escapes the slash."""


class Weight:
    """Counts one message that comes in pieces."""

    def __init__(self) -> None:
        self.total = 0
        """Bytes, as they are counted here."""
        self._outside = OutsideStrings()
        self._number = b""
        """The last digits of the number that the latest piece ended in."""
        self._opened = self._depth = 0
        """Lists and objects that have begun, and how many of them are open."""
        self._is_too_deep = False

    @property
    def too_large(self) -> bool:
        """Whether it is more than is parsed."""
        return self._is_too_deep or self.total > LARGEST_MESSAGE

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the message."""
        self.total += len(piece)
        bare = self._outside.feed(piece)
        opened = bare.count(b"[") + bare.count(b"{")
        self.total += LIST_OR_OBJECT * opened
        self._go_deeper(opened, bare)
        self.total += MEMBER * bare.count(b":") + ELEMENT * bare.count(b",")
        seen = self._number + bare
        self.total += DIGIT * sum(len(long[0]) - LONGEST_NUMBER for long in _LONG_NUMBER.finditer(seen))
        end = seen[-LONGEST_NUMBER:]
        self._number = end[len(end.rstrip(_DIGITS)) :]

    def _go_deeper(self, opened: int, bare: bytes) -> None:
        self._opened += opened
        if self._opened <= DEEPEST:
            self._depth += opened - bare.count(b"]") - bare.count(b"}")
            return
        for bracket in bare.translate(None, _NO_BRACKETS):
            self._depth += 1 if bracket in _OPENING else -1
            self._is_too_deep = self._is_too_deep or self._depth > DEEPEST
            if self.too_large:
                return


class Intake:
    """Says how long to wait before more is read from a server that sends a lot, so that it keeps nobody busy."""

    def __init__(self, now: Callable[[], float] = time.monotonic, *, burst: int = BURST, rate: int = RATE) -> None:
        self._now = now
        self._burst = burst
        self._rate = rate
        self._room = float(burst)
        self._at = now()

    def pause(self, taken: int) -> float:
        """Seconds to wait after so much was taken; 0: none."""
        now = self._now()
        self._room = min(self._room + (now - self._at) * self._rate, self._burst) - taken
        self._at = now
        return max(-self._room / self._rate, 0.0)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A message that is larger than is parsed."""

    request: int | None
    """The request that it answers; `None`: that cannot be told."""


class Messages:
    """Cuts what a server sends into messages: lines of a program, or events of a stream. Bounded whatever comes.

    `events`: a message ends with an empty line instead of with each line; line ends are given on as `\\n`.
    """

    def __init__(self, *, events: bool = False) -> None:
        self._events = events
        self._after_cr = False
        self._line_is_empty = True
        self._begin()

    @property
    def skipping(self) -> bool:
        """Whether the message that is being read is too large, so that the rest of it is thrown away."""
        return self._weight.too_large

    @property
    def endless(self) -> bool:
        """Whether no end is to be expected of a message that is too large."""
        return self._length > LONGEST_SKIPPED

    def feed(self, piece: bytes) -> list[bytes | TooLarge]:
        """The messages that end in this piece; empty ones are left out."""
        if self._events:
            piece = self._with_plain_line_ends(piece)
        *ended, rest = piece.split(b"\n")
        messages = []
        for end in ended:
            self._add(end)
            if self._events and not self._line_is_empty:
                self._add(b"\n")
                self._line_is_empty = True
            elif self._length:
                messages.append(self._whole())
                self._begin()
        self._add(rest)
        return messages

    def _with_plain_line_ends(self, piece: bytes) -> bytes:
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _begin(self) -> None:
        self._kept = bytearray()
        self._weight = Weight()
        self._length = 0
        self._head = self._tail = b""
        self._line_is_empty = True

    def _add(self, part: bytes) -> None:
        if not part:
            return
        self._line_is_empty = False
        self._length += len(part)
        self._head += part[: LOOKED_AT - len(self._head)]
        self._tail = (self._tail + part[-LOOKED_AT:])[-LOOKED_AT:]
        if not self._weight.too_large:
            self._weight.feed(part)
            self._kept += part
        if self._weight.too_large:
            self._kept.clear()

    def _whole(self) -> bytes | TooLarge:
        if not self._weight.too_large:
            return bytes(self._kept)
        # Both places are outermost in any JSON: nothing has been opened before the one, nor is after the other.
        found = _ID_FIRST.match(self._head) or _ID_LAST.search(self._tail)
        return TooLarge(int(found[1]) if found else None)


async def with_whole_characters(message: bytes) -> bytes:
    """A JSON text with the replacement character for each half of a surrogate pair that is escaped in it.

    The SDK's parser takes none, and drops a message with one: its call would wait until its time is up, and end as
    unknown. Programs cut text in the middle of a pair (UTF-16), as JavaScript does. What is no JSON stays none.
    """
    if _SURROGATE.search(message) is None or b"\0" in message:
        return message
    # Of the same length, so that from here on every backslash begins an escape.
    rest = message.replace(b"\\\\", b"\0\0")
    parts: list[bytes] = []
    while len(rest) > REPLACED_AT_ONCE and (cut := _CUT.search(rest, REPLACED_AT_ONCE)):
        parts.append(_HALF.sub(_REPLACEMENT, rest[: cut.start()]))
        rest = rest[cut.start() :]
        await asyncio.sleep(0)
    parts.append(_HALF.sub(_REPLACEMENT, rest))
    return b"".join(parts).replace(b"\0\0", b"\\\\")


def elicitation_in(
    message: bytes, request: RequestId | None, send: Callable[[dict[str, Any]], Awaitable[None]]
) -> Elicitation | None:
    """The question that a JSON-RPC message is; `None`: it is something else. `request`: what it is asked for."""
    if not _may_ask(message):
        return None
    try:
        asked = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict) or asked.get("method") != ASKING:
        return None
    asked_as = asked.get("id")
    if not isinstance(asked_as, str | int) or isinstance(asked_as, bool):
        return None
    if isinstance(asked_as, str) and _HALF_READ.search(asked_as):  # no answer to it could be written
        return None
    try:
        params = ElicitRequest.model_validate({"method": ASKING, "params": asked.get("params")}).params
    except ValidationError:
        return Elicitation(asked_as, request, None, send)
    return Elicitation(asked_as, request, params, send)


def tells_of_other_tools(message: bytes) -> bool:
    """Whether a JSON-RPC message says nothing but that the server has other tools now. Who tells so thousands of times
    is not to be held up by it: it is enough to note it, which costs next to nothing."""
    if len(message) > LONGEST_CHANGE or b"list_changed" not in message:
        return False
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("method") == TOOLS_CHANGED and "id" not in told


def _may_ask(message: bytes) -> bool:
    return len(message) <= LARGEST_QUESTION_MESSAGE and any(name in message for name in _ASKING)


def _seems_a_request(message: bytes | TooLarge) -> bool:
    """Whether a message is probably one that is answered; what is not counted is read a little faster."""
    return (
        isinstance(message, bytes)
        and len(message) <= LARGEST_QUESTION_MESSAGE
        and b'"method"' in message
        and b'"id"' in message
    )


@dataclass(frozen=True, slots=True)
class Signals:
    """What the transport tells the owner of the session; each returns at once."""

    lost: Callable[[str], None]
    """The connection is gone, with the reason."""
    tools_changed: Callable[[], None]
    """The server says that it has other tools now."""
    asked: Callable[[Elicitation], None]
    """The server asks a person something."""
    completed: Callable[[str], None]
    """The server says that the link of this elicitation id was used."""


@dataclass(frozen=True, slots=True)
class Substitutes:
    """What makes the events that stand in for an answer that a stream lacks; `None`: nothing does."""

    broken: Callable[[], bytes] | None = None
    """When it breaks off, or ends without an answer."""
    too_large: Callable[[int | None], bytes | None] | None = None
    """Replaces a message that is too large; gets the request that it answers, where that can be told."""
    one_answer: bool = True
    """Whether the stream ends with a message that is too large: it has only one answer to give. One with many answers
    goes on after a substitute, and ends without."""


@dataclass(eq=False)
class BoundedEvents(httpx.AsyncByteStream):
    """An event stream, given on event by event, read no faster than `intake` says.

    `asked` takes the questions out: it gets the data of an event that may be one and returns whether it was. A stream
    whose events have ids is left alone when it breaks: the SDK takes it up again where it broke off. Once the real
    answer has come the SDK reads no further, so a substitute is seen only where the answer is missing.
    """

    stream: httpx.AsyncByteStream
    intake: Intake
    substitutes: Substitutes
    asked: Callable[[bytes], bool]
    silence: float | None
    """Seconds of silence after which the stream is given up; `None`: it may be silent endlessly."""
    patience: float
    """The same once the server has asked a person something."""
    _resumable: bool = field(default=False, init=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        messages = Messages(events=True)
        chunks = aiter(self.stream)
        try:
            while True:
                async with asyncio.timeout(self.silence):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                counted = 0
                for piece in pieces(chunk):
                    whole = messages.feed(piece)
                    counted += EVENT * len(whole) + REQUEST * sum(map(_seems_a_request, whole))
                    if messages.skipping and (messages.endless or self.substitutes.one_answer):
                        whole.append(TooLarge(None))
                    events = [await _readable(self._event(message)) for message in whole]
                    is_last = self.substitutes.one_answer and any(isinstance(each, TooLarge) for each in whole)
                    if is_last or None in events:
                        await self.stream.aclose()
                    yield b"".join(event for event in events if event)
                    if is_last or None in events:
                        return
                    await asyncio.sleep(0)  # 1,000 events that say nothing fit into a piece
                taken = 0 if messages.skipping else len(chunk)
                await asyncio.sleep(self.intake.pause(taken + counted))
        except (httpx.TransportError, TimeoutError) as error:
            if self._resumable and isinstance(error, httpx.TransportError):
                raise
            log.debug("tool_server_stream_broke", error=type(error).__name__)
        if self.substitutes.broken and not self._resumable:
            yield self.substitutes.broken()

    def _event(self, message: bytes | TooLarge) -> bytes | None:
        """The event as the SDK gets it; `None`: the stream ends here."""
        if isinstance(message, TooLarge):
            log.warning("tool_server_event_too_large")
            return self.substitutes.too_large(message.request) if self.substitutes.too_large else None
        self._resumable = self._resumable or message.startswith(b"id:") or b"\nid:" in message
        if _may_ask(message):
            lines = message.split(b"\n")
            data = [line.removeprefix(b"data:").removeprefix(b" ") for line in lines if line.startswith(b"data:")]
            if self.asked(b"\n".join(data)):
                self.silence = self.patience
                # Without its data it is no message; its id stays, from which the stream can be taken up again.
                message = b"\n".join(line for line in lines if not line.startswith(b"data:"))
        return message + b"\n"

    async def aclose(self) -> None:
        """Part of httpx's protocol."""
        await self.stream.aclose()


async def _readable(event: bytes | None) -> bytes | None:
    """The event with data that can be parsed; its id stays as it is."""
    if event is None or _SURROGATE.search(event) is None:
        return event
    lines = event.split(b"\n")
    return b"\n".join([await with_whole_characters(each) if each.startswith(b"data:") else each for each in lines])


class SharedEvents(httpx.AsyncByteStream):
    """The event stream of an SSE session, which carries all answers, with events of ours between those of the server.

    `ended` is called when no more events come.
    """

    def __init__(self, stream: BoundedEvents, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._reading = asyncio.create_task(self._read(), name="tool-server-events")

    async def add(self, event: bytes) -> None:
        """Give an event on as if the server had sent it."""
        await self._events.put(event)

    async def _read(self) -> None:
        try:
            with suppress(httpx.HTTPError):
                async for event in self._stream:
                    await self._events.put(event)
        finally:
            self._ended()
        await self._events.put(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (event := await self._events.get()) is not None:
            yield event

    async def aclose(self) -> None:
        """Part of httpx's protocol."""
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self._stream.aclose()


def as_event(message: object) -> bytes:
    """A message as an event of its own."""
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"
