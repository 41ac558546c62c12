"""What went wrong with a language model, in one sentence that any reader may see.

Providers' exceptions carry keys, URLs and request bodies in their texts. None of that reaches a sentence: each is
written here, and the exception is kept as the cause, for the log alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from translations import gettext as _


class Trouble(StrEnum):
    """The ways in which asking a language model fails."""

    NOT_CONFIGURED = "not configured"
    WRONG_KEY = "wrong key"
    NO_ACCESS = "no access"
    UNKNOWN_MODEL = "unknown model"
    QUOTA_GONE = "quota gone"
    RATE_LIMITED = "rate limited"
    TOO_LONG = "too long"
    FILTERED = "filtered"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    UNREACHABLE = "unreachable"
    SERVER_FAILED = "server failed"
    BROKE_OFF = "broke off"
    MALFORMED = "malformed"
    TOO_MUCH = "too much"
    UNEXPECTED = "unexpected"


TRANSIENT = frozenset(
    {
        Trouble.RATE_LIMITED,
        Trouble.TIMED_OUT,
        Trouble.UNREACHABLE,
        Trouble.SERVER_FAILED,
        Trouble.BROKE_OFF,
        Trouble.MALFORMED,
    }
)
"""What may be gone at the next try."""


def _sentence(trouble: Trouble) -> str:
    """What people read of it."""
    sentences = {
        Trouble.NOT_CONFIGURED: _("The language model is not set up. Tell your admin to check LLM_MODEL."),
        Trouble.WRONG_KEY: _("Model key rejected. Tell your admin."),
        Trouble.NO_ACCESS: _("Our model key has no access to this model. Tell your admin."),
        Trouble.UNKNOWN_MODEL: _("Unknown model. Tell your admin to check LLM_MODEL and the service’s address."),
        Trouble.QUOTA_GONE: _("The model quota is used up. Tell your admin to check the plan and billing."),
        Trouble.RATE_LIMITED: _("The language model is busy. Try again in a minute."),
        Trouble.TOO_LONG: _("This conversation is too long for the language model. Start a new one."),
        Trouble.FILTERED: _("The model’s content filter stopped the answer. Rephrase your request."),
        Trouble.REFUSED: _("The language model refused our request. Tell your admin to check the log."),
        Trouble.TIMED_OUT: _("The language model took too long. Try again."),
        Trouble.UNREACHABLE: _("Can’t reach the language model. Try again in a minute."),
        Trouble.SERVER_FAILED: _("Model provider trouble. Try again in a minute."),
        Trouble.BROKE_OFF: _("The language model broke off mid-answer. Try again."),
        Trouble.MALFORMED: _("The language model’s answer was unreadable. Try again."),
        Trouble.TOO_MUCH: _("The answer is too long to handle. Ask for a smaller part."),
        Trouble.UNEXPECTED: _("Something went wrong with the language model. Try again."),
    }
    return sentences[trouble]


_BY_STATUS = {
    401: Trouble.WRONG_KEY,
    402: Trouble.QUOTA_GONE,
    403: Trouble.NO_ACCESS,
    404: Trouble.UNKNOWN_MODEL,
    408: Trouble.TIMED_OUT,
    409: Trouble.SERVER_FAILED,
    413: Trouble.TOO_LONG,
    429: Trouble.RATE_LIMITED,
    504: Trouble.TIMED_OUT,
}
_BY_CODE = {
    "invalid_api_key": Trouble.WRONG_KEY,
    "model_not_found": Trouble.UNKNOWN_MODEL,
    "insufficient_quota": Trouble.QUOTA_GONE,
    "billing_hard_limit_reached": Trouble.QUOTA_GONE,
    "rate_limit_exceeded": Trouble.RATE_LIMITED,
    "context_length_exceeded": Trouble.TOO_LONG,
    "content_filter": Trouble.FILTERED,
    "content_policy_violation": Trouble.FILTERED,
    "server_error": Trouble.SERVER_FAILED,
}
"""OpenAI's `error.code` and `error.type`, https://platform.openai.com/docs/guides/error-codes; they say more than
the status (an empty account is a 429, an error within a stream has no status at all)."""


class ModelProblem(Exception):  # noqa: N818 (named like PostFailed)
    """A language model could not be asked. The provider's own exception is the cause; show only `sentence`."""

    def __init__(self, trouble: Trouble, *, sentence: str | None = None, retry_after: float | None = None) -> None:
        self.trouble = trouble
        self.sentence = sentence or _sentence(trouble)
        """Safe for everybody to read: no key, no URL, nothing of the request."""
        self.retry_after = retry_after
        """Seconds that the service asked to wait; `None`: it did not say."""
        super().__init__(self.sentence)

    @property
    def transient(self) -> bool:
        """Whether the next try may succeed."""
        return self.trouble in TRANSIENT


def explain_model_error(error: BaseException) -> ModelProblem:
    """The problem behind whatever a provider's client raised. Raise it `from` the original, so that logs have both."""
    if isinstance(error, ModelProblem):
        return error
    return ModelProblem(_trouble(error), retry_after=_retry_after(error))


def _trouble(error: BaseException) -> Trouble:
    # Providers' exceptions are told apart by what they carry, so that no provider has to be imported for it.
    names = {cls.__name__ for cls in type(error).__mro__}
    status = _status(error)
    if "ContextOverflowError" in names:
        return Trouble.TOO_LONG
    for code in _codes(error):
        if code in _BY_CODE:
            return _BY_CODE[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is not None:
        return Trouble.SERVER_FAILED if status >= 500 else Trouble.REFUSED
    if isinstance(error, TimeoutError) or names & {"APITimeoutError", "TimeoutException"}:
        return Trouble.TIMED_OUT
    if names & {"RemoteProtocolError", "ReadError"} or _cause_names(error) & {"RemoteProtocolError", "ReadError"}:
        return Trouble.BROKE_OFF
    if isinstance(error, ConnectionError | OSError) or names & {"APIConnectionError", "TransportError"}:
        return Trouble.UNREACHABLE
    if names & {"APIError", "ServiceError"}:  # an error that the service sent within the stream, without a code we know
        return Trouble.SERVER_FAILED
    # A client that stumbles over the shape of an answer; JSONDecodeError and ValidationError are ValueErrors.
    if isinstance(error, ValueError | KeyError | TypeError | AttributeError | IndexError):
        return Trouble.MALFORMED
    return Trouble.UNEXPECTED


def _status(error: BaseException) -> int | None:
    for value in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _codes(error: BaseException) -> tuple[str, ...]:
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    places: tuple[Any, ...] = (body, inner)
    found = [place.get(key) for place in places if isinstance(place, Mapping) for key in ("code", "type")]
    return tuple(value for value in (getattr(error, "code", None), *found) if isinstance(value, str))


def _cause_names(error: BaseException) -> set[str]:
    names: set[str] = set()
    cause = error.__cause__
    while cause is not None:
        names |= {cls.__name__ for cls in type(cause).__mro__}
        cause = cause.__cause__
    return names


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    if (milliseconds := _seconds(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    return _seconds(headers.get("retry-after"))


def _seconds(value: str | None) -> float | None:
    """`Retry-After` as seconds from now: a number or an HTTP date (RFC 9110, 10.2.3)."""
    if not value:
        return None
    try:
        seconds = float(value)
    except (ValueError, TypeError):
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
