"""The routes of the API: every operation behind the checks that it says, and in one table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from time import monotonic

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from adapters.api.agent_to_agent.contract import AgentContract, AgentFacts
from adapters.api.approvals import ApprovalResources
from adapters.api.bodies import read_body, read_query
from adapters.api.chat_contract import ChatContract
from adapters.api.connectors import ConnectorResources
from adapters.api.document import DocumentResources
from adapters.api.events import ThreadEvents
from adapters.api.operations import ANY_SCOPE, ApiCall, Operation
from adapters.api.operator_audit import JSON_LINES, OperatorAudit
from adapters.api.operator_parts import OperatorParts
from adapters.api.operator_rules import OperatorRules
from adapters.api.operator_stop import OperatorStop
from adapters.api.operator_turns import OperatorTurns
from adapters.api.own import OwnResources
from adapters.api.query_contract import QueryContract
from adapters.api.questions import QuestionResources
from adapters.api.reference_page import reference_page
from adapters.api.resources import ThreadResources
from adapters.api.run_contract import RunContract
from adapters.api.stream_contract import StreamContract
from adapters.api.thread_names import ThreadNames
from adapters.api.turns import ApiTurns, ShowMessage
from adapters.api.uploads import UploadResources
from adapters.shared.live.board import LiveBoard
from adapters.shared.live.hub import Hub
from adapters.shared.long_answers import LongAnswers
from adapters.shared.operator_operations import OperatorOperation
from adapters.shared.outages import AGAIN_SECONDS, AWAY, note_refusal
from adapters.shared.problems import Problem, new_reference, problem_answer
from adapters.shared.program_access import Authenticates, ProgramAccess, ProgramAccessConfig
from adapters.shared.server_sent import EVENT_STREAM, OpenStreams
from adapters.shared.token_watch import TokenWatch
from bot.domain import Clock
from bot.identity.principal import ALL_SCOPES, Principal
from bot.limits import BeginningsHere
from bot.records.database import is_outage
from bot.services import Services

log = structlog.get_logger(__name__)
ANY_METHOD = "*"
OPERATORS = "/api/v1/operator"
"""What the paths of everything that is for operators begin with."""


class ApiReceiver:
    """Takes what programs send."""

    name = "api"

    def __init__(
        self,
        config: ProgramAccessConfig,
        services: Services,
        bearers: Authenticates,
        clock: Clock,
        *,
        names: ThreadNames,
        hub: Hub,
        board: LiveBoard,
        show_message: ShowMessage,
        messages_a_minute: int,
        hitl_timeout_seconds: float,
        agent: AgentFacts,
    ) -> None:
        beginnings = BeginningsHere(monotonic)
        self._access = ProgramAccess(config, bearers, beginnings)
        watch = TokenWatch(bearers, clock)
        turns = ApiTurns(
            services,
            hub,
            board,
            clock,
            beginnings,
            names=names,
            watch=watch,
            show_message=show_message,
            messages_a_minute=messages_a_minute,
        )
        self._open = LongAnswers()
        streams = OpenStreams(self._access, watch, self._open)
        document = DocumentResources(
            lambda: self.operations, reference_page, without_token=config.local_person is not None
        )
        agents = AgentContract(services, turns, streams, open_=self._open, facts=agent, config=config)
        events = ThreadEvents(services.conversations, hub, board, self._access, watch)
        self.operations: Sequence[Operation] = [
            *ThreadResources(services, turns, events).operations(),
            *ApprovalResources(services).operations(),
            *QuestionResources(services).operations(),
            *ConnectorResources(services).operations(),
            *OwnResources(services).operations(),
            *OperatorTurns(services).operations(),
            *OperatorAudit(services, streams).operations(),
            *OperatorStop(services).operations(),
            *OperatorParts(services).operations(),
            *OperatorRules(services).operations(),
            *UploadResources(services).operations(),
            *RunContract(services, turns).operations(),
            *ChatContract(services, turns).operations(),
            *StreamContract(turns, streams).operations(),
            *QueryContract(services, turns, streams, hitl_timeout_seconds).operations(),
            *agents.operations(),
            *document.operations(),
        ]

    def routes(self) -> list[web.RouteDef]:
        """Every operation, the questions that browsers ask before, and what is answered to all else."""
        at: dict[str, list[Operation]] = {}
        for operation in self.operations:
            at.setdefault(operation.path, []).append(operation)
        routes: list[web.RouteDef] = []
        for path, operations in at.items():
            methods = ", ".join(each.method for each in operations)
            for each in operations:
                # A stream has no end whose length could be told.
                how = {"allow_head": not _is_stream(each)} if each.method == "GET" else {}
                routes.append(web.route(each.method, path, self._checked(each), **how))
            routes.append(web.route("OPTIONS", path, self._preflight(methods)))
            routes.append(web.route(ANY_METHOD, path, self._not_allowed(f"{methods}, OPTIONS")))
        return [*routes, web.route(ANY_METHOD, "/api/v1/{path:.*}", self._not_found)]

    def _preflight(self, methods: str) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=204, headers=self._access.preflight(request, methods))

        return answer

    def _not_allowed(self, methods: str) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            said = f"{request.method} isn’t allowed here. Use {methods}."
            response = problem_answer(Problem(405, said), new_reference())
            response.headers.update({**self._access.answer_headers(request), "Allow": methods})
            return response

        return answer

    async def _not_found(self, request: web.Request) -> web.Response:
        response = problem_answer(Problem(404, "There’s nothing at this address. See /api/docs."), new_reference())
        response.headers.update(self._access.answer_headers(request))
        return response

    @property
    def for_operators(self) -> list[OperatorOperation]:
        """What operators can ask for, for whoever knows in another way than by a token who asks."""
        return [
            OperatorOperation(
                each.method, each.path.removeprefix(OPERATORS), _is_stream(each), partial(self._answer, each)
            )
            for each in self.operations
            if each.path.startswith(f"{OPERATORS}/")
        ]

    def _checked(self, operation: Operation) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            return await self._answered(operation, request, partial(self._principal, operation, request))

        return answer

    async def _answer(self, operation: Operation, request: web.Request, principal: Principal) -> web.StreamResponse:
        async def known() -> Principal:
            return principal

        return await self._answered(operation, request, known)

    async def _answered(
        self, operation: Operation, request: web.Request, principal: Callable[[], Awaitable[Principal | None]]
    ) -> web.StreamResponse:
        reference = new_reference()
        try:
            call = await self._call(operation, request, principal)
            with self._open.one_more(call.principal) if operation.waits else nullcontext():
                response = await operation.handle(call)
        except Problem as problem:
            response = problem_answer(problem, reference)
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception as error:
            if is_outage(error):
                note_refusal(request, error)
                response = problem_answer(Problem(503, AWAY, retry_after=AGAIN_SECONDS), reference)
            else:
                log.exception("api_request_failed", reference=reference, operation=operation.name)
                response = problem_answer(Problem(500, "Something went wrong."), reference)
        if not response.prepared:
            for name, value in self._access.answer_headers(request).items():
                response.headers.setdefault(name, value)
        return response

    async def _call(
        self, operation: Operation, request: web.Request, principal: Callable[[], Awaitable[Principal | None]]
    ) -> ApiCall:
        """Who asks first, then what: nothing of a request is read before it is known whose it is."""
        found = await principal()
        asked = read_query(request, operation.query) if operation.query is not None else None
        given = await read_body(request, operation.body) if operation.body is not None else None
        return ApiCall(request, found, given, asked)

    async def _principal(self, operation: Operation, request: web.Request) -> Principal | None:
        if operation.scope is None:
            return None
        scopes = sorted(ALL_SCOPES) if operation.scope == ANY_SCOPE else [operation.scope]
        return await self._access.principal(request, scopes)


def _is_stream(operation: Operation) -> bool:
    return any(answer.media in (EVENT_STREAM, JSON_LINES) for answer in operation.answers.values())
