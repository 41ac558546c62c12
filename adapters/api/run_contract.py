"""`POST /run` and `POST /resume`: a request runs until it is answered, or until people have to say something.

What pends is told one kind at a time: first what the model asks (`clarification`), then what a tool asks in the middle
of a call (`form_elicitation`), a sign-in (`oauth_url`), a call of which it is not known what came of it
(`outcome_unknown`), and approvals (`confirmation`). After each `/resume` comes what is next. The first and the last are
told all together, the others one by one.

A `call_id` names one question: the same call asked about once more, because somebody has edited it or its tool has
another question, has another. So an answer that is delivered twice never answers what its sender has not seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Annotated, Any, Literal, get_args

from aiohttp import web
from pydantic import ConfigDict, Field, RootModel, model_validator

from adapters.api.bodies import NOT_BLANK, LooseBody
from adapters.api.endings import IDEMPOTENCY, answer_in, idempotency_key, key_of_request, runs_on, what_failed
from adapters.api.models import AgentName, Shape, SourceShape, SourcesWhereAny, UploadIds
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.sign_in_replies import SKIP, reply_to_sign_in
from adapters.api.turns import LONGEST_TEXT, LONGEST_WAIT, ApiTurns
from adapters.shared.problems import Problem
from adapters.shared.untrusted_json import MalformedBodyError, json_in
from bot.conversations import TurnState
from bot.domain import (
    AlreadySettled,
    Choice,
    ClickResult,
    Decision,
    Dismissal,
    FormAnswer,
    Invalid,
    OutcomeChoice,
    Refused,
    Settled,
    SignInView,
    Unknown,
)
from bot.identity.principal import Principal
from bot.records.asked import AskedKind, AskedRow
from bot.safe_text import visible
from bot.services import Services

KIND = "run"
"""Of the threads whose ids are known here alone (`ThreadNames`)."""
MOST_ANSWERS = 100
"""Approvals, or answers to questions, of one request."""
Outcome = Literal["it_was_done", "try_again", "skip"]
_OUTCOMES: Mapping[str, Outcome] = {each: each for each in get_args(Outcome)}
_AFTER: Mapping[AskedKind, str] = {"approval": "", "clarification": "", "sign_in": "/sign-in", "outcome": "/outcome"}
"""What follows the call in the `call_id` of each kind."""
NOT_ASKED = "Nothing waits for an answer under this call_id."

ThreadId = Annotated[str, Field(min_length=1, max_length=1000, description="Any text; it is yours alone.")]
CallId = Annotated[str, Field(min_length=1, max_length=1000)]


# ------------------------------------------------------------------------------------------- what is taken


class RunBody(LooseBody):
    """A request."""

    thread_id: ThreadId
    user_request: str = Field(description=f"At most {LONGEST_TEXT:,} characters.", json_schema_extra=NOT_BLANK)
    agent: AgentName = None
    files: UploadIds


class ApprovalAnswer(LooseBody):
    """What is decided about one call."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"approved": {"const": True}}},
                {"required": ["feedback"], "properties": {"feedback": {"type": "string", **NOT_BLANK}}},
            ]
        }
    )
    call_id: CallId
    approved: bool = Field(strict=True)
    feedback: Annotated[str | None, Field(max_length=2000, description="Why not; the model is told.")] = None

    @model_validator(mode="after")
    def _says_why_not(self) -> ApprovalAnswer:
        if not self.approved and not (self.feedback or "").strip():
            raise ValueError("feedback is required when a call is not approved")
        return self


class ClarificationAnswer(LooseBody):
    """The answer to one question."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["action"], "properties": {"action": {"enum": ["decline", "cancel"]}}},
                {"required": ["response"], "properties": {"response": {"not": {"type": "null"}, **NOT_BLANK}}},
            ]
        }
    )
    call_id: CallId
    response: str | bool | int | float | dict[str, Any] | None = Field(
        None,
        description="To a form: an object of the values as `schema` has it. To a sign-in: `done`, `skip`, or the "
        "one-time code that the browser showed. Of an unknown outcome: `it_was_done`, `try_again` or `skip`.",
    )
    action: Literal["accept", "decline", "cancel"] = Field(
        "accept", description="Of a form: `decline` or `cancel` it, without a response."
    )

    @model_validator(mode="after")
    def _says_something(self) -> ClarificationAnswer:
        if self.action == "accept" and (self.response is None or not str(self.response).strip()):
            raise ValueError("response is required")
        return self

    @property
    def text(self) -> str:
        """The response as a text."""
        return self.response if isinstance(self.response, str) else json.dumps(self.response, ensure_ascii=False)


class ResumeBody(LooseBody):
    """Approvals, or answers to questions."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": [one],
                    "properties": {one: {"type": "array"}, other: {"type": "null"}},
                }
                for one, other in permutations(("approvals", "clarification_responses"))
            ]
        }
    )
    thread_id: ThreadId
    approvals: Annotated[list[ApprovalAnswer], Field(max_length=MOST_ANSWERS)] | None = None
    clarification_responses: Annotated[list[ClarificationAnswer], Field(max_length=MOST_ANSWERS)] | None = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> ResumeBody:
        if (self.approvals is None) == (self.clarification_responses is None):
            raise ValueError("send either approvals or clarification_responses")
        named = [each.call_id for each in self.approvals or self.clarification_responses or []]
        if len(named) != len(set(named)):
            raise ValueError("a call_id is there more than once")
        return self


# ------------------------------------------------------------------------------------------- what is answered


class RunDone(Shape):
    """The turn has ended."""

    status: Literal["success"] = "success"
    response: str
    sources: SourcesWhereAny


class OpenQuestion(Shape):
    """A question of the model's."""

    call_id: str
    question: str
    context: str


class ClarificationAction(Shape):
    """Questions of the model's."""

    kind: Literal["clarification"] = "clarification"
    clarifications: list[OpenQuestion]


class FormAction(Shape):
    """A question of a tool's, in the middle of a call."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, protected_namespaces=())
    kind: Literal["form_elicitation"] = "form_elicitation"
    call_id: str
    server: str
    question: str
    message: str = Field(description="The same.")
    answer_schema: dict[str, Any] = Field(serialization_alias="schema", validation_alias="schema")


class SignInAction(Shape):
    """A page that the caller has to open."""

    kind: Literal["oauth_url"] = "oauth_url"
    auth_url: str = Field(description="Empty: there is none at the moment, `message` says why.")
    call_id: str
    server: str
    code_wanted: bool = Field(description="The browser has shown a one-time code, which is to be sent.")
    message: str


class OutcomeAction(Shape):
    """A call of which it is not known what came of it."""

    kind: Literal["outcome_unknown"] = "outcome_unknown"
    call_id: str
    tool_name: str
    server: str
    arguments: dict[str, Any]
    known: str


class AskedCall(Shape):
    """A call that waits for approval."""

    call_id: str
    tool_name: str
    server: str
    arguments: dict[str, Any]


class ConfirmationAction(Shape):
    """Calls that wait for approval."""

    kind: Literal["confirmation"] = "confirmation"
    tool_calls: list[AskedCall]


class NoAction(Shape):
    """Nothing waits."""

    kind: Literal["no_action_needed"] = "no_action_needed"


PendingAction = ClarificationAction | FormAction | SignInAction | OutcomeAction | ConfirmationAction


class RunPending(Shape):
    """The turn waits for people."""

    status: Literal[
        "clarification_required",
        "form_elicitation_required",
        "oauth_url_required",
        "outcome_unknown",
        "confirmation_required",
    ]
    thread_id: str
    pending_action: Annotated[PendingAction, Field(discriminator="kind")]


class NothingPending(Shape):
    """Nothing waits in the thread."""

    status: Literal["no_action_needed"] = "no_action_needed"
    thread_id: str
    response: str = Field("", description="What was answered last in it.")
    pending_action: NoAction = NoAction()


class Resumed(RootModel[RunDone | NothingPending]):
    """The turn has ended, or nothing waited."""


# ------------------------------------------------------------------------------------------- what is done


class RunContract:
    """A view of threads and of what waits in them.

    Args:
        longest_wait: seconds that a request waits for a turn that runs.
    """

    def __init__(self, services: Services, turns: ApiTurns, *, longest_wait: float = LONGEST_WAIT) -> None:
        self._services = services
        self._turns = turns
        self._longest_wait = longest_wait

    def operations(self) -> Sequence[Operation]:
        """Both."""
        pending = Answer("People have to say something before it goes on.", RunPending)
        return [
            Operation(
                "POST",
                "/run",
                "run",
                "Runs a request until it is answered, or waits for people.",
                self.run,
                {200: Answer("The answer.", RunDone), 202: pending},
                scope="run",
                body=RunBody,
                waits=True,
                headers=IDEMPOTENCY,
                problems=(409, 504),
                tag="run",
                description="What still waits in the thread is given up for it, but for a single question: that it "
                "answers.",
            ),
            Operation(
                "POST",
                "/resume",
                "resume",
                "Says what a request waits for, and waits for what comes of it.",
                self.resume,
                {200: Answer("The answer; or nothing waited.", Resumed), 202: pending},
                scope="run",
                body=ResumeBody,
                waits=True,
                problems=(404, 409, 504),
                tag="run",
                description="All of it is done, or nothing. Approvals, and outcomes, need the scope `approve`. The "
                "same request again is the same answer. A sign-in that was finished in the browser goes on by itself; "
                "`done` waits for what comes of it. An empty list says nothing, and is answered "
                "how things stand: useful after someone has decided elsewhere (409).",
            ),
        ]

    async def run(self, call: ApiCall) -> web.Response:
        """`POST /run`."""
        body, principal = call.body(RunBody), call.principal
        key = idempotency_key(call)
        thread_id = await self._turns.thread_of(principal, KIND, body.thread_id)
        message = await self._turns.send(
            principal, thread_id, body.user_request, key=key, agent=body.agent, files=body.files
        )
        return await self._answer(call, body.thread_id, thread_id, message)

    async def resume(self, call: ApiCall) -> web.Response:
        """`POST /resume`."""
        body, principal = call.body(ResumeBody), call.principal
        if body.approvals is not None and not principal.may("approve"):
            raise Problem(403, "This token doesn’t allow that: it lacks the scope `approve`.")
        thread_id = await self._turns.thread_of(principal, KIND, body.thread_id)
        message = await self._services.conversations.newest_message(thread_id)
        named = [each.call_id for each in body.approvals or body.clarification_responses or []]
        about = {call_id for name in named for call_id in (name, name.partition("/")[0])}
        rows = await self._services.conversations.asked_about(thread_id, about)
        if message is None:
            return json_answer(NothingPending(thread_id=body.thread_id))
        if not any(name_of(row) in named for row in rows):
            nothing = await self._nothing_waits(call, body.thread_id, thread_id, message)
            if nothing is not None:
                return json_answer(nothing)
        key = key_of_request(principal.person.person_id, thread_id, body.model_dump_json(exclude_none=True))
        if body.approvals is not None:
            await self._decide(principal, body.approvals, rows, key)
        elif body.clarification_responses is not None:
            await self._reply(principal, body.clarification_responses, rows, key)
        return await self._answer(call, body.thread_id, thread_id, message)

    async def _nothing_waits(self, call: ApiCall, given: str, thread_id: str, message: str) -> NothingPending | None:
        """What is said where nothing waits, once what runs has ended; `None`: something does wait."""
        state = await self._turns.answered(call, thread_id, message, self._longest_wait)
        match state.status:
            case "running":
                raise runs_on(thread_id, message)
            case "waiting":
                return None
            case _:
                return NothingPending(thread_id=given, response=answer_in(state) or "")

    async def _answer(self, call: ApiCall, given: str, thread_id: str, message: str) -> web.Response:
        state = await self._turns.answered(call, thread_id, message, self._longest_wait)
        match state.status:
            case "running":
                raise runs_on(thread_id, message)
            case "waiting":
                pending = await self._pending(call.principal, given, state)
                return json_answer(pending, status=202)
            case _:
                answer = answer_in(state)
                if answer is None:
                    raise Problem(500, what_failed(state))
                return json_answer(RunDone(response=answer, sources=SourceShape.all_of(state)))

    # ----------------------------------------------------------------------------------- what pends

    async def _pending(self, principal: Principal, given: str, state: TurnState) -> RunPending:
        """What is to be told first of what waits."""
        names = await self._names(state)
        if asked := [view for view in state.clarifications if not view.server]:
            questions = [
                OpenQuestion(
                    call_id=names["clarification", view.clarification_id],
                    question=visible(view.question),
                    context=visible(view.context),
                )
                for view in asked
            ]
            action: PendingAction = ClarificationAction(clarifications=questions)
            return RunPending(status="clarification_required", thread_id=given, pending_action=action)
        if state.clarifications:
            form = state.clarifications[0]
            action = FormAction(
                call_id=names["clarification", form.clarification_id],
                server=form.server,
                question=visible(form.question),
                message=visible(form.question),
                answer_schema=dict(form.schema),
            )
            return RunPending(status="form_elicitation_required", thread_id=given, pending_action=action)
        if state.sign_ins:
            view = state.sign_ins[0]
            action = await self._sign_in(principal, view, names["sign_in", view.sign_in_id])
            return RunPending(status="oauth_url_required", thread_id=given, pending_action=action)
        if state.outcomes:
            lost = state.outcomes[0]
            action = OutcomeAction(
                call_id=names["outcome", lost.outcome_id],
                tool_name=lost.tool,
                server=lost.server,
                arguments=dict(lost.arguments),
                known=visible(lost.known),
            )
            return RunPending(status="outcome_unknown", thread_id=given, pending_action=action)
        calls = [
            AskedCall(
                call_id=names["approval", view.approval_id],
                tool_name=view.tool,
                server=view.server,
                arguments=dict(view.arguments),
            )
            for view in state.approvals
        ]
        action = ConfirmationAction(tool_calls=calls)
        return RunPending(status="confirmation_required", thread_id=given, pending_action=action)

    async def _sign_in(self, principal: Principal, view: SignInView, name: str) -> SignInAction:
        link = await self._services.sign_in_links.link(view.sign_in_id, principal.person.person_id)
        url, message = (link, "") if isinstance(link, str) else ("", link.text)
        return SignInAction(
            auth_url=url, call_id=name, server=view.server, code_wanted=view.code_wanted, message=message
        )

    async def _names(self, state: TurnState) -> Mapping[tuple[AskedKind, str], str]:
        """The `call_id` of each open question, by its kind and id."""
        views = (state.approvals, state.clarifications, state.sign_ins, state.outcomes)
        calls = {view.call_id for of_a_kind in views for view in of_a_kind}
        rows = await self._services.conversations.asked_about(state.thread_id, calls)
        return {(row.kind, row.subject): name_of(row) for row in rows}

    # ----------------------------------------------------------------------------------- what is said

    async def _decide(
        self, principal: Principal, given: Sequence[ApprovalAnswer], rows: Sequence[AskedRow], key: str
    ) -> None:
        found = {name_of(row): row for row in rows if row.kind == "approval"}
        _check_known(found, [each.call_id for each in given], "approvals")
        names = {found[each.call_id].subject: each.call_id for each in given}
        choices = tuple(
            Choice(
                found[each.call_id].subject,
                "approve" if each.approved else "reject",
                reason="" if each.approved else (each.feedback or ""),
            )
            for each in given
        )
        if choices:
            decision = Decision(key, principal.person, choices, whole=True, via="api")
            _check_done(await self._services.approvals.decide(decision), names)

    async def _reply(
        self, principal: Principal, given: Sequence[ClarificationAnswer], rows: Sequence[AskedRow], key: str
    ) -> None:
        found = {name_of(row): row for row in rows if row.kind != "approval"}
        _check_known(found, [each.call_id for each in given], "clarification_responses")
        alone = [each for each in given if found[each.call_id].kind != "clarification" or each.action != "accept"]
        if alone and len(given) > 1:
            said = "answer this in a request of its own"
            raise Problem(422, f"{alone[0].call_id}: {said}.", errors={"clarification_responses": said})
        if alone:
            await self._reply_alone(principal, alone[0], found[alone[0].call_id], key)
        elif given:
            names = {found[each.call_id].subject: each.call_id for each in given}
            answers = [_form_answer(principal, each, found[each.call_id], key) for each in given]
            _check_done(await self._services.questions.answer_each(answers, whole=True), names)

    async def _reply_alone(self, principal: Principal, given: ClarificationAnswer, row: AskedRow, key: str) -> None:
        person, text = principal.person, given.text.strip()
        result: ClickResult
        match row.kind:
            case "clarification" if given.action != "accept":
                result = await self._services.questions.dismiss(
                    Dismissal(key, person, row.subject, given.action, via="api")
                )
            case "outcome":
                if not principal.may("approve"):
                    raise Problem(403, "This token doesn’t allow that: it lacks the scope `approve`.")
                choice = _OUTCOMES.get(text)
                if choice is None:
                    said = f"expected one of {', '.join(_OUTCOMES)}"
                    raise Problem(422, "A response isn’t valid.", errors={given.call_id: said})
                result = await self._services.approvals.settle_outcome(
                    OutcomeChoice(key, person, row.subject, choice, via="api")
                )
            case "sign_in":
                result = await self._reply_to_sign_in(principal, given, row, key)
            case _:
                raise AssertionError(row.kind)
        _check_done({row.subject: result}, {row.subject: given.call_id})

    async def _reply_to_sign_in(
        self, principal: Principal, given: ClarificationAnswer, row: AskedRow, key: str
    ) -> ClickResult:
        text = SKIP if given.action != "accept" else given.text.strip()
        return await reply_to_sign_in(self._services, principal, row.subject, text, key)


def name_of(row: AskedRow) -> str:
    """The `call_id` under which something is asked."""
    name = f"{row.call_id}{_AFTER[row.kind]}"
    return name if row.nth == 1 else f"{name}/{row.nth}"


def _form_answer(principal: Principal, given: ClarificationAnswer, row: AskedRow, key: str) -> FormAnswer:
    """An object is the values of a form, and so is a text that holds one, where a tool asks. Any other text is the
    answer to a question, or to a form with one field."""
    values = given.response
    if isinstance(values, str) and row.server is not None:
        try:
            values = json_in(values.encode())
        except (MalformedBodyError, UnicodeEncodeError):
            values = None
    if isinstance(values, dict):
        return FormAnswer(key, principal.person, row.subject, values, via="api")
    return FormAnswer(key, principal.person, row.subject, {}, text=given.text, via="api")


def _check_known(found: Mapping[str, AskedRow], named: Sequence[str], where: str) -> None:
    unknown = [name for name in named if name not in found]
    if unknown:
        raise Problem(404, NOT_ASKED, errors={f"{where}.{name}": "is not known here" for name in unknown})


def _check_done(results: Mapping[str, ClickResult], names: Mapping[str, str]) -> None:
    """Raises the `Problem` of the first thing that could not be done; nothing was, then.

    Args:
        names: id of what was asked → the `call_id` under which the caller knows it.
    """
    for subject, result in results.items():
        name = names[subject]
        match result:
            case Settled():
                continue
            case AlreadySettled(text=text):
                raise Problem(409, text, errors={name: text})
            case Refused(text=text):
                raise Problem(403, text, errors={name: text})
            case Unknown(text=text):
                raise Problem(404, text, errors={name: text})
            case Invalid(errors=errors):
                wrong = {f"{name}.{field}" if field else name: said for field, said in errors.items()}
                raise Problem(422, "A response isn’t valid.", errors=wrong)
