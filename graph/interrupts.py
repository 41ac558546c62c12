"""What the graph stops for, and what it may be resumed with; and the typed inputs of a form.

Interrupt values and resumes cross a restart as plain JSON (strict msgpack turns other types into dicts), so each is a
pydantic model that is dumped on the way in and validated on the way out.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from graph.presentation import NOTHING_KNOWN, CallPresentation, KeptJson
from policies.model import Ask, Risk

# --------------------------------------------------------------------------------- inputs of a form


class FieldType(StrEnum):
    """The kinds of input that every platform can draw."""

    TEXT = "text"
    CHOICE = "choice"
    DATE = "date"
    """ISO 8601 date, `2026-11-21`."""
    TIME = "time"
    """24-hour `HH:MM`."""
    DATE_TIME = "date-time"
    """ISO 8601 local date and time, `2026-11-21T09:00`, or with an offset where the schema wants one."""
    NUMBER = "number"
    INTEGER = "integer"
    YES_NO = "yes-no"
    PERSON = "person"
    """A user of the chat platform, by the platform's own id; a text input where there is no picker."""
    CHANNEL = "channel"
    """A channel of the chat platform, likewise."""
    JSON = "json"
    """Anything nested, typed as JSON text."""


class FormField(KeptJson):
    """One input of a form."""

    name: str = Field(min_length=1, max_length=100)
    label: str = ""
    type: FieldType = FieldType.TEXT
    required: bool = True
    options: tuple[str, ...] = ()
    """What may be chosen, for `choice`; a `choice` without options is a text input. For `json`: the value is a list of
    some of these, and a platform that can draw that may send the list itself."""
    help: str = ""
    multiline: bool = False
    default: Any = None


MOST_OFFERED = 20_000
"""What the options of all inputs of one form may come to: the characters of each, and 15 for it. To draw so many takes
a platform 20 ms at most, whatever characters they are of."""


def as_far_as_offered(fields: Iterable[FormField]) -> tuple[FormField, ...]:
    """The inputs of a form, those without options whose options are too much beside the ones before: they are typed.

    A schema of a few kilobytes may offer the same long list in each of its properties, and a model may write very many.
    """
    left = MOST_OFFERED
    offered: list[FormField] = []
    for field in fields:
        size = sum(len(option) + 15 for option in field.options)
        fits = size <= left
        left -= size if fits else 0
        offered.append(field if fits else field.model_copy(update={"options": ()}))
    return tuple(offered)


class _Strict(KeptJson):
    """What is understood only in part is not followed: a call would be made in another way than was approved."""

    model_config = ConfigDict(extra="forbid")


# ------------------------------------------------------------------------------------------------ what is asked
class ApprovalAsked(_Strict):
    """A tool call waits for people."""

    kind: Literal["approval"] = "approval"
    call_id: str
    round: int
    """1 for the first asking; one more each time the call is judged anew and must be asked again."""
    server: str
    tool: str
    title: str
    """The tool's title for people, as its server gives it; may be empty."""
    arguments: dict[str, Any]
    digest: str
    """Digest of server, configuration, tool, schema and arguments: what is approved is exactly this."""
    risk: tuple[Risk, ...]
    ask: Ask
    requesters: tuple[str, ...]
    """The requester of the turn, and whoever edited the arguments."""
    quote: str = ""
    """The requester's own words that ask for it, as the model quoted them and as they were found in what they wrote;
    empty outside of `safeWrite`."""
    client: str = ""
    """Name of the program through which the requester's agent asks, as it calls itself; empty: our own agent asks."""
    presentation: CallPresentation = NOTHING_KNOWN
    agent: str = ""
    """Name of our own agent that asks; empty: the default one, or a program."""


class ClarificationAsked(_Strict):
    """The model needs to know something from the requester."""

    kind: Literal["clarification"] = "clarification"
    call_id: str
    question: str
    context: str = ""
    fields: tuple[FormField, ...] = ()
    requester: str


class SignInAsked(_Strict):
    """One person must sign in before the tool can act for them. The link itself is never in the graph's state."""

    kind: Literal["sign_in"] = "sign_in"
    call_id: str
    sign_in_id: str
    server: str
    requester: str


class ElicitationAsked(_Strict):
    """A tool asks the requester something in the middle of its call."""

    kind: Literal["elicitation"] = "elicitation"
    call_id: str
    number: int
    """Number of the question within its call, from 1."""
    server: str
    message: str
    fields: tuple[FormField, ...] = ()
    schema_: dict[str, Any] = Field(default_factory=dict)
    """JSON schema that the answer must satisfy."""
    requester: str


class OutcomeUnknownAsked(_Strict):
    """The outcome of an attempt is unknown: only a person can say what came of it."""

    kind: Literal["outcome"] = "outcome"
    call_id: str
    attempt: int
    server: str
    tool: str
    title: str
    arguments: dict[str, Any]
    requester: str


class PlannedTask(_Strict):
    """A part of a request that one agent does."""

    id: str
    """Names it within its plan."""
    agent: str
    """Name of the agent that does it."""
    instruction: str
    depends_on: tuple[str, ...] = ()
    """Ids of the tasks whose results it needs, which are done before it."""


class PlanAsked(_Strict):
    """The tasks of a plan are to be done, each in a thread of its own."""

    kind: Literal["plan"] = "plan"
    call_id: str
    tasks: tuple[PlannedTask, ...]
    """In the order in which they can be done: each after those it depends on."""
    requester: str
    turn: dict[str, Any]
    """The `graph.state.Turn` that they are part of."""
    said: tuple[str, ...] = ()
    """What the requester wrote in it, without what they quoted: where a call needs their own words, these are theirs,
    and the instructions of tasks are not."""


Asked = Annotated[
    ApprovalAsked | ClarificationAsked | ElicitationAsked | SignInAsked | OutcomeUnknownAsked | PlanAsked,
    Field(discriminator="kind"),
]
asked_adapter: TypeAdapter[Asked] = TypeAdapter(Asked)


# ------------------------------------------------------------------------------------------------ what is answered
class Approved(_Strict):
    """The people who had to have approved."""

    kind: Literal["approved"] = "approved"
    by: tuple[str, ...]
    """Names for people to read."""
    arguments: dict[str, Any] | None = None
    """The arguments as edited by an approver; `None`: as asked."""
    edited_by: str | None = None
    """Person id of whoever edited."""
    notes: tuple[tuple[str, str], ...] = ()
    """What those who approved added for the model: name and words of each."""


class Rejected(_Strict):
    """Somebody who may decide said no."""

    kind: Literal["rejected"] = "rejected"
    by: str
    reason: str = ""


class Expired(_Strict):
    """Nobody decided in time."""

    kind: Literal["expired"] = "expired"


class Superseded(_Strict):
    """The requester went on to something else, or the turn was ended."""

    kind: Literal["superseded"] = "superseded"
    reason: str = ""


class Withdrawn(_Strict):
    """The requester took the call back."""

    kind: Literal["withdrawn"] = "withdrawn"
    by: str
    """Name of the requester, for people to read."""


class Answered(_Strict):
    """The requester's answer to a clarification."""

    kind: Literal["answered"] = "answered"
    text: str = ""
    values: dict[str, Any] = Field(default_factory=dict)


class Dismissed(_Strict):
    """The requester does not answer a tool's question."""

    kind: Literal["dismissed"] = "dismissed"
    action: Literal["decline", "cancel"]


class SignedIn(_Strict):
    """The person has signed in; the call is to be tried again."""

    kind: Literal["signed_in"] = "signed_in"


class Declined(_Strict):
    """The person does not want to sign in."""

    kind: Literal["declined"] = "declined"


class OutcomeSettled(_Strict):
    """What a person says came of an attempt whose outcome is unknown."""

    kind: Literal["outcome_settled"] = "outcome_settled"
    choice: Literal["it_was_done", "try_again", "skip"]
    by: str


class TaskEnding(_Strict):
    """What came of a task."""

    id: str
    agent: str
    state: Literal["done", "failed", "not_run", "stopped"]
    """`not_run`: one that it depends on was not done."""
    text: str
    """What the agent said last, or why there is no result."""
    sources: tuple[str, ...] = ()
    """The tools that it called and that answered, each `{server} › {tool}`; of one that was broken off also those of
    which nobody knows what came, marked so."""
    owner: str | None = None
    """Person id, when `text` is for that person alone."""


class PlanEnded(_Strict):
    """All tasks of a plan have ended."""

    kind: Literal["plan_ended"] = "plan_ended"
    tasks: tuple[TaskEnding, ...]


ApprovalAnswer = Annotated[Approved | Rejected | Expired | Withdrawn | Superseded, Field(discriminator="kind")]
ElicitationAnswer = Annotated[Answered | Dismissed | Superseded, Field(discriminator="kind")]
ClarificationAnswer = Annotated[Answered | Superseded, Field(discriminator="kind")]
SignInAnswer = Annotated[SignedIn | Declined | Expired | Superseded, Field(discriminator="kind")]
OutcomeAnswer = Annotated[OutcomeSettled | Superseded, Field(discriminator="kind")]
PlanAnswer = Annotated[PlanEnded | Superseded, Field(discriminator="kind")]
InterruptAnswer = (
    Approved
    | Rejected
    | Expired
    | Withdrawn
    | Superseded
    | Answered
    | Dismissed
    | SignedIn
    | Declined
    | OutcomeSettled
    | PlanEnded
)
approval_answer: TypeAdapter[ApprovalAnswer] = TypeAdapter(ApprovalAnswer)
clarification_answer: TypeAdapter[ClarificationAnswer] = TypeAdapter(ClarificationAnswer)
elicitation_answer: TypeAdapter[ElicitationAnswer] = TypeAdapter(ElicitationAnswer)
sign_in_answer: TypeAdapter[SignInAnswer] = TypeAdapter(SignInAnswer)
outcome_answer: TypeAdapter[OutcomeAnswer] = TypeAdapter(OutcomeAnswer)
plan_answer: TypeAdapter[PlanAnswer] = TypeAdapter(PlanAnswer)
