"""Ids of traces and of their spans, which follow from what they are about: every process finds the same ones, before
and after a restart, in a pause of days, and when somebody says later what they think of an answer. Pure.
"""

from __future__ import annotations

import hashlib

from bot.task_threads import turn_of_call

_TRACE_BYTES = 16
_SPAN_BYTES = 8
"""https://www.w3.org/TR/trace-context/#trace-id and #parent-id."""
_SAID = "said:"
_ERROR = "error:"


class TraceIds:
    """Ids of one deployment.

    Args:
        key: of the deployment, so that ids do not tell what they are about, and differ from those of another one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(b"trace ids" + key).digest()

    def trace(self, turn: str) -> int:
        """The trace of a turn, by the key of its delivery; the tasks of its plans are in it."""
        return self._id(_TRACE_BYTES, "trace", root_turn(turn))

    def root(self, turn: str) -> int:
        """The first span of that trace."""
        return self.handling(root_turn(turn), root_turn(turn))

    def handling(self, turn: str, delivery: str) -> int:
        """The span of the handling of a delivery."""
        return self._id(_SPAN_BYTES, "handling", turn, delivery)

    def policy(self, call_id: str, round_: int) -> int:
        """The span of the judgement by which people were asked for this round."""
        return self._id(_SPAN_BYTES, "policy", call_id, str(round_))

    def approval(self, call_id: str, round_: int) -> int:
        """The span of the wait for people."""
        return self._id(_SPAN_BYTES, "approval", call_id, str(round_))

    def score(self, post: str, person: str) -> str:
        """What somebody thinks of a post: the last opinion counts."""
        return f"{self._id(_TRACE_BYTES, 'score', post, person):032x}"

    def _id(self, size: int, *about: str) -> int:
        named = b"\0".join(each.encode("utf-8", "surrogatepass") for each in about)
        return int.from_bytes(hashlib.blake2b(named, key=self._key, digest_size=size).digest()) or 1


def root_turn(turn: str) -> str:
    """The turn that people see: of a task, the one whose agent made the plan. By the key of its delivery."""
    return turn_of_call(f"{turn}.0.0")


def turn_of_post(key: str, call_id: str) -> str:
    """The turn that a post belongs to, or the delivery that it is about; empty: it is not known.

    Args:
        key: of the post.
        call_id: of the call that it shows; empty: it shows none.
    """
    if call_id:
        return turn_of_call(call_id)
    if key.startswith(_SAID):
        return key.removeprefix(_SAID).rpartition(".")[0]
    return key.removeprefix(_ERROR) if key.startswith(_ERROR) else ""
