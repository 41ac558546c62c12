"""`/.well-known/agent-card.json` and `POST /a2a`: the protocol A2A, in its versions 1.0 and 0.3, over JSON-RPC.

Its SDK is imported with the first request that needs it, in a thread: it takes half a second and some megabytes, which
who is not asked by agents shall not pay.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from pydantic import RootModel

from adapters.api.bodies import DEEPEST, LARGEST_BODY
from adapters.api.operations import ANY_SCOPE, Answer, ApiCall, Operation, json_answer
from adapters.api.turns import ApiTurns
from adapters.shared.importing import imported
from adapters.shared.long_answers import LongAnswers
from adapters.shared.problems import Problem
from adapters.shared.program_access import ProgramAccessConfig
from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.server_sent import EventStream, OpenStreams
from adapters.shared.untrusted_json import LONG, MalformedBodyError, has_too_many_values, json_in, refuse_unsound
from bot.services import Services
from graph.json_values import storable

if TYPE_CHECKING:
    from adapters.api.agent_to_agent.dispatch import AgentServer

RPC_PATH = "/a2a"
CARD_PATH = "/.well-known/agent-card.json"
VERSION_HEADERS = {"A2A-Version": "1.0 or 0.3; 0.3 where there is none."}
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
CARD_SECONDS = 60


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What the card says of this agent."""

    categories: Callable[[], Sequence[str]] = tuple
    """Of the tool servers, in general words."""
    issuer: str = ""
    """Whose tokens count; empty: nobody else's."""
    version: str = "1"


@dataclass(slots=True)
class Exchange:
    """A request, while it is answered."""

    call: ApiCall
    stream: EventStream | None = None
    """Where the answer is one."""
    failure: Problem | None = None
    """Why it is answered with a status of HTTP, rather than with an error of the protocol."""
    happenings: AsyncGenerator[Any, None] | None = None
    """What a stream tells of; closed when the stream ends."""


class CardShape(RootModel[dict[str, Any]]):
    """An agent card, as the protocol has it."""


class RpcAnswer(RootModel[dict[str, Any]]):
    """A result or an error, as JSON-RPC 2.0 has it."""


class AgentContract:
    """A view of conversations as contexts, and of turns as tasks.

    Args:
        open_: counts what is waited for.
        facts: of the card.
    """

    def __init__(
        self,
        services: Services,
        turns: ApiTurns,
        streams: OpenStreams,
        *,
        open_: LongAnswers,
        facts: AgentFacts,
        config: ProgramAccessConfig,
    ) -> None:
        self._parts = (services, turns, streams, open_)
        self._facts = facts
        self._config = config
        self._server: AgentServer | None = None

    def operations(self) -> Sequence[Operation]:
        """Both."""
        return [
            Operation(
                "GET",
                CARD_PATH,
                "getAgentCard",
                "Says to other agents what this one does, and where.",
                self.card,
                {200: Answer("The card.", CardShape)},
                scope=None,
                tag="agents",
            ),
            Operation(
                "POST",
                RPC_PATH,
                "agentToAgent",
                "Takes a request of another agent (A2A, JSON-RPC 2.0).",
                self.rpc,
                {200: Answer("Its result or error; of streaming methods an event stream of them.", RpcAnswer)},
                scope=ANY_SCOPE,
                headers=VERSION_HEADERS,
                problems=(408, 413, 415),
                tag="agents",
                description="`SendMessage` (`message/send` in version 0.3) and cancelling need the scope `run`, "
                "decisions `approve`, all else `read`.",
            ),
        ]

    async def card(self, call: ApiCall) -> web.Response:
        """`GET /.well-known/agent-card.json`."""
        module = await _imported("card")
        url = self._config.public_url or str(call.request.url.origin())
        is_local = self._config.local_person is not None
        answer = json_answer(module.card_json(self._facts, url, without_token=is_local))
        answer.headers["Cache-Control"] = f"public, max-age={CARD_SECONDS}"
        return answer

    async def rpc(self, call: ApiCall) -> web.StreamResponse:
        """`POST /a2a`."""
        if call.request.content_type != "application/json":
            raise Problem(415, "The body must be JSON: send Content-Type: application/json.")
        too_large = f"The body is larger than {LARGEST_BODY // 1024} KiB."
        try:
            raw = await read_whole_body(call.request, LARGEST_BODY, too_large)
        except BodyNotReadError as error:
            raise Problem(error.status, str(error)) from None
        try:
            asked = await asyncio.to_thread(_checked, raw) if len(raw) > LONG else _checked(raw)
        except MalformedBodyError as error:
            return _refused(PARSE_ERROR, f"The body isn’t valid JSON: {error}.")
        if not isinstance(asked, dict):
            return _refused(INVALID_REQUEST, "A request is an object; several at once are not taken.")
        if self._server is None:
            module = await _imported("dispatch")
            self._server = self._server or module.AgentServer(*self._parts)
        return await self._server.answer(Exchange(call), asked)


async def _imported(name: str) -> Any:
    return await imported(f"{__package__}.{name}")


def _checked(raw: bytes) -> Any:
    """What a body says. Raises `MalformedBodyError`."""
    if has_too_many_values(raw):
        raise MalformedBodyError("it holds too many values")
    value = json_in(raw)
    refuse_unsound(value, DEEPEST)
    return storable(value)


def _refused(code: int, said: str) -> web.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": said}}
    return web.Response(text=json.dumps(body), content_type="application/json", headers={"Cache-Control": "no-store"})
