"""The ids by which clients of the contracts name conversations, as ids of threads that nobody else can tell."""

from __future__ import annotations

import hashlib
import hmac

from bot.conversations import Conversations
from bot.crypto import random_token
from bot.identity.principal import Principal

THREAD_PREFIX = "web:"
_LABEL = b"countersign threads of programs"


class ThreadNames:
    """Finds the threads that callers name.

    Whoever writes in a thread first has it. So an id that others could work out would let them take a name away.

    Args:
        key: what seals the records: Fernet keys, separated by commas. The first makes ids, all of them find threads.
    """

    def __init__(self, key: bytes, conversations: Conversations) -> None:
        self._keys = [hmac.digest(each.strip(), _LABEL, hashlib.sha256) for each in key.split(b",")]
        self._conversations = conversations

    async def thread_of(self, principal: Principal, kind: str, given: str) -> str:
        """The thread that a caller means with an id of its own, which is somebody else's thread for anybody else.

        Args:
            kind: in which contract the id is known.
            given: any text.
        """
        named = "\n".join([principal.person.person_id, kind, given]).encode("utf-8", "surrogatepass")
        newest, *older = [
            f"{THREAD_PREFIX}{kind}-{hmac.digest(key, named, hashlib.sha256).hex()[:40]}" for key in self._keys
        ]
        if older and not await self._conversations.is_begun(newest):
            for thread_id in older:
                if await self._conversations.is_begun(thread_id):
                    return thread_id
        return newest


def new_thread_id() -> str:
    """An id that nobody can guess."""
    return f"{THREAD_PREFIX}{random_token()[:32].replace('.', '-')}"
