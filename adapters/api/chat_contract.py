"""`POST /api/v1/agent/{user_id}/chat`: one message, one answer, and the calls that were made for it.

Conversations have numbers. What waits for people is decided and answered elsewhere (`/api/v1/approvals`, the page); a
question of the model's is answered by the next message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from adapters.api.bodies import DEEPEST, NOT_BLANK, LooseBody
from adapters.api.endings import IDEMPOTENCY, answer_in, idempotency_key, runs_on
from adapters.api.models import AgentName, Shape, SourceShape, SourcesWhereAny
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.thread_names import new_thread_id
from adapters.api.turns import LONGEST_TEXT, LONGEST_WAIT, ApiTurns
from adapters.shared.problems import Problem
from adapters.shared.untrusted_json import LONG, MalformedBodyError, json_in, refuse_unsound
from bot.conversations import CallState, TurnState, no_conversation
from bot.identity.principal import Principal
from bot.safe_text import visible
from bot.services import Services

KIND = "chat"
"""Of the threads that are begun by a request with a key (`ThreadNames`)."""
UNAVAILABLE = "Agent is currently unavailable. Please try again later."
LONGEST_RESULT = 4_000_000
"""Characters of a result in which JSON is looked for; a longer one is answered as a text."""


class ChatBody(LooseBody):
    """A message."""

    message: str = Field(description=f"At most {LONGEST_TEXT:,} characters.", json_schema_extra=NOT_BLANK)
    conversation_id: int | None = Field(None, strict=True, description="null begins a conversation.")
    agent: AgentName = None


class ChatCall(Shape):
    """A tool call, and what came of it."""

    tool_name: str
    arguments: dict[str, Any]
    result: Any = Field(
        description="What the tool returned, parsed where it is JSON. Of others an object with a `status`: "
        '`{"status": "approval_required", "approval_id"}` of a call that waits for approval.'
    )


class ChatAnswer(Shape):
    """What came of a message."""

    conversation_id: int
    user_message_id: int
    agent_message_id: int
    agent_response: str
    tool_calls: list[ChatCall]
    sources: SourcesWhereAny


class ChatHealth(Shape):
    """The contract is served."""

    status: Literal["healthy"] = "healthy"
    service: Literal["agent-chat"] = "agent-chat"


class ChatContract:
    """A view of threads, which have a number here.

    Args:
        longest_wait: seconds that a request waits for a turn that runs.
    """

    def __init__(self, services: Services, turns: ApiTurns, *, longest_wait: float = LONGEST_WAIT) -> None:
        self._services = services
        self._turns = turns
        self._longest_wait = longest_wait

    def operations(self) -> Sequence[Operation]:
        """Both."""
        return [
            Operation(
                "POST",
                "/api/v1/agent/{user_id}/chat",
                "agentChat",
                "Sends a message and answers what came of it.",
                self.chat,
                {200: Answer("The answer, or what it waits for.", ChatAnswer)},
                scope="run",
                body=ChatBody,
                waits=True,
                headers=IDEMPOTENCY,
                problems=(409, 504),
                tag="agent",
                description="`user_id` is the `sub` of the caller's token.",
            ),
            Operation(
                "GET",
                "/api/v1/agent/health",
                "agentHealth",
                "Says that it is served.",
                self.health,
                {200: Answer("It is.", ChatHealth)},
                scope=None,
                tag="agent",
            ),
        ]

    async def health(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/agent/health`."""
        return json_answer(ChatHealth())

    async def chat(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/agent/{user_id}/chat`."""
        body, principal = call.body(ChatBody), call.principal
        if call.path("user_id") != principal.subject:
            raise Problem(403, "This token belongs to another user.")
        if not body.message.strip():
            raise Problem(400, "The message is empty.")
        key = idempotency_key(call)
        thread_id = await self._thread(principal, body.conversation_id, key)
        message = await self._turns.send(principal, thread_id, body.message, key=key, agent=body.agent)
        conversations = self._services.conversations
        number = body.conversation_id or await conversations.number_of(thread_id, principal.person)
        state = await self._turns.answered(call, thread_id, message, self._longest_wait)
        if state.status == "running":
            raise runs_on(thread_id, message)
        answer = await self._said(principal, state)
        sent = await conversations.message(thread_id, message)
        return json_answer(
            ChatAnswer(
                conversation_id=number,
                user_message_id=sent.number if sent is not None else 0,
                agent_message_id=state.answer_number or await conversations.newest_post_number(thread_id),
                agent_response=answer,
                tool_calls=[await self._call(each, state) for each in state.calls],
                sources=SourceShape.all_of(state),
            )
        )

    async def _thread(self, principal: Principal, number: int | None, key: str) -> str:
        """The thread of a conversation. A new one that is begun by the same request again is the same."""
        if number is None:
            return await self._turns.thread_of(principal, KIND, key) if key else new_thread_id()
        found = await self._services.conversations.by_number(number)
        if found is None:
            raise Problem(404, no_conversation().text)
        thread_id, owner = found
        if owner not in principal.person_ids:
            raise Problem(403, "This conversation belongs to someone else.")
        return thread_id

    async def _said(self, principal: Principal, state: TurnState) -> str:
        """What the bot said, with what it waits for."""
        if state.status == "ended":
            answer = answer_in(state)
            if answer is None:
                raise Problem(500, UNAVAILABLE)
            return answer
        links = [await self._link(principal, view.sign_in_id, view.server) for view in state.sign_ins]
        waits = [
            *([state.answer] if state.answer else []),
            *("\n".join(part for part in (view.question, view.context) if part) for view in state.clarifications),
            *links,
            *(f"What came of {view.server}: {view.tool} is not known. {view.known}".strip() for view in state.outcomes),
            *(f"{view.server}: {view.tool} waits for approval." for view in state.approvals),
        ]
        return visible("\n\n".join(waits))

    async def _link(self, principal: Principal, sign_in_id: str, server: str) -> str:
        link = await self._services.sign_in_links.link(sign_in_id, principal.person.person_id)
        return f"{server} needs you to sign in: {link}" if isinstance(link, str) else link.text

    async def _call(self, call: CallState, state: TurnState) -> ChatCall:
        return ChatCall(tool_name=call.tool, arguments=dict(call.arguments), result=await _result(call, state))


async def _result(call: CallState, state: TurnState) -> Any:
    if waits := _waits_for(call.call_id, state):
        return waits
    match call.status:
        case "done" if len(call.result) > LONG:
            return await asyncio.to_thread(_parsed, call.result)
        case "done":
            return _parsed(call.result)
        case "not made":
            return {"status": call.why, "reason": call.result}
        case "failed":
            return {"status": "failed", "error": call.result}
        case status:
            return {"status": status, "known": call.result}


def _waits_for(call_id: str, state: TurnState) -> Mapping[str, Any] | None:
    """What a call waits for."""
    for approval in state.approvals:
        if approval.call_id == call_id:
            return {"status": "approval_required", "approval_id": approval.approval_id}
    for question in state.clarifications:
        if question.call_id == call_id:
            return {"status": "clarification_required", "clarification_id": question.clarification_id}
    for sign_in in state.sign_ins:
        if sign_in.call_id == call_id:
            return {"status": "sign_in_required", "sign_in_id": sign_in.sign_in_id}
    for outcome in state.outcomes:
        if outcome.call_id == call_id:
            return {"status": "outcome_unknown", "outcome_id": outcome.outcome_id, "known": outcome.known}
    return None


def _parsed(text: str) -> Any:
    """What a text says as JSON; the text where it says none."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(text) > LONGEST_RESULT:
        return text
    try:
        value = json_in(raw)
        refuse_unsound(value, DEEPEST)
    except MalformedBodyError:
        return text
    return value
