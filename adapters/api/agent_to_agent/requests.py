"""What other agents ask for, done to conversations: the protocol's own words are the SDK's affair."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import structlog
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import validate_history_length, validate_page_size

from adapters.api.agent_to_agent.contract import Exchange
from adapters.api.agent_to_agent.incoming import QuestionAnswer, Verdict, Words, said_in
from adapters.api.agent_to_agent.task_names import KIND, LONGEST_CONTEXT, TaskName
from adapters.api.agent_to_agent.tasks import OVER, artifact, halted_status, status_of, task_of
from adapters.api.endings import key_of_request
from adapters.api.following import Before, Halted, Interrupted, Sentence, Silence, Text, TurnFollower, of_this_turn
from adapters.api.sign_in_replies import reply_to_sign_in
from adapters.api.turns import LONGEST_WAIT, ApiTurns
from adapters.shared.long_answers import LongAnswers
from adapters.shared.outages import AGAIN_SECONDS, AWAY, note_refusal
from adapters.shared.problems import Problem, new_reference
from adapters.shared.server_sent import ClientGone
from adapters.shared.untrusted_json import MalformedBodyError, json_in
from bot.conversations import TurnState
from bot.domain import (
    Choice,
    ClarificationView,
    ClickResult,
    Decision,
    FormAnswer,
    Invalid,
    MessageView,
    OutcomeChoice,
    OutcomeView,
    Person,
    Refused,
    Settled,
    SignInView,
    ThreadView,
)
from bot.identity.principal import Principal, Scope
from bot.records.database import is_outage
from bot.safe_text import visible
from bot.services import Services

log = structlog.get_logger(__name__)
EXCHANGE = "countersign"
"""Where the exchange is in what the SDK hands on."""
MOST_LISTED = 20
"""Tasks on one page: each is read as a whole."""
WITH_STATUS = frozenset({401, 403, 429, 503})
"""Problems that are no matter of the protocol: who asks, how often, and whether anything can be read."""
NO_PUSH = "Push notifications are not sent: stream, or ask for the task again."
ENDED = "This task has ended. To continue the conversation, send its contextId without a taskId."


@dataclass(frozen=True, slots=True)
class _Taken:
    """A message that was taken."""

    name: TaskName
    message: str
    """Key of the message whose turn is waited for."""
    before: Before
    """What there was before, which a stream does not tell again."""
    only: Task | None = None
    """All that whoever sent it may know: the task is somebody else's."""


class TaskRequests(RequestHandler):
    """Fills the SDK's port. A task's state is read from the records, whichever replica is asked."""

    def __init__(self, services: Services, turns: ApiTurns, open_: LongAnswers) -> None:
        self._services = services
        self._turns = turns
        self._open = open_

    # ------------------------------------------------------------------------------------------- what is asked

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Begins a turn, or answers what one asks; waits for what comes of it, unless told not to."""
        exchange = _exchange(context)
        with _answering(exchange):
            _refuse_push(params)
            taken = await self._take(_principal(exchange), params)
            if taken.only is not None:
                return taken.only
            wait = 0.0 if params.configuration.return_immediately else LONGEST_WAIT
            with self._open.one_more(_principal(exchange)):
                await self._settled(exchange, taken.name.thread_id, taken.message, wait)
            return await self._task(
                _principal(exchange), taken.name.context_id, taken.message, _history(params.configuration)
            )

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """The same, told as it happens."""
        exchange = _exchange(context)
        with _answering(exchange):
            _refuse_push(params)
            taken = await self._take(_principal(exchange), params)
            if taken.only is not None:
                yield taken.only
                return
            async for event in self._followed(exchange, taken, _history(params.configuration)):
                yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """What happens in a task from now on, beginning with how it stands."""
        exchange = _exchange(context)
        with _answering(exchange):
            principal = _principal(exchange, "read")
            name = _named(params.id)
            state = await self._state(principal, name.thread_id, name.turn)
            if status_of(name, state).state in OVER:
                raise UnsupportedOperationError("This task has ended: get it.")
            async for event in self._followed(exchange, _Taken(name, name.turn, Before()), None):
                yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """How a task stands."""
        exchange = _exchange(context)
        with _answering(exchange):
            validate_proto_required_fields(params)
            name = _named(params.id)
            return await self._task(_principal(exchange, "read"), name.context_id, name.turn, _history(params))

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The tasks of a context, the newest first."""
        exchange = _exchange(context)
        with _answering(exchange):
            principal = _principal(exchange, "read")
            if not 0 < len(params.context_id) <= LONGEST_CONTEXT:
                raise InvalidParamsError("Name a contextId: tasks are listed for one conversation.")
            if params.HasField("page_size"):
                validate_page_size(params.page_size)
            most = min(params.page_size or MOST_LISTED, MOST_LISTED)
            thread_id = await self._turns.thread_of(principal, KIND, params.context_id)
            keys = await self._messages(principal, thread_id)
            if params.page_token:
                after = _named(params.page_token).turn
                keys = keys[keys.index(after) + 1 :] if after in keys else []
            return await self._listed(principal, params, keys, most)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Stops a turn."""
        exchange = _exchange(context)
        with _answering(exchange):
            validate_proto_required_fields(params)
            principal, name = _principal(exchange, "run"), _named(params.id)
            state = await self._state(principal, name.thread_id, name.turn)
            if state.status == "ended":
                raise TaskNotCancelableError("This task has ended.")
            await self._stop(principal, state)
            with self._open.one_more(principal):
                await self._settled(exchange, name.thread_id, name.turn, LONGEST_WAIT)
            return await self._task(principal, name.context_id, name.turn, None)

    # ------------------------------------------------------------------------------------------- messages

    async def _take(self, principal: Principal, params: SendMessageRequest) -> _Taken:
        """Keep what a message says. Raises `A2AError`, `Problem`."""
        validate_proto_required_fields(params)
        message = params.message
        said = said_in(message)
        _must(principal, "approve" if not isinstance(said, Words) and isinstance(said[0], Verdict) else "run")
        if message.task_id:
            name = _named(message.task_id)
            if message.context_id and message.context_id != name.context_id:
                raise InvalidParamsError("This task is of another context.")
            return await self._take_in_task(principal, name, said, message.message_id)
        context_id = message.context_id or _new_context(principal, message.message_id)
        thread_id = await self._turns.thread_of(principal, KIND, context_id)
        before = await self._turns.newest_state(principal, thread_id)
        if isinstance(said, Words):
            key = await self._turns.send(principal, thread_id, said.text, key=message.message_id)
            turn = (await self._turns.state(principal, thread_id, key)).delivery
            return _Taken(TaskName(thread_id, turn, context_id), key, Before.of(before))
        if before is None:
            raise InvalidParamsError("Nothing waits in this context: name the task by its taskId.")
        name = TaskName(thread_id, before.delivery, context_id)
        return await self._take_in_task(principal, name, said, message.message_id)

    async def _take_in_task(
        self, principal: Principal, name: TaskName, said: Words | list[Verdict] | list[QuestionAnswer], message_id: str
    ) -> _Taken:
        key = key_of_request(principal.person.person_id, name.task_id, message_id)
        if await self._services.conversations.owners_to_write(name.thread_id, principal.person) is None:
            verdicts = [each for each in said if isinstance(each, Verdict)] if not isinstance(said, Words) else []
            if not verdicts:
                raise TaskNotFoundError
            return await self._decide_for_other(principal, name, verdicts, key)
        state = await self._state(principal, name.thread_id, name.turn)
        taken = _Taken(name, name.turn, Before.of(state))
        if isinstance(said, Words):
            return await self._say(principal, taken, state, said.text, message_id)
        verdicts = [each for each in said if isinstance(each, Verdict)]
        if verdicts:
            pending = [each for each, status in state.asked.items() if status == "pending"]
            await self._decide(principal, verdicts, pending or list(state.asked), state.asked, key)
        else:
            await self._answer(principal, [each for each in said if isinstance(each, QuestionAnswer)], state, key)
        return taken

    # ------------------------------------------------------------------------------------------- decisions

    async def _decide_for_other(
        self, principal: Principal, name: TaskName, verdicts: Sequence[Verdict], key: str
    ) -> _Taken:
        """Somebody decides in a task that is another's: of it they see what they may decide."""
        conversations = self._services.conversations
        state = await conversations.turn(name.thread_id, name.turn, principal.person_ids)
        seen = await conversations.seen_among(list(state.asked), principal.person) if state is not None else frozenset()
        if state is None or not seen:
            raise TaskNotFoundError
        pending = [each for each in seen if state.asked[each] == "pending"]
        await self._decide(principal, verdicts, pending or sorted(seen), seen, key)
        now = await conversations.turn(name.thread_id, name.turn, principal.person_ids)
        if now is None:
            raise TaskNotFoundError
        now = of_this_turn(now)
        shown = replace(
            now,
            answer="",
            notices=(),
            said=(),
            approvals=tuple(each for each in now.approvals if each.approval_id in seen),
            clarifications=(),
            sign_ins=(),
            outcomes=(),
        )
        whole = task_of(name, shown, begun_by=None)
        whole.artifacts.clear()
        if shown.status == "ended":
            whole.status.ClearField("message")
        return _Taken(name, name.turn, Before(), whole)

    async def _decide(
        self,
        principal: Principal,
        verdicts: Sequence[Verdict],
        waiting: Sequence[str],
        known: frozenset[str] | Mapping[str, str],
        key: str,
    ) -> None:
        """Decide, all of it or nothing.

        Args:
            waiting: approvals that a decision without an id could be about.
            known: those that one with an id may name.
        """
        choices = []
        for each in verdicts:
            approval_id = each.approval_id or _only(waiting)
            if approval_id not in known:
                raise InvalidParamsError("No approval of this task has this id.")
            choices.append(Choice(approval_id, each.verb, each.reason))
        decision = Decision(key, principal.person, tuple(choices), whole=True, via="api")
        for result in (await self._services.approvals.decide(decision)).values():
            _check(result)

    # ------------------------------------------------------------------------------------------- answers

    async def _say(self, principal: Principal, taken: _Taken, state: TurnState, text: str, message_id: str) -> _Taken:
        """Words about a task: the answer to the one thing that it asks."""
        name = taken.name
        sent = self._turns.key_of(name.thread_id, message_id)
        is_known = await self._services.conversations.message(name.thread_id, sent) is not None
        own = [view for view in state.clarifications if not view.server]
        if is_known or (state.status == "waiting" and len(own) == len(state.clarifications) == 1):
            # It answers the question as a message in the conversation does, and the same again is the same.
            key = await self._turns.send(principal, name.thread_id, text, key=message_id)
            return replace(taken, message=key)
        if state.status == "ended":
            raise UnsupportedOperationError(ENDED)
        if state.status == "running":
            raise UnsupportedOperationError("This task runs: wait until it asks something, or has ended.")
        asked = [*state.clarifications, *state.sign_ins, *state.outcomes]
        if not asked:
            raise InvalidParamsError(
                'This task waits for approvals: decide with a data part, {"decision_type": "approve" or "deny"}.'
            )
        if len(asked) > 1:
            raise InvalidParamsError('Several things are asked: answer each by a data part, {"answer", "id"}.')
        key = key_of_request(principal.person.person_id, name.task_id, message_id)
        await self._answer(principal, [QuestionAnswer(text, "")], state, key)
        return taken

    async def _answer(
        self, principal: Principal, replies: Sequence[QuestionAnswer], state: TurnState, key: str
    ) -> None:
        """Answer questions, all of them or none; or one sign-in, or one call of which the outcome is unknown."""
        asked: dict[str, ClarificationView | SignInView | OutcomeView] = {
            **{view.clarification_id: view for view in state.clarifications},
            **{view.sign_in_id: view for view in state.sign_ins},
            **{view.outcome_id: view for view in state.outcomes},
        }
        found = []
        for each in replies:
            view = asked.get(each.question_id or _only(list(asked)))
            if view is None:
                raise InvalidParamsError("Nothing that this task asks has this id, or it was answered.")
            found.append((each, view))
        questions = [(each, view) for each, view in found if isinstance(view, ClarificationView)]
        if len(questions) < len(found) > 1:
            raise InvalidParamsError("Sign-ins and unknown outcomes are answered one by one.")
        if questions:
            answers = [_form_answer(principal, each, view, key) for each, view in questions]
            for result in (await self._services.questions.answer_each(answers, whole=True)).values():
                _check(result)
            return
        each, view = found[0]
        text = each.answer.strip() if isinstance(each.answer, str) else ""
        if isinstance(view, SignInView):
            _check(await reply_to_sign_in(self._services, principal, view.sign_in_id, text, key))
        elif isinstance(view, OutcomeView):
            await self._settle(principal, view, text, key)

    async def _settle(self, principal: Principal, view: OutcomeView, text: str, key: str) -> None:
        _must(principal, "approve")
        match text:
            case "it_was_done" | "try_again" | "skip":
                person = _as_asked(principal, view.requester_id)
                _check(
                    await self._services.approvals.settle_outcome(
                        OutcomeChoice(key, person, view.outcome_id, text, via="api")
                    )
                )
            case _:
                raise InvalidParamsError("Say what came of the call: it_was_done, try_again or skip.")

    # ------------------------------------------------------------------------------------------- tasks

    async def _state(self, principal: Principal, thread_id: str, key: str) -> TurnState:
        """Where a turn stands, without what later ones do. Raises `Problem` (404)."""
        state = of_this_turn(await self._turns.state(principal, thread_id, key))
        if state.status != "running" or not (state.answer_id or state.notices):
            return state
        newest = await self._services.conversations.newest_message(thread_id)
        if newest is None or newest in {key, state.delivery}:
            return state
        later = await self._turns.state(principal, thread_id, newest)
        return replace(state, status="ended") if later.delivery != state.delivery else state

    async def _task(self, principal: Principal, context_id: str, key: str, history: int | None) -> Task:
        """A task as its owner sees it. `key`: of a message of its turn."""
        thread_id = key.rpartition(":")[0]
        state = await self._state(principal, thread_id, key)
        name = TaskName(thread_id, state.delivery, context_id)
        return task_of(
            name,
            state,
            begun_by=await self._services.conversations.message(thread_id, state.delivery),
            links=[await self._sign_in(principal, view) for view in state.sign_ins],
            history=history,
            running=halted_status(name) if self._turns.is_stopped() else None,
        )

    async def _settled(self, exchange: Exchange, thread_id: str, message: str, wait: float) -> None:
        """Waits until a turn has ended or waits for people, `wait` seconds at most, and no longer once an operator has
        stopped everything: nobody knows when it will go on."""
        await self._turns.settled(exchange.call, thread_id, message, wait, unless=self._turns.is_stopped)

    async def _sign_in(self, principal: Principal, view: SignInView) -> str:
        """What is said of a sign-in: with the link, for its owner, with a token that could begin the call."""
        said = f"Sign in to {view.service or view.server} to continue."
        if not principal.may("run") or view.owner_id != principal.person.person_id:
            return said
        link = await self._services.sign_in_links.link(view.sign_in_id, principal.person.person_id)
        return f"{said} {link if isinstance(link, str) else link.text}"

    async def _followed(self, exchange: Exchange, taken: _Taken, history: int | None) -> AsyncGenerator[Event, None]:
        principal, stream, name = _principal(exchange), exchange.stream, taken.name
        assert stream is not None  # noqa: S101  # of streaming methods alone
        first = await self._task(principal, name.context_id, taken.message, history)
        yield first
        if (await self._state(principal, name.thread_id, taken.message)).status != "running":
            return
        follower = TurnFollower(
            self._turns, principal, name.thread_id, taken.message, taken.before, lambda: stream.is_read
        )
        exchange.happenings = follower.happenings()
        told = ""
        try:
            async with aclosing(exchange.happenings) as happenings:
                async for happening in happenings:
                    match happening:
                        case Halted():
                            halted = halted_status(name)
                            yield TaskStatusUpdateEvent(task_id=first.id, context_id=first.context_id, status=halted)
                        case Sentence():
                            pass  # the status says it
                        case Text(text=text):
                            yield TaskArtifactUpdateEvent(
                                task_id=first.id,
                                context_id=first.context_id,
                                artifact=artifact(text),
                                append=bool(told),
                            )
                            told += text
                        case Silence():
                            await stream.beat()
                        case _:
                            pass
        except ClientGone:
            return
        except Interrupted:
            stream.abort()
            return
        if not stream.is_read:
            return
        last = await self._task(principal, name.context_id, taken.message, None)
        for whole in last.artifacts:
            yield TaskArtifactUpdateEvent(
                task_id=last.id, context_id=last.context_id, artifact=whole, append=False, last_chunk=True
            )
        yield TaskStatusUpdateEvent(task_id=last.id, context_id=last.context_id, status=last.status)

    async def _messages(self, principal: Principal, thread_id: str) -> list[str]:
        """Keys of what was written in a conversation, the newest first."""
        view = await self._services.conversations.view(thread_id, principal.person)
        if not isinstance(view, ThreadView) or view.seen_as != "owner":
            return []
        own = f"{thread_id}:"
        keys = [each.key for each in view.entries if isinstance(each, MessageView) and each.key.startswith(own)]
        return keys[::-1]

    async def _listed(
        self, principal: Principal, params: ListTasksRequest, keys: Sequence[str], most: int
    ) -> ListTasksResponse:
        found: list[Task] = []
        last = ""
        for number, key in enumerate(keys):
            if number == most:
                last = TaskName(key.rpartition(":")[0], keys[number - 1], params.context_id).task_id
                break
            task = await self._task(principal, params.context_id, key, _history(params))
            is_wanted = not params.status or task.status.state == params.status
            if is_wanted and all(task.id != each.id for each in found):
                found.append(task)
        return ListTasksResponse(tasks=found, next_page_token=last, page_size=most, total_size=len(keys))

    async def _stop(self, principal: Principal, state: TurnState) -> None:
        """Raises `TaskNotCancelableError` where another turn goes on in its conversation."""
        inbox, conversations = self._services.inbox, self._services.conversations
        if await inbox.withdraw(state.delivery):
            return  # nothing had begun
        newest = await conversations.newest_message(state.thread_id)
        key = f"a2a-cancel:{state.delivery}"
        result = await inbox.stop(key, state.thread_id, principal.person, newest=newest, accounts=principal.person_ids)
        if not isinstance(result, Settled):
            raise TaskNotCancelableError(result.text if isinstance(result, Refused) else None)

    # ------------------------------------------------------------------------------------------- not offered

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Not offered."""
        raise PushNotificationNotSupportedError(NO_PUSH)

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Not offered."""
        raise PushNotificationNotSupportedError(NO_PUSH)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Not offered."""
        raise PushNotificationNotSupportedError(NO_PUSH)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Not offered."""
        raise PushNotificationNotSupportedError(NO_PUSH)

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Not offered: the public card says all there is."""
        raise ExtendedAgentCardNotConfiguredError


def _exchange(context: ServerCallContext) -> Exchange:
    found = context.state[EXCHANGE]
    assert isinstance(found, Exchange)  # noqa: S101  # `dispatch` puts it there
    return found


@contextmanager
def _answering(exchange: Exchange) -> Iterator[None]:
    """Ends a request with an error of the protocol, or with a status of HTTP where that says it."""
    try:
        yield
    except A2AError:
        raise
    except Problem as problem:
        _refuse(exchange, problem)
    except Exception as error:
        if is_outage(error):
            note_refusal(exchange.call.request, error)
            _refuse(exchange, Problem(503, AWAY, retry_after=AGAIN_SECONDS))
        reference = new_reference()
        log.exception("api_request_failed", reference=reference, operation="agentToAgent")
        raise InternalError(f"Something went wrong here ({reference}).") from None


def _refuse(exchange: Exchange, problem: Problem) -> NoReturn:
    if problem.status in WITH_STATUS:
        exchange.failure = problem
        raise InternalError(problem.detail) from None
    if problem.status == 404:  # of HTTP
        raise TaskNotFoundError from None
    raise InvalidParamsError(problem.detail) from None


def _principal(exchange: Exchange, scope: Scope | None = None) -> Principal:
    """Whoever asks. Raises `Problem` (403) where their token does not allow it."""
    if scope is not None:
        _must(exchange.call.principal, scope)
    return exchange.call.principal


def _must(principal: Principal, scope: Scope) -> None:
    if not principal.may(scope):
        raise Problem(403, f"This token doesn’t allow that: it lacks the scope `{scope}`.")


def _named(task_id: str) -> TaskName:
    found = TaskName.of(task_id)
    if found is None:
        raise TaskNotFoundError
    return found


def _new_context(principal: Principal, message_id: str) -> str:
    """The context of a message that names none: of the same message again, the same."""
    named = f"{principal.person.person_id}\n{message_id}".encode()
    return hashlib.sha256(named).hexdigest()[:32]


def _refuse_push(params: SendMessageRequest) -> None:
    if params.configuration.HasField("task_push_notification_config"):
        raise PushNotificationNotSupportedError(NO_PUSH)


def _history(asked: Any) -> int | None:
    """How many messages of a task are wanted; `None`: all. Raises `InvalidParamsError`."""
    validate_history_length(asked)
    return int(asked.history_length) if asked.HasField("history_length") else None


def _only(waiting: Sequence[str]) -> str:
    """The one thing that an answer without an id can be about."""
    if len(waiting) == 1:
        return waiting[0]
    raise InvalidParamsError(
        f"{len(waiting)} things wait here: name one by its id." if waiting else "Nothing waits for an answer here."
    )


def _as_asked(principal: Principal, person_id: str) -> Person:
    """Whoever answers, as the account of theirs that was asked."""
    return replace(principal.person, person_id=person_id) if person_id in principal.person_ids else principal.person


def _form_answer(principal: Principal, reply: QuestionAnswer, view: ClarificationView, key: str) -> FormAnswer:
    """An object is the values of a form, and so is a text that holds one, where a tool asks."""
    person, values = _as_asked(principal, view.requester_id), reply.answer
    if isinstance(values, str) and view.server:
        try:
            values = json_in(values.encode())
        except (MalformedBodyError, UnicodeEncodeError):
            values = reply.answer
    if isinstance(values, Mapping):
        return FormAnswer(key, person, view.clarification_id, values, via="api")
    return FormAnswer(key, person, view.clarification_id, {}, text=str(reply.answer), via="api")


def _check(result: ClickResult) -> None:
    """Raises what says why nothing was done."""
    match result:
        case Settled():
            return
        case Invalid(errors=errors):
            said = " ".join(f"{name}: {what}" if name else what for name, what in errors.items())
            raise InvalidParamsError(visible(said))
        case Refused(text=text):
            raise Problem(403, visible(text))
        case _:
            raise InvalidParamsError(visible(result.text))
