"""The password before the page: compared in constant time, and guessed only slowly."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict, deque
from collections.abc import Callable

from adapters.web.bodies import RefusalError

TRIES = 10
"""Wrong passwords that one address may try in a window."""
WINDOW_SECONDS = 60.0
MAX_ADDRESSES = 10_000
"""Addresses remembered at most; the one that tried longest ago is forgotten first."""


class PasswordGate:
    """Says whether a password is right, and stops an address that keeps guessing without slowing the others."""

    def __init__(self, password: str, monotonic: Callable[[], float]) -> None:
        self._digest = _digest(password)
        self._monotonic = monotonic
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, password: str, address: str) -> None:
        """Return if the password is right. Raises `RefusalError`: 401 when it is wrong, 429 after too many."""
        now = self._monotonic()
        tries = self._wrong.get(address, deque())
        while tries and now - tries[0] >= WINDOW_SECONDS:
            tries.popleft()
        if len(tries) >= TRIES:
            wait = WINDOW_SECONDS - (now - tries[0])
            raise RefusalError(429, "Too many wrong passwords. Please wait a minute and try again.", retry_after=wait)
        if hmac.compare_digest(self._digest, _digest(password)):
            self._wrong.pop(address, None)
            return
        tries.append(now)
        self._wrong[address] = tries
        self._wrong.move_to_end(address)
        while len(self._wrong) > MAX_ADDRESSES:
            self._wrong.popitem(last=False)
        raise RefusalError(401, "That is not the password.")


def _digest(password: str) -> bytes:
    # Digests are of one length, so that comparing them tells nothing about the password's.
    return hashlib.sha256(password.encode(errors="replace")).digest()
