"""`/api/v1/clarifications`, `/api/v1/sign-ins` and `/api/v1/outcomes`: what waits for the person who asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from aiohttp import web
from pydantic import ConfigDict, Field, model_validator

from adapters.api.bodies import Body
from adapters.api.models import ClarificationShape, OutcomeShape, Shape, SignInShape
from adapters.api.operations import Answer, ApiCall, Handle, Operation, json_answer
from adapters.api.results import SAME_KEY, SETTLING, ResultShape, click_key, id_in, refused, settled
from adapters.shared.live.entries import passage
from adapters.shared.problems import Problem
from bot.domain import (
    ClarificationView,
    CodeEntry,
    Dismissal,
    FormAnswer,
    OutcomeChoice,
    OutcomeView,
    Person,
    SignInReply,
    SignInView,
)
from bot.services import Services

LONGEST_ANSWER = 20_000
LONGEST_CODE = 64

ViewT = TypeVar("ViewT", ClarificationView, SignInView, OutcomeView)


class AnswerForm(Body):
    """An answer, in one of two ways."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["text"], "properties": {"text": {"type": "string"}, "values": {"type": "null"}}},
                {"required": ["values"], "properties": {"values": {"type": "object"}, "text": {"type": "null"}}},
            ]
        }
    )
    text: Annotated[str, Field(max_length=LONGEST_ANSWER)] | None = None
    values: dict[str, Any] | None = Field(None, description="By the names of the fields.")

    @model_validator(mode="after")
    def _one_of_them(self) -> AnswerForm:
        if (self.text is None) == (self.values is None):
            raise ValueError("either text or values")
        return self


class DismissalForm(Body):
    """No answer."""

    action: Literal["decline", "cancel"]


class SignInForm(Body):
    """Whether it is done."""

    done: Annotated[bool, Field(description="false: not now.")]


class CodeForm(Body):
    """What the browser showed in the end."""

    code: Annotated[str, Field(min_length=1, max_length=LONGEST_CODE)]


class ChoiceForm(Body):
    """What came of a call."""

    choice: Literal["it_was_done", "try_again", "skip"]


class LinkShape(Shape):
    """A link for one person alone."""

    model_config = ConfigDict(frozen=True, title="SignInLink")
    url: str
    message: str = Field(description="What the server says about it.")


class QuestionResources:
    """Questions to whoever asks, and their answers. Somebody else's are not there."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> Sequence[Operation]:
        """What can be done with them."""
        question, sign_in, outcome = (f"/api/v1/{each}/{{id}}" for each in ("clarifications", "sign-ins", "outcomes"))
        done = {200: Answer("It is settled.", ResultShape)}

        def settling(path: str, name: str, summary: str, handle: Handle, body: type[Body]) -> Operation:
            return Operation(
                "POST",
                path,
                name,
                summary,
                handle,
                done,
                scope="approve",
                body=body,
                headers=SAME_KEY,
                problems=SETTLING,
                tag=path.split("/")[3],
            )

        return [
            Operation(
                "GET",
                question,
                "getClarification",
                "Shows a question to you.",
                self.clarification,
                {200: Answer("The question.", ClarificationShape)},
                tag="clarifications",
            ),
            settling(
                f"{question}/answer",
                "answerClarification",
                "Answers a question.",
                self.answer,
                AnswerForm,
            ),
            settling(
                f"{question}/dismissal",
                "dismissClarification",
                "Gives no answer to a question that a tool put.",
                self.dismiss,
                DismissalForm,
            ),
            Operation(
                "GET",
                sign_in,
                "getSignIn",
                "Shows a sign-in that a call of yours waits for.",
                self.sign_in,
                {200: Answer("The sign-in.", SignInShape)},
                tag="sign-ins",
            ),
            Operation(
                "GET",
                f"{sign_in}/link",
                "getSignInLink",
                "Gives the link to sign in with, to you alone.",
                self.link,
                {200: Answer("The link.", LinkShape)},
                scope="approve",
                tag="sign-ins",
            ),
            settling(
                sign_in,
                "replyToSignIn",
                "Says that you have signed in, or will not now.",
                self.reply,
                SignInForm,
            ),
            settling(
                f"{sign_in}/code",
                "enterSignInCode",
                "Tells the one-time code that the browser showed.",
                self.code,
                CodeForm,
            ),
            Operation(
                "GET",
                outcome,
                "getOutcome",
                "Shows a call of yours of which it is not known what came of it.",
                self.outcome,
                {200: Answer("The call.", OutcomeShape)},
                tag="outcomes",
            ),
            settling(outcome, "settleOutcome", "Says what came of a call.", self.choose, ChoiceForm),
        ]

    async def clarification(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/clarifications/{id}`."""
        return json_answer(ClarificationShape.of(await self._own(call, ClarificationView)))

    async def answer(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/clarifications/{id}/answer`."""
        body, view = call.body(AnswerForm), await self._own(call, ClarificationView)
        person = _asked_person(call, view)
        answer = FormAnswer(click_key(call), person, view.clarification_id, body.values or {}, body.text, via="api")
        return json_answer(settled(await self._services.questions.answer(answer)))

    async def dismiss(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/clarifications/{id}/dismissal`."""
        body, view = call.body(DismissalForm), await self._own(call, ClarificationView)
        dismissal = Dismissal(click_key(call), _asked_person(call, view), view.clarification_id, body.action, via="api")
        return json_answer(settled(await self._services.questions.dismiss(dismissal)))

    async def sign_in(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/sign-ins/{id}`."""
        return json_answer(SignInShape.of(await self._own(call, SignInView)))

    async def link(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/sign-ins/{id}/link`."""
        view = await self._own(call, SignInView)
        link = await self._services.sign_in_links.link(view.sign_in_id, call.principal.person.person_id)
        if not isinstance(link, str):
            raise refused(link)
        return json_answer(LinkShape(url=link, message=passage(view.message)))

    async def reply(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/sign-ins/{id}`."""
        body, view = call.body(SignInForm), await self._own(call, SignInView)
        reply = SignInReply(click_key(call), call.principal.person, view.sign_in_id, done=body.done, via="api")
        return json_answer(settled(await self._services.connections.sign_in_reply(reply)))

    async def code(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/sign-ins/{id}/code`."""
        body, view = call.body(CodeForm), await self._own(call, SignInView)
        entry = CodeEntry(click_key(call), call.principal.person, body.code, view.sign_in_id, via="api")
        return json_answer(settled(await self._services.connections.enter_code(entry)))

    async def outcome(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/outcomes/{id}`."""
        return json_answer(OutcomeShape.of(await self._own(call, OutcomeView)))

    async def choose(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/outcomes/{id}`."""
        body, view = call.body(ChoiceForm), await self._own(call, OutcomeView)
        choice = OutcomeChoice(click_key(call), _asked_person(call, view), view.outcome_id, body.choice, via="api")
        return json_answer(settled(await self._services.approvals.settle_outcome(choice)))

    async def _own(self, call: ApiCall, kind: type[ViewT]) -> ViewT:
        """The card of what is named in the path. Raises `Problem` (404): there is none, or it is somebody else's."""
        what = _NAMES[kind]
        for shown in await self._services.queries.shown(id_in(call, what)):
            view = shown.post.content
            if isinstance(view, kind) and _whose(view) in _accounts(call, kind):
                return view
        raise Problem(404, f"There’s no such {what} here.")


_NAMES = {ClarificationView: "question", SignInView: "sign-in", OutcomeView: "call"}


def _accounts(call: ApiCall, kind: type[ViewT]) -> Collection[str]:
    """The person ids to whose cards of a kind somebody may reply: of all accounts of this human's. A link to sign in
    with is for one account alone."""
    return {call.principal.person.person_id} if kind is SignInView else call.principal.person_ids


def _asked_person(call: ApiCall, view: ClarificationView | OutcomeView) -> Person:
    """Whoever asks, as the account of theirs that was asked."""
    return replace(call.principal.person, person_id=view.requester_id)


def _whose(view: ClarificationView | SignInView | OutcomeView) -> str:
    return view.owner_id if isinstance(view, SignInView) else view.requester_id
