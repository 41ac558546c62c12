"""`POST /query`, `POST /query/stream` and `POST /hitl/respond`: questions to the agent, with approvals in the stream.

`/query` asks nobody: calls that would need an approval are not made, and are named in its answer. `/query/stream` tells
of approvals as `hitl_required` and stays open over them; they expire after `HITL_TIMEOUT_SECONDS`, and may be decided
with `/hitl/respond`, or on their cards by whoever may. What the stream tells is read from the records: it is right
wherever somebody decides. It ends with `done`; one that ends without it was broken off on this side, and what was asked
in it can still be decided.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from math import ceil
from typing import Any, Literal

from aiohttp import web
from pydantic import AliasChoices, Field

from adapters.api.bodies import NOT_BLANK, LooseBody
from adapters.api.following import (
    ApprovalEnded,
    ApprovalNeeded,
    Before,
    Happening,
    Interrupted,
    Silence,
    Text,
    TurnFollower,
    sentences,
)
from adapters.api.models import LONGEST_LINE, AgentName, Shape, SourceShape, SourcesWhereAny
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.turns import LONGEST_WAIT, ApiTurns
from adapters.shared.problems import Problem
from adapters.shared.server_sent import ClientGone, EventStream, OpenStreams, named_event
from bot.crypto import random_token
from bot.domain import AlreadySettled, ApprovalView, Choice, Decision, Invalid, Refused, Settled, Unknown
from bot.identity.principal import Principal
from bot.safe_text import visible, visible_line
from bot.services import Services

KIND = "query"
"""In which contract a `thread_id` is known."""
AGENT_ID, AGENT_NAME = "default", "Countersign"
LONGEST_VALUE = 80
"""Characters of an argument in `task_description`."""
MOST_VALUES = 5
LONGEST_INSTRUCTIONS = 2_000
"""Characters; of a reason as many are kept."""
_EVENTS: Mapping[str, str] = {"approved": "hitl_approved", "expired": "hitl_timeout"}
"""How an approval ended → event; whatever else became of it, its call does not run."""


class QueryBody(LooseBody):
    """A question."""

    query: str = Field(
        validation_alias=AliasChoices("query", "prompt", "message"),
        description="May be called `prompt` or `message`, too.",
        json_schema_extra=NOT_BLANK,
    )
    thread_id: str | None = Field(None, description="Any text; the same one goes on.")
    agent: AgentName = None


class RespondBody(LooseBody):
    """A decision."""

    request_id: str
    decision: Literal["approved", "denied"]
    instructions: str | None = Field(
        None,
        max_length=LONGEST_INSTRUCTIONS,
        description="With `approved`: the call does not run, and the model is told them instead. With `denied`: why.",
    )


class SkippedCallShape(Shape):
    """A call that was not made, because somebody would have had to be asked."""

    tool_name: str
    server: str
    call_id: str


class QueryShape(Shape):
    """The answer to a question."""

    status: Literal["success"]
    response: str
    thread_id: str
    hitl_skipped_non_streaming: list[SkippedCallShape]
    sources: SourcesWhereAny


class RespondedShape(Shape):
    """What became of a decision."""

    status: Literal["success"]
    request_id: str
    result: Literal["approved", "denied", "counted"] = Field(description="`counted`: it waits for others, too.")
    message: str


class QueryContract:
    """Fills the contract.

    Args:
        timeout_seconds: after which approvals that `/query/stream` asks for expire.
    """

    def __init__(self, services: Services, turns: ApiTurns, streams: OpenStreams, timeout_seconds: float) -> None:
        self._services = services
        self._turns = turns
        self._streams = streams
        self._timeout_seconds = timeout_seconds

    def operations(self) -> Sequence[Operation]:
        """All three."""
        return [
            Operation(
                "POST",
                "/query",
                "query",
                "Answers a question, and asks nobody.",
                self.query,
                {200: Answer("The answer.", QueryShape)},
                scope="run",
                body=QueryBody,
                waits=True,
                problems=(404, 409, 429),
                tag="queries",
                description=__doc__ or "",
            ),
            Operation(
                "POST",
                "/query/stream",
                "streamQuery",
                "Streams an answer, and what people are asked meanwhile.",
                self.stream,
                {200: Answer("`token`, `hitl_required`, `hitl_approved`, … `done`.", media="text/event-stream")},
                scope="run",
                body=QueryBody,
                problems=(404, 409, 429),
                tag="queries",
            ),
            Operation(
                "POST",
                "/hitl/respond",
                "respond",
                "Decides what a stream has asked.",
                self.respond,
                {200: Answer("It is decided, or the vote counts.", RespondedShape)},
                scope="approve",
                body=RespondBody,
                problems=(403, 404, 409),
                tag="queries",
            ),
        ]

    # ------------------------------------------------------------------------------------------- asking

    async def query(self, call: ApiCall) -> web.Response:
        """`POST /query`."""
        body, principal = call.body(QueryBody), call.principal
        given, thread_id = await _thread(self._turns, principal, body)
        before = Before.of(await self._turns.newest_state(principal, thread_id))
        message = await self._turns.send(principal, thread_id, body.query, options={"asks": False}, agent=body.agent)
        state = await self._turns.answered(call, thread_id, message, LONGEST_WAIT)
        if state.status == "running":
            raise Problem(503, "There’s no answer yet. Look at the conversation later.", retry_after=60)
        said = [visible(each.text) for each in state.said[-1:] if each.message_id not in before.said]
        words = [each for each in sentences(state) if each not in before.sentences]
        if not said and any(notice.tone == "error" for notice in state.notices):
            raise Problem(500, "\n\n".join(words))
        return json_answer(
            QueryShape(
                status="success",
                response="\n\n".join([*said, *words]),
                thread_id=given,
                hitl_skipped_non_streaming=[
                    SkippedCallShape(tool_name=each.tool, server=each.server, call_id=each.call_id)
                    for each in state.calls
                    if each.why == "skipped" and each.call_id not in before.calls
                ],
                sources=SourceShape.all_of(state) if said else [],
            )
        )

    async def stream(self, call: ApiCall) -> web.StreamResponse:
        """`POST /query/stream`."""
        body, principal = call.body(QueryBody), call.principal
        with self._streams.opened(call.request, call.principal) as stream:
            given, thread_id = await _thread(self._turns, principal, body)
            before = Before.of(await self._turns.newest_state(principal, thread_id))
            options = {"approval_seconds": self._timeout_seconds}
            message = await self._turns.send(principal, thread_id, body.query, options=options, agent=body.agent)
            follower = TurnFollower(
                self._turns, principal, thread_id, message, before, lambda: stream.is_read, waits_for_approvals=True
            )
            # Where the client goes away, or this process ends, the turn goes on: what was asked can still be decided.
            with suppress(ClientGone, Interrupted):
                await stream.begin()
                try:
                    async with aclosing(follower.happenings()) as happenings:
                        await self._tell(stream, principal, happenings)
                except Problem as problem:
                    await stream.send(named_event("token", {"text": problem.detail}))
                await stream.send(named_event("done", {"thread_id": given}))
                await stream.end()
        return stream.response

    async def _tell(self, stream: EventStream, principal: Principal, happenings: AsyncIterator[Happening]) -> None:
        asking: dict[str, str] = {}
        async for happening in happenings:
            match happening:
                case Text(text=text):
                    await stream.send(named_event("token", {"text": text}))
                case ApprovalNeeded(approval_id=approval_id):
                    card = await self._services.conversations.card(approval_id, principal.person)
                    if isinstance(card, ApprovalView):
                        asking[approval_id] = card.agent
                        await stream.send(named_event("hitl_required", self._required(card)))
                case ApprovalEnded(approval_id=approval_id, status=status):
                    name = _EVENTS.get(status, "hitl_denied")
                    agent = asking.get(approval_id) or AGENT_ID
                    await stream.send(named_event(name, {"request_id": approval_id, "agent_id": agent}))
                case Silence():
                    await stream.beat()
                case _:
                    pass

    def _required(self, card: ApprovalView) -> Mapping[str, Any]:
        within = card.expires_at - card.asked_at if card.expires_at is not None else self._timeout_seconds
        return {
            "request_id": card.approval_id,
            "agent_id": card.agent or AGENT_ID,
            "agent_name": card.agent or AGENT_NAME,
            "tool_names": [card.tool],
            "task_description": description_of(card),
            "timeout_seconds": ceil(within),
        }

    # ------------------------------------------------------------------------------------------- deciding

    async def respond(self, call: ApiCall) -> web.Response:
        """`POST /hitl/respond`."""
        body, person = call.body(RespondBody), call.principal.person
        if isinstance(await self._services.conversations.card(body.request_id, person), Unknown):
            raise Problem(404, "There’s no such request here.")
        instructions = (body.instructions or "").strip()
        is_approval = body.decision == "approved" and not instructions
        choice = Choice(body.request_id, "approve" if is_approval else "reject", instructions)
        decision = Decision(f"api:{random_token()}", person, (choice,), via="api")
        match (await self._services.approvals.decide(decision))[body.request_id]:
            case Settled(text=text, final=final):
                decided: Literal["approved", "denied"] = "approved" if is_approval else "denied"
                result = decided if final else "counted"
                return json_answer(
                    RespondedShape(status="success", request_id=body.request_id, result=result, message=text)
                )
            case AlreadySettled(text=text):
                raise Problem(409, text)
            case Refused(text=text):
                raise Problem(403, text)
            case Invalid(errors=errors):
                raise Problem(422, " ".join(errors.values()), errors={"instructions": " ".join(errors.values())})
            case Unknown(text=text):
                raise Problem(404, text)


def description_of(card: ApprovalView) -> str:
    """Returns what is to be done, in one line: the title of the tool, and its first arguments."""
    values = [
        f"{visible_line(name, LONGEST_VALUE)}: {visible_line(_as_text(value), LONGEST_VALUE)}"
        for name, value in [*card.arguments.items()][:MOST_VALUES]
    ]
    more = [f"… {len(card.arguments) - MOST_VALUES} more"] if len(card.arguments) > MOST_VALUES else []
    title = visible_line(card.title or card.tool, LONGEST_LINE)
    return f"{title} ({', '.join([*values, *more])})" if values else title


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def _thread(turns: ApiTurns, principal: Principal, body: QueryBody) -> tuple[str, str]:
    """The caller's own id of the conversation, and the thread that it means."""
    given = body.thread_id or random_token()[:24]
    return given, await turns.thread_of(principal, KIND, given)
