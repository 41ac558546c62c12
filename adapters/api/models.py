"""What the API says and takes, as models: the OpenAPI document is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from adapters.api.bodies import NOT_BLANK, Body
from adapters.shared.wording import why
from bot.conversations import TurnState
from bot.domain import ApprovalView, ClarificationView, OutcomeView, SignInView, ThreadSummary
from bot.files import MOST_FILES
from bot.safe_text import visible, visible_line
from policies.model import LONGEST_CLIENT

ModeName = Literal["readOnly", "default", "safeWrite"]
LONGEST_LINE = 200


class Shape(BaseModel):
    """Something that is answered."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class ProblemShape(Shape):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(frozen=True, extra="allow", title="Problem")
    type: str
    title: str
    status: int
    detail: str
    reference: str
    errors: dict[str, str] = Field(default_factory=dict, description="Field → what is wrong with it.")


class ThreadShape(Shape):
    """A conversation."""

    model_config = ConfigDict(frozen=True, title="Thread")
    id: str
    title: str
    updated_at: float = Field(description="Seconds since the epoch, UTC.")
    waiting: int = Field(description="How many questions to people are open in it.")

    @classmethod
    def of(cls, summary: ThreadSummary) -> ThreadShape:
        """As it stands in a list."""
        title = visible_line(summary.title, LONGEST_LINE)
        return cls(id=summary.thread_id, title=title, updated_at=summary.updated_at, waiting=summary.waiting)


class ThreadListShape(Shape):
    """Conversations, the one in which something happened last first."""

    model_config = ConfigDict(frozen=True, title="ThreadList")
    threads: list[ThreadShape]


class ThreadDetailShape(Shape):
    """A conversation with what was said in it."""

    model_config = ConfigDict(frozen=True, title="ThreadDetail")
    id: str
    title: str
    seen_as: Literal["owner", "approver", "operator"]
    entries: list[dict[str, Any]] = Field(description="Messages and posts, oldest first, as on the page.")


class VoteShape(Shape):
    """One person's vote."""

    model_config = ConfigDict(frozen=True, title="Vote")
    name: str
    verb: Literal["approve", "reject"]
    at: float


class ApprovalShape(Shape):
    """A tool call that waits for people, or what they said."""

    model_config = ConfigDict(frozen=True, title="Approval")
    id: str
    call_id: str
    status: Literal["pending", "approved", "rejected", "expired", "superseded", "withdrawn", "void"]
    server: str
    tool: str
    title: str
    arguments: dict[str, Any]
    masks: int = Field(description="How many secrets are masked in the arguments.")
    risk: list[str]
    requester: str
    client: str = Field(description="What the program calls itself that asked at /mcp; empty: it was asked of the bot.")
    agent: str = Field(description="Which agent of agents.yaml asks; empty: the default one, or a program.")
    may_decide: str
    rule: str
    why: str = Field(description="Why it was asked, in a sentence.")
    quorum: int
    votes: list[VoteShape]
    asked_at: float
    expires_at: float | None
    reason_required: bool
    editable: bool
    reason: str
    result: str
    retry_offered: bool = Field(description="Whether its call failed, and the person who asked for it may retry it.")
    fingerprint: str

    @classmethod
    def of(cls, view: ApprovalView) -> ApprovalShape:
        """As its card shows it."""
        return cls(
            id=view.approval_id,
            call_id=view.call_id,
            status=view.status,
            server=view.server,
            tool=view.tool,
            title=visible_line(view.title, LONGEST_LINE),
            arguments=dict(view.arguments),
            masks=view.masks,
            risk=list(view.risk),
            requester=visible_line(view.requester, LONGEST_LINE),
            client=visible_line(view.client, LONGEST_CLIENT),
            agent=view.agent,
            may_decide=visible(view.may_decide),
            rule=visible(view.rule),
            why=why(view),
            quorum=view.quorum,
            votes=[VoteShape(name=visible_line(v.name, LONGEST_LINE), verb=v.verb, at=v.at) for v in view.votes],
            asked_at=view.asked_at,
            expires_at=view.expires_at,
            reason_required=view.reason_required,
            editable=view.editable,
            reason=visible(view.reason),
            result=visible(view.result),
            retry_offered=view.retry_offered,
            fingerprint=view.fingerprint,
        )


_TASKS_AGENT = "Which agent of agents.yaml asks, in a task of a plan; empty: no task asks."


class ClarificationShape(Shape):
    """A question to the requester: of the model, or of a tool in the middle of a call."""

    model_config = ConfigDict(frozen=True, title="Clarification")
    id: str
    call_id: str
    status: Literal["open", "answered", "declined", "cancelled", "superseded"]
    question: str
    context: str
    server: str = Field(description="The tool server that asks; empty: the model does.")
    fields: list[dict[str, Any]]
    answer_schema: dict[str, Any] = Field(description="JSON Schema of the answer, where a tool asks; else empty.")
    agent: str = Field(description=_TASKS_AGENT)

    @classmethod
    def of(cls, view: ClarificationView) -> ClarificationShape:
        """As its card shows it."""
        return cls(
            id=view.clarification_id,
            call_id=view.call_id,
            status=view.status,
            question=visible(view.question),
            context=visible(view.context),
            server=view.server,
            fields=[field.model_dump(mode="json") for field in view.fields],
            answer_schema=dict(view.schema),
            agent=view.agent,
        )


class SignInShape(Shape):
    """A sign-in that the requester has to do. The link is fetched apart."""

    model_config = ConfigDict(frozen=True, title="SignIn")
    id: str
    call_id: str
    status: Literal["open", "done", "declined", "expired", "superseded"]
    server: str
    service: str
    host: str
    code_wanted: bool
    agent: str = Field(description=_TASKS_AGENT)

    @classmethod
    def of(cls, view: SignInView) -> SignInShape:
        """As its card shows it."""
        return cls(
            id=view.sign_in_id,
            call_id=view.call_id,
            status=view.status,
            server=view.server,
            service=visible_line(view.service, LONGEST_LINE),
            host=view.host,
            code_wanted=view.code_wanted,
            agent=view.agent,
        )


class OutcomeShape(Shape):
    """A call of which it is not known what came of it."""

    model_config = ConfigDict(frozen=True, title="Outcome")
    id: str
    call_id: str
    status: Literal["open", "it_was_done", "try_again", "skip", "superseded"]
    server: str
    tool: str
    arguments: dict[str, Any]
    known: str
    agent: str = Field(description=_TASKS_AGENT)

    @classmethod
    def of(cls, view: OutcomeView) -> OutcomeShape:
        """As its card shows it."""
        return cls(
            id=view.outcome_id,
            call_id=view.call_id,
            status=view.status,
            server=view.server,
            tool=view.tool,
            arguments=dict(view.arguments),
            known=visible(view.known),
            agent=view.agent,
        )


class CallShape(Shape):
    """A tool call of a turn."""

    model_config = ConfigDict(frozen=True, title="Call")
    call_id: str
    server: str
    tool: str
    arguments: dict[str, Any]
    status: Literal["waiting", "running", "done", "failed", "unknown", "not made"]
    result: str
    why: str = Field(description="Why it was not made: denied, rejected, expired, …; else empty.")


class SourceShape(Shape):
    """What an answer cites."""

    model_config = ConfigDict(frozen=True, title="Source")
    number: int = Field(description="Cited as [1] in the answer.")
    name: str = Field(description="Of the document.")
    page: int | None
    section: str | None

    @classmethod
    def all_of(cls, state: TurnState) -> list[SourceShape]:
        """The sources of a turn's answer."""
        return [
            cls(
                number=each.number,
                name=visible_line(each.name, LONGEST_LINE),
                page=each.page,
                section=visible_line(each.section, LONGEST_LINE) if each.section else None,
            )
            for each in state.sources
        ]


SourcesWhereAny = Annotated[
    list[SourceShape],
    Field(
        default_factory=list,
        exclude_if=lambda sources: not sources,
        description="What the answer cites as [1]; left out where it cites nothing.",
    ),
]
"""In contracts of others, which know nothing of them."""


class TurnShape(Shape):
    """What has come of a message."""

    model_config = ConfigDict(frozen=True, title="Turn")
    thread_id: str
    message_id: str
    status: Literal["running", "waiting", "ended"]
    answer: str = Field(description="What the bot said last, in Markdown.")
    sources: list[SourceShape]
    agent: str = Field(description="Which agent of agents.yaml said it; empty: the default one.")
    notices: list[str] = Field(description="Sentences about the message itself: why no turn began, what went wrong.")
    calls: list[CallShape]
    approvals: list[ApprovalShape]
    clarifications: list[ClarificationShape]
    sign_ins: list[SignInShape]
    outcomes: list[OutcomeShape]

    @classmethod
    def of(cls, state: TurnState, message_id: str) -> TurnShape:
        """As it stands."""
        return cls(
            thread_id=state.thread_id,
            message_id=message_id,
            status=state.status,
            answer=visible(state.answer),
            sources=SourceShape.all_of(state),
            agent=state.agent,
            notices=[visible(notice.text) for notice in state.notices],
            calls=[
                CallShape(
                    call_id=call.call_id,
                    server=call.server,
                    tool=call.tool,
                    arguments=dict(call.arguments),
                    status=call.status,
                    result=visible(call.result),
                    why=call.why,
                )
                for call in state.calls
            ],
            approvals=[ApprovalShape.of(view) for view in state.approvals],
            clarifications=[ClarificationShape.of(view) for view in state.clarifications],
            sign_ins=[SignInShape.of(view) for view in state.sign_ins],
            outcomes=[OutcomeShape.of(view) for view in state.outcomes],
        )


# ------------------------------------------------------------------------------------------- what is taken


class OptionsBody(Body):
    """How the turn of a message differs from others. Each can only take away from what is allowed."""

    mode: ModeName | None = Field(None, description="The stricter of it and the configured mode counts.")
    tools: bool | None = Field(None, description="false: no tools.")

    def as_options(self) -> Mapping[str, Any]:
        """As turns keep them."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


AgentName = Annotated[
    str | None,
    Field(description="Which agent of agents.yaml works on it. An unknown name is answered with those that there are."),
]


UploadIds = Annotated[
    list[Annotated[str, Field(max_length=100)]],
    Field(
        max_length=MOST_FILES,
        default_factory=list,
        description="Ids of files that were uploaded with `POST /upload` before.",
    ),
]


class NewMessageBody(Body):
    """A message."""

    text: Annotated[str, Field(min_length=1, max_length=20_000, json_schema_extra=NOT_BLANK)]
    options: OptionsBody = Field(default_factory=OptionsBody)
    agent: AgentName = None
    files: UploadIds


class WaitQuery(Body):
    """How long the answer is waited for."""

    wait: Annotated[float, Field(ge=0, le=300, description="Seconds; 0: not at all.")] = 0.0


class ListQuery(Body):
    """Which conversations."""

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    everybody: Annotated[bool, Field(description="Also those of others: for operators only.")] = False
