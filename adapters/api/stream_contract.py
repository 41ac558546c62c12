"""`POST /ai/agent/stream` and `POST /ai/stream`: an answer as it is written, for clients that know nothing else.

Text goes as `data: <text>`, piece by piece; together the pieces are what the bot says, with an empty line between two
things that it says in one turn. What happens to tool calls goes as JSON with an `event`. At the end comes `event: end`;
a stream that ends without it was broken off on this side, and the turn goes on.

An approval may take a day: once people are asked and nothing else is going on, the stream ends. The conversation shows
the card, and a later request on the same `threadId` goes on in the same conversation. So it is with questions, whose
words are sent as text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from adapters.api.bodies import LooseBody
from adapters.api.following import Before, CallChanged, Happening, Interrupted, Silence, Text, TurnFollower
from adapters.api.models import LONGEST_LINE, AgentName, ModeName
from adapters.api.operations import Answer, ApiCall, Operation
from adapters.api.thread_names import new_thread_id
from adapters.api.turns import ApiTurns
from adapters.shared.problems import Problem
from adapters.shared.server_sent import ClientGone, EventStream, OpenStreams
from bot.conversations import CallState
from bot.identity.principal import Principal
from bot.safe_text import visible_line

KIND = "stream"
"""In which contract a `threadId` is known."""
END = b"event: end\ndata: [DONE]\n\n"
EMPTY = "The prompt is empty: write what you want to know, or have done."

ToolEvent = Literal["tool_start", "tool_end", "tool_error", "policy_blocked", "approval_required"]
_BLOCKED = frozenset({"denied", "limited", "skipped"})


class PromptBody(LooseBody):
    """What is asked."""

    prompt: str = Field("", description="An empty one gets a stream with an error.")
    thread_id: str | None = Field(None, alias="threadId", description="Any text; the same one goes on.")
    agent: AgentName = None


class AgentPromptBody(PromptBody):
    """What is asked, and how free the agent is."""

    mode: ModeName | None = Field(None, description="The stricter of it and the configured mode counts.")


class StreamContract:
    """Fills the contract."""

    def __init__(self, turns: ApiTurns, streams: OpenStreams) -> None:
        self._turns = turns
        self._streams = streams

    def operations(self) -> Sequence[Operation]:
        """Both streams."""
        stream = {200: Answer("The answer, piece by piece.", media="text/event-stream")}
        problems = (404, 409, 429)
        return [
            Operation(
                "POST",
                "/ai/agent/stream",
                "streamAgent",
                "Streams an answer, and what happens to tool calls.",
                self.agent,
                stream,
                scope="run",
                body=AgentPromptBody,
                problems=problems,
                tag="streams",
                description=__doc__ or "",
            ),
            Operation(
                "POST",
                "/ai/stream",
                "streamText",
                "Streams an answer that is given without tools.",
                self.text,
                stream,
                scope="run",
                body=PromptBody,
                problems=problems,
                tag="streams",
            ),
        ]

    async def agent(self, call: ApiCall) -> web.StreamResponse:
        """`POST /ai/agent/stream`."""
        body = call.body(AgentPromptBody)
        return await self._stream(call, body, {"mode": body.mode} if body.mode is not None else {})

    async def text(self, call: ApiCall) -> web.StreamResponse:
        """`POST /ai/stream`."""
        return await self._stream(call, call.body(PromptBody), {"tools": False})

    async def _stream(self, call: ApiCall, body: PromptBody, options: Mapping[str, Any]) -> web.StreamResponse:
        with self._streams.opened(call.request, call.principal) as stream:
            if not body.prompt.strip():
                await _only(stream, EMPTY)
            else:
                await self._answer(stream, call.principal, body, options)
        return stream.response

    async def _answer(
        self, stream: EventStream, principal: Principal, body: PromptBody, options: Mapping[str, Any]
    ) -> None:
        given = body.thread_id
        thread_id = await self._turns.thread_of(principal, KIND, given) if given else new_thread_id()
        before = Before.of(await self._turns.newest_state(principal, thread_id))
        message = await self._turns.send(principal, thread_id, body.prompt, options=options, agent=body.agent)
        follower = TurnFollower(self._turns, principal, thread_id, message, before, lambda: stream.is_read)
        try:
            await stream.begin()
            async with aclosing(follower.happenings()) as happenings:
                await _tell(stream, happenings)
            if not stream.is_read:
                raise ClientGone  # noqa: TRY301
            await stream.send(END)
            await stream.end()
        except ClientGone:
            await self._turns.leave(principal, thread_id, message)
        except Interrupted:
            pass
        except Problem as problem:
            await _only(stream, problem.detail)


async def _only(stream: EventStream, error: str) -> None:
    with suppress(ClientGone):
        if not stream.response.prepared:
            await stream.begin()
        await stream.send(_event({"text": error, "event": "error"}) + END)
        await stream.end()


async def _tell(stream: EventStream, happenings: AsyncIterator[Happening]) -> None:
    async for happening in happenings:
        match happening:
            case Text(text=text):
                await stream.send(piece(text))
            case CallChanged(call=call):
                await stream.send(_tool_event(call))
            case Silence():
                await stream.beat()
            case _:
                pass  # of an approval, its call tells


def piece(text: str) -> bytes:
    """Returns a piece of text as an event: as it is, unless a client could take it for something else."""
    return _event({"text": text}) if is_misread(text) else f"data: {text}\n\n".encode()


def is_misread(text: str) -> bool:
    """Whether a client that reads lines, and JSON where there is some, would not get this text."""
    if text.splitlines() != [text] or text.strip()[:1] in {"{", "[", '"'} or text.startswith("\ufeff"):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _tool_event(call: CallState) -> bytes:
    event, said = _said_of(call)
    tool = visible_line(call.tool, LONGEST_LINE)
    why = visible_line(call.result, LONGEST_LINE) if event in {"tool_error", "policy_blocked"} else ""
    return _event({"text": f"{tool} {said}" + (f": {why}" if why else ""), "event": event, "tool": call.tool})


def _said_of(call: CallState) -> tuple[ToolEvent, str]:
    match call.status:
        case "waiting":
            return "approval_required", "needs an approval"
        case "running":
            return "tool_start", "has begun"
        case "done":
            return "tool_end", "is done"
        case "not made" if call.why in _BLOCKED:
            return "policy_blocked", "is not allowed"
        case "not made":
            return "tool_error", "was not made"
        case "unknown":
            return "tool_error", "was begun, and what came of it is not known"
        case _:
            return "tool_error", "has failed"
