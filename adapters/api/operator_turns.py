"""`/api/v1/operator/waiting` and `/turns`: what waits for anybody, and all that happened in a turn; for operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.bodies import Body
from adapters.api.models import LONGEST_LINE, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.own import UsageTotalShape
from adapters.api.results import ONLY_OPERATORS, for_operators
from adapters.shared.problems import Problem
from bot.console.turns import (
    LONGEST_SHOWN,
    MOST_LISTED,
    ModelUseOf,
    TurnCall,
    TurnEvent,
    TurnPage,
    TurnSummary,
    TurnWord,
    WholeTurn,
)
from bot.console.waiting import (
    FROM_THE_BEGINNING,
    MOST_QUESTIONS,
    MOST_WAITING,
    EverythingThatWaits,
    WaitingApproval,
    WaitingByRule,
    WaitingQuestion,
)
from bot.safe_text import visible, visible_line
from bot.services import Services
from graph.usage import LONGEST_MODEL_NAME
from policies.model import LONGEST_CLIENT

LONGEST_TURN = 2_000
"""Characters of a turn's id: the key of a message, which its platform makes."""


class OperatorVoteShape(Shape):
    """One person's vote on an approval."""

    model_config = ConfigDict(frozen=True, title="OperatorVote")
    person_id: str
    name: str
    verb: Literal["approve", "reject"]
    authority: str = Field(description="Which entry of the approvers permitted it.")
    reason: str
    at: float


class WaitingApprovalShape(Shape):
    """An approval that waits."""

    model_config = ConfigDict(frozen=True, title="WaitingApproval")
    id: str
    call_id: str
    turn: str = Field(description="Its turn, for `/operator/turns/{id}`.")
    thread_id: str
    server: str
    tool: str
    title: str
    risk: list[str]
    requester_id: str
    requester: str
    client: str = Field(description="What the program calls itself that asks at /mcp; empty: our own agent asks.")
    agent: str
    for_whom: str = Field(description="Who may decide, in words.")
    approvers: list[str] = Field(description="The same, as the policy names them.")
    handed_to: list[str]
    rule: str
    why: str
    quorum: int
    votes: list[OperatorVoteShape]
    asked_at: float
    expires_at: float | None
    escalates_at: float | None

    @classmethod
    def of(cls, waits: WaitingApproval) -> WaitingApprovalShape:
        """As operators see it."""
        return cls(
            id=waits.approval_id,
            call_id=waits.call_id,
            turn=waits.turn,
            thread_id=waits.thread_id,
            server=waits.server,
            tool=waits.tool,
            title=visible_line(waits.title, LONGEST_LINE),
            risk=list(waits.risk),
            requester_id=waits.requester_id,
            requester=visible_line(waits.requester, LONGEST_LINE),
            client=visible_line(waits.client, LONGEST_CLIENT),
            agent=waits.agent,
            for_whom=visible(waits.for_whom),
            approvers=list(waits.approvers),
            handed_to=[visible_line(name, LONGEST_LINE) for name in waits.handed_to],
            rule=visible(waits.rule),
            why=visible(waits.why),
            quorum=waits.quorum,
            votes=[
                OperatorVoteShape(
                    person_id=vote.person_id,
                    name=visible_line(vote.name, LONGEST_LINE),
                    verb="approve" if vote.verb == "approve" else "reject",
                    authority=visible_line(vote.authority, LONGEST_LINE),
                    reason=visible(vote.reason),
                    at=vote.at,
                )
                for vote in waits.votes
            ],
            asked_at=waits.asked_at,
            expires_at=waits.expires_at,
            escalates_at=waits.escalates_at,
        )


class WaitingQuestionShape(Shape):
    """A question, a sign-in or an unknown outcome that waits for one person."""

    model_config = ConfigDict(frozen=True, title="WaitingQuestion")
    kind: Literal["clarification", "sign_in", "outcome"]
    id: str
    call_id: str
    turn: str
    thread_id: str
    person_id: str
    person: str
    server: str = Field(description="Empty: the model asks.")
    text: str = Field(description="The question, the service, or the tool.")
    since: float

    @classmethod
    def of(cls, waits: WaitingQuestion) -> WaitingQuestionShape:
        """As operators see it."""
        return cls(
            kind=waits.kind,
            id=waits.subject,
            call_id=waits.call_id,
            turn=waits.turn,
            thread_id=waits.thread_id,
            person_id=waits.person_id,
            person=visible_line(waits.person, LONGEST_LINE),
            server=waits.server,
            text=visible(waits.text[:LONGEST_SHOWN]),
            since=waits.since,
        )


class WaitingByRuleShape(Shape):
    """How many approvals wait by one rule."""

    model_config = ConfigDict(frozen=True, title="WaitingByRule")
    rule: str
    count: int
    since: float = Field(description="When the oldest was asked.")

    @classmethod
    def of(cls, waits: WaitingByRule) -> WaitingByRuleShape:
        """As operators see it."""
        return cls(rule=visible(waits.rule), count=waits.count, since=waits.since)


class EverythingWaitingShape(Shape):
    """What waits for anybody."""

    model_config = ConfigDict(frozen=True, title="EverythingWaiting")
    approvals: list[WaitingApprovalShape] = Field(description="Those that wait longest first.")
    next: str = Field(description="`after` of the next page; empty: this is the last one.")
    by_rule: list[WaitingByRuleShape] = Field(description="All that wait, those with the most first.")
    questions: list[WaitingQuestionShape] = Field(
        description="On the first page only, those that wait longest first; no more than `most_questions` of each kind."
    )
    most_questions: int

    @classmethod
    def of(cls, found: EverythingThatWaits) -> EverythingWaitingShape:
        """As operators see it."""
        return cls(
            approvals=[WaitingApprovalShape.of(each) for each in found.approvals],
            next=f"{found.following[0]!r}:{found.following[1]}" if found.following is not None else "",
            by_rule=[WaitingByRuleShape.of(each) for each in found.by_rule],
            questions=[WaitingQuestionShape.of(each) for each in found.questions],
            most_questions=MOST_QUESTIONS,
        )


class TurnSummaryShape(Shape):
    """A turn in a list."""

    model_config = ConfigDict(frozen=True, title="TurnSummary")
    id: str = Field(description="Key of the message, or of another agent's call, that began it.")
    thread_id: str
    platform: str
    channel: str = Field(description="Empty: a direct chat.")
    kind: Literal["message", "call"]
    person_id: str
    person: str
    text: str
    files: list[str] = Field(description="Names of the files that came with the message.")
    at: float
    status: TurnWord = Field(
        description="failed: people were told that something went wrong, or a plan that its task failed. parked: it "
        "was given up."
    )
    cause: str = Field(description="Of the last failure of what was tried again or parked.")
    reference: str = Field(description="What people were told with a failure.")

    @classmethod
    def of(cls, turn: TurnSummary) -> TurnSummaryShape:
        """As operators see it."""
        return cls(
            id=turn.turn,
            thread_id=turn.thread_id,
            platform=turn.platform,
            channel=turn.channel,
            kind="call" if turn.kind == "call" else "message",
            person_id=turn.person_id,
            person=visible_line(turn.person, LONGEST_LINE),
            text=visible(turn.text),
            files=[visible_line(name, LONGEST_LINE) for name in turn.files],
            at=turn.at,
            status=turn.status,
            cause=visible(turn.cause),
            reference=turn.reference,
        )


class TurnListShape(Shape):
    """Turns, the newest first."""

    model_config = ConfigDict(frozen=True, title="TurnList")
    turns: list[TurnSummaryShape]
    next: str = Field(description="`before` of the next page; empty: this is the last one.")

    @classmethod
    def of(cls, page: TurnPage) -> TurnListShape:
        """As operators see it."""
        return cls(turns=[TurnSummaryShape.of(each) for each in page.turns], next=page.following)


class TurnCallShape(Shape):
    """A tool call of a turn, also one about which nobody was asked."""

    model_config = ConfigDict(frozen=True, title="TurnCall")
    call_id: str
    server: str
    tool: str
    title: str
    agent: str
    client: str
    arguments: dict[str, Any] | None = Field(description="Secrets are masked; null: too long, or not known any more.")
    mode: str
    verdict: Literal["", "allow", "ask", "deny"]
    rule: str
    source: str
    why: str
    status: Literal["waiting", "running", "done", "failed", "unknown", "nothing", "not made"]
    ended: str = Field(description="Of a call that was not made: denied, rejected, expired, …; else empty.")
    result: str
    characters: int = Field(description="Of the result, where it is longer than what is shown; else 0.")
    attempts: int
    waited: float | None = Field(description="Seconds for which people were asked; null: nobody was.")
    seconds: float | None = Field(description="Of the last attempt.")

    @classmethod
    def of(cls, call: TurnCall) -> TurnCallShape:
        """As operators see it."""
        return cls(
            call_id=call.call_id,
            server=call.server,
            tool=call.tool,
            title=visible_line(call.title, LONGEST_LINE),
            agent=call.agent,
            client=visible_line(call.client, LONGEST_CLIENT),
            arguments=dict(call.arguments) if call.arguments is not None else None,
            mode=call.mode,
            verdict=call.verdict,
            rule=visible(call.rule),
            source=call.source,
            why=visible(call.why),
            status=call.status,
            ended=call.ended,
            result=visible(call.result),
            characters=call.characters,
            attempts=call.attempts,
            waited=call.waited,
            seconds=call.seconds,
        )


class TurnEventShape(Shape):
    """Something that happened in a turn."""

    model_config = ConfigDict(frozen=True, title="TurnEvent")
    at: float
    kind: Literal[
        "message",
        "asked",
        "vote",
        "settled",
        "began",
        "ended",
        "not made",
        "task",
        "said",
        "notice",
        "read",
        "stopped",
        "went on",
    ]
    call_id: str
    person_id: str
    person: str
    subject: str = Field(description="Id of the approval, question, sign-in, attempt or task.")
    what: str = Field(
        description="What is asked, a vote’s verb (edited: approved with changes), how it ended, a notice’s tone, what "
        "was stopped (turn, or everything, by an operator)."
    )
    text: str

    @classmethod
    def of(cls, event: TurnEvent) -> TurnEventShape:
        """As operators see it."""
        return cls(
            at=event.at,
            kind=event.kind,
            call_id=event.call_id,
            person_id=event.person_id,
            person=visible_line(event.person, LONGEST_LINE),
            subject=event.subject,
            what=event.what,
            text=visible(event.text),
        )


class ModelUseShape(UsageTotalShape):
    """What one agent of a turn has used of one model."""

    model_config = ConfigDict(frozen=True, title="ModelUse")
    agent: str

    @classmethod
    def of_model(cls, use: ModelUseOf) -> ModelUseShape:
        """As operators see it."""
        total = UsageTotalShape.of(use.total).model_dump()
        return cls(**{**total, "key": visible_line(use.model, LONGEST_MODEL_NAME), "agent": use.agent})


class WholeTurnShape(Shape):
    """All that happened in a turn."""

    model_config = ConfigDict(frozen=True, title="WholeTurn")
    turn: TurnSummaryShape
    text: str = Field(description="What was written, up to 2,000 characters.")
    calls: list[TurnCallShape] = Field(description="As the model made them, 200 at most.")
    events: list[TurnEventShape] = Field(description="In the order in which they happened.")
    models: list[ModelUseShape] = Field(description="Usage by agent and model (`key`).")
    total: UsageTotalShape
    currency: str = Field(description="ISO 4217; empty: there are no prices.")

    @classmethod
    def of(cls, whole: WholeTurn) -> WholeTurnShape:
        """As operators see it."""
        return cls(
            turn=TurnSummaryShape.of(whole.summary),
            text=visible(whole.text),
            calls=[TurnCallShape.of(each) for each in whole.calls],
            events=[TurnEventShape.of(each) for each in whole.events],
            models=[ModelUseShape.of_model(each) for each in whole.models],
            total=UsageTotalShape.of(whole.total),
            currency=whole.currency,
        )


class WaitingQuery(Body):
    """Which approvals."""

    rule: Annotated[str, Field(max_length=LONGEST_LINE, description="Only those that this rule asks for.")] | None = (
        None
    )
    after: Annotated[
        str, Field(pattern=r"^([0-9]+(\.[0-9]+)?:[!-~]{1,200})?$", description="`next` of the page before.")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_WAITING)] = 50

    @property
    def position(self) -> tuple[float, str]:
        """As the service takes it."""
        asked_at, _, approval_id = self.after.partition(":")
        return (float(asked_at), approval_id) if self.after else FROM_THE_BEGINNING


class TurnsQuery(Body):
    """Which turns; at most one of `thread_id`, `person`, `card` and `reference` counts, in this order."""

    thread_id: Annotated[str, Field(max_length=LONGEST_TURN)] | None = None
    person: (
        Annotated[str, Field(max_length=LONGEST_TURN, description="A person id: the turns of that account.")] | None
    ) = None
    card: (
        Annotated[
            str,
            Field(
                max_length=LONGEST_LINE,
                description="Id of one of its cards: of an approval, a question, a sign-in, an attempt or a plan.",
            ),
        ]
        | None
    ) = None
    reference: (
        Annotated[str, Field(pattern="^[0-9a-f]{8}$", description="As people were told with a failure.")] | None
    ) = None
    before: Annotated[
        str, Field(pattern=r"^[0-9]{0,18}(\.[0-9]{1,12})?$", description="`next` of the page before.")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50


class OperatorTurns:
    """What waits and what has happened, for operators."""

    def __init__(self, services: Services) -> None:
        self._console = services.console

    def operations(self) -> Sequence[Operation]:
        """What can be read."""
        return [
            Operation(
                "GET",
                "/api/v1/operator/waiting",
                "listEverythingThatWaits",
                "Lists what waits for anybody; for operators. The audit log says that you did.",
                self.waiting,
                {200: Answer("What waits.", EverythingWaitingShape)},
                query=WaitingQuery,
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/turns",
                "listTurnsOfEverybody",
                "Lists turns, whoever began them; for operators. The audit log says that you did.",
                self.turns,
                {200: Answer("The turns.", TurnListShape)},
                query=TurnsQuery,
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/turns/{id}",
                "getWholeTurn",
                "Says all that happened in a turn; for operators. The audit log says that you did.",
                self.turn,
                {200: Answer("The turn.", WholeTurnShape)},
                tag="operator",
            ),
        ]

    async def waiting(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/waiting`."""
        query = call.query(WaitingQuery)
        found = await self._console.waiting.everything(call.principal.person, query.rule, query.position, query.limit)
        return json_answer(EverythingWaitingShape.of(for_operators(found)))

    async def turns(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/turns`."""
        query, person, turns = call.query(TurnsQuery), call.principal.person, self._console.turns
        if query.thread_id is not None:
            page = await turns.newest(person, query.thread_id, _number(query.before), query.limit)
        elif query.person is not None:
            page = await turns.of_person(person, query.person, query.before, query.limit)
        elif query.card is not None:
            page = await turns.of_card(person, query.card)
        elif query.reference is not None:
            page = await turns.with_reference(person, query.reference)
        else:
            page = await turns.newest(person, None, _number(query.before), query.limit)
        return json_answer(TurnListShape.of(for_operators(page)))

    async def turn(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/turns/{id}`."""
        turn = call.path("id")
        whole = await self._console.turns.whole(call.principal.person, turn) if len(turn) <= LONGEST_TURN else "unknown"
        if whole is None:
            raise Problem(403, ONLY_OPERATORS)
        if whole == "unknown":
            raise Problem(404, "There’s no such turn.")
        return json_answer(WholeTurnShape.of(whole))


def _number(before: str) -> str:
    return before.partition(".")[0]
