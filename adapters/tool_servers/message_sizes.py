"""How much a server may send: in one message, and in a while. Pure.

A message is parsed in one go, in the event loop. What that costs depends on more than its bytes: a megabyte of text
takes 3 ms, a megabyte of `[],` two seconds. So a list or object counts as 300 bytes, a member of an object as 100
and an element as 20, counted outside of strings before anything is parsed. At `LARGEST_MESSAGE` each of these alone
takes at most 40 ms in the MCP SDK.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

LARGEST_MESSAGE = 4 * 1024 * 1024
"""Bytes, as they are counted here. The model gets 16 kB of a result; this holds a picture of 3 MB, or 3,000 rows of ten
members."""

TOO_LARGE = "its answer is larger than can be read here (4 MB)"
"""Ends "… gave no answer"."""

LIST_OR_OBJECT = 300
MEMBER = 100
ELEMENT = 20

BURST = 4 * LARGEST_MESSAGE
"""Bytes that a server may send at once, counted as above."""

RATE = 1024 * 1024
"""Bytes per second beyond the burst. For events of a few bytes it is about 100 in a second (see `EVENT`), which takes a
tenth of a core."""

EVENT = 10_000
"""Bytes that a message counts for at least: even an empty one goes through the SDK, which takes half a millisecond."""

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)', re.DOTALL)


class Weight:
    """Counts one message that comes in pieces."""

    def __init__(self) -> None:
        self.total = 0
        """Bytes, as they are counted here."""
        self._in_string = self._escaped = False

    @property
    def too_large(self) -> bool:
        """Whether it is more than is parsed."""
        return self.total > LARGEST_MESSAGE

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the message."""
        self.total += len(piece)
        if self._escaped and piece:
            piece, self._escaped = piece[1:], False
        if self._in_string:
            piece = b'"' + piece
        bare, strings = _STRINGS.subn(rb"\1", piece)
        self._in_string = strings > bare.count(b'"')
        self._escaped = self._in_string and bare.endswith(b"\\")
        self.total += LIST_OR_OBJECT * (bare.count(b"[") + bare.count(b"{"))
        self.total += MEMBER * bare.count(b":") + ELEMENT * bare.count(b",")


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
