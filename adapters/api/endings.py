"""What several contracts say of a turn: how it has ended, that it runs on, and which request is the same as another."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from adapters.api.operations import ApiCall
from adapters.shared.outages import AGAIN_SECONDS
from adapters.shared.problems import Problem
from bot.conversations import TurnState
from bot.safe_text import visible

STOPPED_SECONDS = 60.0
"""After which a program may ask again while everything is stopped, which takes an operator minutes or hours."""
LONGEST_KEY = 255
"""Characters of an `Idempotency-Key`."""
IDEMPOTENCY = {"Idempotency-Key": "The same key again, with the same text, is the same request."}
"""What the header is for."""


def idempotency_key(call: ApiCall) -> str:
    """The caller's own key for a request; empty: none. Raises `Problem` (422)."""
    key = call.request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY:
        raise Problem(422, f"Idempotency-Key: has more than {LONGEST_KEY} characters.")
    return key


def answer_in(state: TurnState) -> str | None:
    """What the bot said in the end, or else of the message: that turns are switched off, say. `None`: the turn failed,
    as when the model cannot be reached."""
    if state.answer_id:
        return visible(state.answer)
    if any(notice.tone == "error" for notice in state.notices):
        return None
    return visible("\n\n".join([*([state.answer] if state.answer else []), *(n.text for n in state.notices)]))


def what_failed(state: TurnState) -> str:
    """What is said of a turn that failed."""
    return visible(" ".join(notice.text for notice in state.notices if notice.tone == "error"))


def runs_on(thread_id: str, message_id: str) -> Problem:
    """What is said of a turn that has not ended after the longest wait. It goes on."""
    detail = (
        "The turn is still running. To keep waiting, send the same request with the same Idempotency-Key, or use the "
        "address in `turn`."
    )
    return Problem(504, detail, retry_after=AGAIN_SECONDS, more={"turn": _address(thread_id, message_id)})


STOPPED = "An operator has stopped Countersign. The request is kept, and is answered when it goes on."
"""What streams and A2A tasks say while everything is stopped."""


def stopped(thread_id: str, message_id: str) -> Problem:
    """What is said of a turn that does not go on, since an operator has stopped everything."""
    detail = (
        f"{STOPPED} Do not send it as another one: send it with the same Idempotency-Key, or use the address in `turn`."
    )
    return Problem(503, detail, retry_after=STOPPED_SECONDS, more={"turn": _address(thread_id, message_id)})


def _address(thread_id: str, message_id: str) -> str:
    return f"/api/v1/threads/{quote(thread_id, safe=':')}/messages/{quote(message_id, safe=':')}"


def key_of_request(person_id: str, thread_id: str, body: str) -> str:
    """Returns what tells one request from others: delivered twice, it has the same."""
    named = "\n".join([person_id, thread_id, body])
    return f"api:{hashlib.sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()}"
