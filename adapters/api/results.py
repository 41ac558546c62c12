"""What people's words on a question come to, as answers of HTTP: one status for each way that it can end."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeVar

from pydantic import ConfigDict, Field

from adapters.api.models import Shape
from adapters.api.operations import ApiCall
from adapters.shared.problems import Problem
from bot.crypto import random_token
from bot.domain import AlreadySettled, ClickResult, Invalid, Refused, Settled, Unknown
from bot.safe_text import visible

ResultWord = Literal["settled", "counted", "already_settled", "gone", "forbidden", "not_found", "invalid"]
STATUSES: dict[ResultWord, int] = {
    "settled": 200,
    "counted": 200,
    "forbidden": 403,
    "not_found": 404,
    "already_settled": 409,
    "gone": 410,
    "invalid": 422,
}
SETTLING = (409, 410, 422)
"""Problems of whatever settles something, besides those of its path and its scope."""
LONGEST_KEY = 255
"""Characters of an `Idempotency-Key`."""
ONLY_OPERATORS = "Only operators can see this."
Found = TypeVar("Found")
"""What a service has."""
SAME_KEY = {"Idempotency-Key": "The same request again with the same key gets the same answer."}
MOST_CHARACTERS_OF_AN_ID = 200


class ResultShape(Shape):
    """What came of it."""

    model_config = ConfigDict(frozen=True, title="Result")
    status: ResultWord = Field(
        description="settled: done. counted: the vote counts, and more are needed. already_settled: somebody was "
        "faster. gone: it has expired, was withdrawn or something else is asked by now. Nothing changed in the others."
    )
    text: str = Field(description="One sentence for the person.")
    errors: dict[str, str] = Field(default_factory=dict, description="Of what is invalid: field → what is wrong.")

    @classmethod
    def of(cls, result: ClickResult) -> ResultShape:
        """As the services say it."""
        if isinstance(result, Invalid):
            errors = {visible(name): visible(error) for name, error in result.errors.items()}
            return cls(status="invalid", text=errors.pop("", "") or "Some values are not valid.", errors=errors)
        return cls(status=_word(result), text=visible(result.text))


def _word(result: Settled | AlreadySettled | Refused | Unknown) -> ResultWord:
    match result:
        case Settled():
            return "settled" if result.final else "counted"
        case AlreadySettled():
            return "gone" if result.gone else "already_settled"
        case Refused():
            return "forbidden"
        case Unknown():
            return "not_found"


def for_operators(found: Found | None, refusal: str = ONLY_OPERATORS) -> Found:
    """What a service returned. Raises `Problem` (403) for `None`, which it returns to a person who is no operator."""
    if found is None:
        raise Problem(403, refusal)
    return found


def settled(result: ClickResult) -> ResultShape:
    """What came of something that was settled. Raises `Problem` where nothing was: 403, 404, 409, 410, 422."""
    if not isinstance(result, Settled):
        raise refused(result)
    return ResultShape.of(result)


def refused(result: AlreadySettled | Refused | Unknown | Invalid) -> Problem:
    """Why nothing was settled."""
    shape = ResultShape.of(result)
    return Problem(STATUSES[shape.status], shape.text, errors=shape.errors)


def click_key(call: ApiCall) -> str:
    """Names what a request does: the same request sent twice with the same `Idempotency-Key` is the same click. Raises
    `Problem` (422)."""
    person_id = call.principal.person.person_id
    given = idempotency_key(call)
    if not given:
        return f"api:{random_token()[:32]}:{person_id}"
    body = call.given.model_dump_json() if call.given is not None else ""
    whole = "\n".join([given, call.request.method, call.request.path, body])
    return f"api:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}:{person_id}"


def idempotency_key(call: ApiCall) -> str:
    """The caller's own name for the request; empty: none. Raises `Problem` (422)."""
    key = call.request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY:
        raise Problem(422, f"Idempotency-Key: has more than {LONGEST_KEY} characters.")
    return key


def id_in(call: ApiCall, what: str, name: str = "id") -> str:
    """An id of the path. Raises `Problem` (404) for what cannot be one.

    Args:
        what: "approval", "question" and the like.
    """
    given = call.path(name)
    if len(given) > MOST_CHARACTERS_OF_AN_ID or not given.isprintable() or not given.isascii():
        raise Problem(404, f"There’s no such {what} here.")
    return given
