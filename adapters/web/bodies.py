"""Bodies of requests: read with limits, checked, and turned into typed values; what cannot be read is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.untrusted_json import MalformedBodyError, json_in, refuse_unsound
from bot.dates import number_in_words
from bot.files import MOST_FILES
from graph.json_values import storable
from translations import gettext as _


class RefusalError(Exception):
    """Ends a request with `status` and `{"error": sentence}`; nothing has been changed."""

    def __init__(self, status: int, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after
        """Seconds after which trying again makes sense; `None`: at no particular time."""


# --------------------------------------------------------------------------------------------- bodies
# Every defect is a `RefusalError`.


LARGEST_BODY = 256 * 1024
"""Bytes of a JSON body."""
LONGEST_TEXT = 20_000
"""Characters of a message."""
LONGEST_REASON = 2_000
"""Characters of a reason for a rejection; Slack's inputs take 3,000."""
DEEPEST = 32
"""How deep a JSON body may nest; no form needs more, and no walker of ours recurses deeper."""
ClientId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Made by the page for each click and message, so that the same one sent twice is known again."""
AnyId = Annotated[str, Field(min_length=1, max_length=500)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WhoBody(_Body):
    """Who somebody is: a local name, or the password."""

    person: AnyId | None = None
    password: Annotated[str, Field(max_length=1_000)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> WhoBody:
        if (self.person is None) == (self.password is None):
            raise ValueError("send either a person or a password")
        return self


class NameAndPasswordBody(_Body):
    """A user's name and password."""

    username: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=1_000)]


class ClickBody(_Body):
    """What a person did once. A click says nothing more than this: its address says the rest."""

    id: ClientId


class AgentBody(ClickBody):
    """Which agent somebody picks."""

    name: AnyId


class MessageBody(ClickBody):
    """A person's message."""

    text: str
    files: Annotated[list[AnyId], Field(max_length=MOST_FILES)] = []
    """Ids of what was uploaded before."""


class TitleBody(ClickBody):
    """What a conversation is to be called."""

    title: Annotated[str, Field(min_length=1, max_length=200)]


class DecisionBody(ClickBody):
    """A click on Approve, Reject, Approve all, or an edited call's form."""

    approvals: Annotated[list[AnyId], Field(min_length=1, max_length=100)]
    verb: Literal["approve", "reject"]
    reason: Annotated[str, Field(max_length=LONGEST_REASON)] = ""
    note: Annotated[str, Field(max_length=LONGEST_REASON)] = ""
    """What whoever approves adds for the model."""
    values: dict[str, Any] | None = None
    always_for: Literal["1 h", "8 h", "7 days"] | None = None

    @model_validator(mode="after")
    def _values_belong_to_one_approval(self) -> DecisionBody:
        alone = self.verb == "approve" and len(self.approvals) == 1
        if self.verb == "approve" and self.reason.strip():
            raise ValueError("a reason goes with a rejection: nothing would keep that of an approval")
        if self.verb == "reject" and self.note.strip():
            raise ValueError("a note goes with an approval: a rejection has its reason")
        if not alone and (self.values is not None or self.always_for is not None):
            raise ValueError("values, and always allowing, go with the approval of one call")
        return self


class HandoverBody(ClickBody):
    """Somebody else is asked to decide."""

    to: AnyId


class AnswerBody(ClickBody):
    """A clarification's form."""

    values: dict[str, Any]


class DismissalBody(ClickBody):
    """No answer to a tool's question."""

    action: Literal["decline", "cancel"]


class OutcomeBody(ClickBody):
    """What came of an attempt whose outcome is unknown."""

    choice: Literal["it_was_done", "try_again", "skip"]


class SignInBody(ClickBody):
    """Whether somebody has signed in."""

    done: bool


class CodeBody(ClickBody):
    """The one-time code of a sign-in."""

    code: Annotated[str, Field(min_length=1, max_length=100)]


BodyT = TypeVar("BodyT", bound=_Body)


async def read_body(request: web.Request, shape: type[BodyT]) -> BodyT:
    """The request's body as `shape`. Raises `RefusalError`: 400 malformed, 408 too slow, 413 too large."""
    if request.content_type != "application/json":
        raise RefusalError(400, "The body must be JSON: send Content-Type: application/json.")
    value = _parse(await _read_bytes(request))
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise RefusalError(400, f"{where}: {first['msg']}.") from None


def checked_text(text: str) -> str:
    """A message's text, unless it is blank (400) or too long (413)."""
    if not text.strip():
        raise RefusalError(400, _("The message is empty."))
    if len(text) > LONGEST_TEXT:
        raise RefusalError(413, _too_long(len(text)))
    return text


def _too_long(length: int) -> str:
    sentence = _("Your message has {count} characters. The limit is {limit}.")
    return sentence.format(count=number_in_words(length), limit=number_in_words(LONGEST_TEXT))


async def _read_bytes(request: web.Request) -> bytes:
    too_large = _("That’s too much to send at once. The limit is {size} KiB.").format(size=LARGEST_BODY // 1024)
    try:
        return await read_whole_body(request, LARGEST_BODY, too_large)
    except BodyNotReadError as error:
        raise RefusalError(error.status, str(error)) from None


def _parse(body: bytes) -> Any:
    """What the body says. Refused is also what JSON can say and the records cannot keep."""
    try:
        value = json_in(body)
        refuse_unsound(value, DEEPEST)
    except MalformedBodyError as error:
        raise RefusalError(400, f"The request is malformed: {error}.") from None
    if value != storable(value):
        raise RefusalError(400, _("The text has a character that can’t be saved (NUL or half a surrogate pair)."))
    return value
