"""`/api/v1/approvals`: what waits for decisions, and the decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import ConfigDict, Field, model_validator

from adapters.api.bodies import Body
from adapters.api.models import ApprovalShape, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.results import (
    MOST_CHARACTERS_OF_AN_ID,
    SAME_KEY,
    SETTLING,
    STATUSES,
    ResultShape,
    click_key,
    id_in,
    refused,
    settled,
)
from adapters.shared.live.entries import form_json
from adapters.shared.problems import Problem
from bot.approvals.decisions import LONGEST_REASON
from bot.approvals.retries import retry_key
from bot.domain import ApprovalView, Choice, ClickResult, Decision, Form, RetryRequest, Shown, Unknown
from bot.queries import no_approval
from bot.services import Services

MOST_AT_ONCE = 100
"""Decisions in one request."""


class DecisionForm(Body):
    """What is decided."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"verb": {"const": "reject"}}},
            "then": {"properties": {"arguments": {"type": "null"}, "note": {"maxLength": 0}}},
            "else": {"properties": {"reason": {"maxLength": 0}}},
        }
    )
    verb: Literal["approve", "reject"]
    reason: Annotated[str, Field(max_length=LONGEST_REASON, description="Of a rejection.")] = ""
    note: Annotated[
        str,
        Field(
            max_length=LONGEST_REASON,
            description="Of an approval: words that the model gets with the result. The call runs as approved.",
        ),
    ] = ""
    arguments: dict[str, Any] | None = Field(
        None, description="To approve with other arguments: all values of the form, by the names of its fields."
    )

    @model_validator(mode="after")
    def _what_belongs_to_which(self) -> DecisionForm:
        if self.verb == "approve" and self.reason.strip():
            raise ValueError("a reason goes with a rejection, a note with an approval")
        if self.verb == "reject" and self.note.strip():
            raise ValueError("a note goes with an approval, a reason with a rejection")
        if self.verb == "reject" and self.arguments is not None:
            raise ValueError("arguments go with an approval")
        return self

    def choice(self, approval_id: str) -> Choice:
        """As the service takes it."""
        return Choice(approval_id, self.verb, self.reason, self.arguments, note=self.note)


class NamedDecisionForm(DecisionForm):
    """What is decided about one of several."""

    approval_id: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS_OF_AN_ID)]


class DecisionsForm(Body):
    """Decisions, each about another approval."""

    decisions: Annotated[
        list[NamedDecisionForm], Field(min_length=1, max_length=MOST_AT_ONCE, json_schema_extra={"uniqueItems": True})
    ]

    @model_validator(mode="after")
    def _each_once(self) -> DecisionsForm:
        if len({each.approval_id for each in self.decisions}) < len(self.decisions):
            raise ValueError("an approval is named twice")
        return self


class DecidedShape(ResultShape):
    """What came of a decision."""

    model_config = ConfigDict(frozen=True, title="Decided")
    approval_id: str


class RetriedShape(ResultShape):
    """A call that is requested again."""

    model_config = ConfigDict(frozen=True, title="Retried")
    message_id: str = Field(description="The message that requests it, in the conversation of the approval.")


class DecisionsShape(Shape):
    """What came of several decisions."""

    model_config = ConfigDict(frozen=True, title="Decisions")
    results: dict[str, ResultShape] = Field(description="By approval id.")


class ListedApprovalShape(ApprovalShape):
    """An approval in a list."""

    model_config = ConfigDict(frozen=True, title="ListedApproval")
    thread_id: str
    you_may_decide: bool
    unread: int = Field(description="Characters of arguments that are too long for a list: get the approval itself.")


class ApprovalListShape(Shape):
    """Approvals, the newest first."""

    model_config = ConfigDict(frozen=True, title="ApprovalList")
    approvals: list[ListedApprovalShape]
    more: int = Field(description="How many more there are to decide.")


class FormShape(Shape):
    """A form to fill in."""

    model_config = ConfigDict(frozen=True, title="Form", extra="allow")
    title: str
    fields: list[dict[str, Any]]
    values: dict[str, Any]


class ApprovalsQuery(Body):
    """Which approvals."""

    status: Annotated[
        Literal["pending", "settled"],
        Field(description="pending: what you may decide, and what you have asked for. settled: what you had asked for"),
    ] = "pending"
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class ApprovalResources:
    """Approvals that whoever asks may decide, or has asked for."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> Sequence[Operation]:
        """What can be done with them."""
        approval = "/api/v1/approvals/{id}"
        return [
            Operation(
                "GET",
                "/api/v1/approvals",
                "listApprovals",
                "Lists what you may decide, and what you have asked for that waits.",
                self.list,
                {200: Answer("The approvals.", ApprovalListShape)},
                query=ApprovalsQuery,
                tag="approvals",
            ),
            Operation(
                "GET",
                approval,
                "getApproval",
                "Shows an approval as its card does.",
                self.get,
                {200: Answer("The approval.", ApprovalShape)},
                tag="approvals",
            ),
            Operation(
                "GET",
                f"{approval}/form",
                "getApprovalForm",
                "Shows the form with which a waiting call can be approved with other arguments.",
                self.form,
                {200: Answer("The form.", FormShape)},
                scope="approve",
                problems=(409, 410),
                tag="approvals",
            ),
            Operation(
                "POST",
                "/api/v1/approvals/decisions",
                "decideApprovals",
                "Decides several approvals at once, in one transaction.",
                self.decide_several,
                {200: Answer("What came of each.", DecisionsShape)},
                scope="approve",
                body=DecisionsForm,
                headers=SAME_KEY,
                problems=(404, *SETTLING),
                tag="approvals",
                description="What cannot be decided does not hold up the others: the result of each says it. Of one "
                "decision alone, the status of the answer says it, as for a single approval.",
            ),
            Operation(
                "POST",
                f"{approval}/decision",
                "decideApproval",
                "Decides one approval.",
                self.decide,
                {200: Answer("It is decided, or the vote counts.", DecidedShape)},
                scope="approve",
                body=DecisionForm,
                headers=SAME_KEY,
                problems=SETTLING,
                tag="approvals",
                description="403: you may not. 404: there is none for you. 409: already decided. 410: it has "
                "expired, was withdrawn, or something else is asked by now. 422: the arguments or the reason are not "
                "valid.",
            ),
            Operation(
                "POST",
                f"{approval}/withdrawal",
                "withdrawApproval",
                "Takes back a call that you have asked for.",
                self.withdraw,
                {200: Answer("It is taken back.", ResultShape)},
                scope="run",
                headers=SAME_KEY,
                problems=SETTLING,
                tag="approvals",
            ),
            Operation(
                "POST",
                f"{approval}/retry",
                "retryApproval",
                "Requests a call that failed again, exactly as it was made.",
                self.retry,
                {200: Answer("It is requested.", RetriedShape)},
                scope="run",
                headers=SAME_KEY,
                problems=(409,),
                tag="approvals",
                description="Once for each approval, by the person who asked for it. It begins a turn, in which the "
                "policy judges the call as any other: what needs approval is asked again. 403: it is "
                "somebody else’s, it did not fail, or something in the conversation is still waiting. "
                "409: it was requested again already.",
            ),
        ]

    async def list(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/approvals`."""
        query, person, queries = call.query(ApprovalsQuery), call.principal.person, self._services.queries
        if query.status == "settled":
            settled_ = await queries.settled_for(person, query.limit)
            return _listed([(shown, False) for shown in settled_], 0)
        pending = await queries.pending(person, most=query.limit)
        listed = [*((each, True) for each in pending.to_decide), *((each, False) for each in pending.asked_for)]
        return _listed(listed, pending.more)

    async def get(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/approvals/{id}`."""
        view = await self._services.conversations.card(id_in(call, "approval"), call.principal.person)
        if isinstance(view, Unknown):
            raise Problem(404, view.text)
        return json_answer(ApprovalShape.of(view))

    async def form(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/approvals/{id}/form`."""
        approval_id, person = id_in(call, "approval"), call.principal.person
        await self._seen(call, approval_id)
        form = await self._services.approvals.edit_form(approval_id, person)
        if not isinstance(form, Form):
            raise refused(form)
        # A hundred long values full of what cannot be seen take a fifth of a second.
        return json_answer(FormShape.model_validate(await asyncio.to_thread(form_json, form)))

    async def decide_several(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/approvals/decisions`."""
        choices = [each.choice(each.approval_id) for each in call.body(DecisionsForm).decisions]
        results = {each: ResultShape.of(result) for each, result in (await self._decided(call, choices)).items()}
        only = next(iter(results.values()))
        if len(results) == 1 and STATUSES[only.status] != 200:  # of HTTP
            more = {"results": {each: shape.model_dump() for each, shape in results.items()}}
            raise Problem(STATUSES[only.status], only.text, errors=only.errors, more=more)
        return json_answer(DecisionsShape(results=results))

    async def decide(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/approvals/{id}/decision`."""
        approval_id = id_in(call, "approval")
        results = await self._decided(call, [call.body(DecisionForm).choice(approval_id)])
        shape = settled(results[approval_id])
        return json_answer(DecidedShape(approval_id=approval_id, status=shape.status, text=shape.text))

    async def withdraw(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/approvals/{id}/withdrawal`."""
        approval_id, person = id_in(call, "approval"), call.principal.person
        await self._seen(call, approval_id)
        return json_answer(
            settled(await self._services.approvals.withdraw_request(click_key(call), approval_id, person))
        )

    async def retry(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/approvals/{id}/retry`."""
        approval_id, person = id_in(call, "approval"), call.principal.person
        await self._seen(call, approval_id)
        request = RetryRequest(click_key(call), person, approval_id, via="api")
        shape = settled(await self._services.approvals.retry(request))
        return json_answer(RetriedShape(status=shape.status, text=shape.text, message_id=retry_key(approval_id)))

    async def _decided(self, call: ApiCall, choices: Sequence[Choice]) -> dict[str, ClickResult]:
        """What came of each. Of what somebody does not see, nothing is said, nor whether it is there."""
        person, key = call.principal.person, click_key(call)
        seen = await self._services.conversations.seen_among([each.approval_id for each in choices], person)
        taken = tuple(choice for choice in choices if choice.approval_id in seen)
        decided = await self._services.approvals.decide(Decision(key, person, taken, via="api")) if taken else {}
        return {choice.approval_id: decided.get(choice.approval_id, no_approval()) for choice in choices}

    async def _seen(self, call: ApiCall, approval_id: str) -> None:
        if not await self._services.conversations.seen_among([approval_id], call.principal.person):
            raise Problem(404, no_approval().text)


def _listed(approvals: Sequence[tuple[Shown, bool]], more: int) -> web.Response:
    listed = []
    for shown, may_decide in approvals:
        view = shown.post.content
        if isinstance(view, ApprovalView):
            whole = ApprovalShape.of(view).model_dump()
            thread_id = shown.post.thread_id
            listed.append(
                ListedApprovalShape(**whole, thread_id=thread_id, you_may_decide=may_decide, unread=view.unread)
            )
    return json_answer(ApprovalListShape(approvals=listed, more=more))
