"""`/api/v1/operator/tool-servers`, `/replicas`, `/accounts`, `/parked`: the parts of an installation; for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.bodies import Body
from adapters.api.models import LONGEST_LINE, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.operator_stop import done
from adapters.api.operator_turns import LONGEST_TURN
from adapters.api.results import SETTLING, ResultShape, for_operators
from bot.console.parked import MOST_PARKED, NEWEST, Parked, ParkedPage
from bot.console.parts import MOST_ACCOUNTS, AccountPage, ToolServerHere
from bot.safe_text import visible, visible_line
from bot.services import Services


class ReplicaShape(Shape):
    """A process on the same records."""

    model_config = ConfigDict(frozen=True, title="Replica")
    id: str = Field(description="Empty: there is only this one.")
    host: str
    process: int
    here: bool = Field(description="Whether it is the one that answers.")
    version: str
    started: str
    seen_seconds_ago: float
    policy: str
    policy_differs: bool
    stopped: bool | None = Field(description="Whether it knows that everything is stopped; null: it does not say.")

    @classmethod
    def of(cls, replica: Mapping[str, Any], stopped: bool | None) -> ReplicaShape:  # noqa: FBT001  # as it says
        """As operators see it."""
        return cls(**replica, stopped=stopped)


class ReplicaListShape(Shape):
    """The processes that are there, the one that answers first."""

    model_config = ConfigDict(frozen=True, title="ReplicaList")
    replicas: list[ReplicaShape]


class ToolServerShape(Shape):
    """How a tool server is, as one replica sees it."""

    model_config = ConfigDict(frozen=True, title="ToolServer")
    name: str
    state: str = Field(description="starting, up, down, misconfigured, closed or unsupported.")
    tools: int = Field(description="How many can be called now.")
    reason: str = Field(description="Ends a sentence that begins with its name; empty while it is up.")
    withheld: list[str] = Field(description="Which of its tools are not offered, and why.")
    replica: str = Field(description="Id of the replica; empty: there is only one.")
    host: str
    process: int
    here: bool

    @classmethod
    def of(cls, server: ToolServerHere) -> ToolServerShape:
        """As operators see it."""
        return cls(
            name=server.name,
            state=server.state,
            tools=server.tools,
            reason=visible(server.reason),
            withheld=[visible(sentence) for sentence in server.withheld],
            replica=server.replica["id"],
            host=server.replica["host"],
            process=server.replica["process"],
            here=server.replica["here"],
        )


class ToolServerListShape(Shape):
    """The tool servers, at each replica."""

    model_config = ConfigDict(frozen=True, title="ToolServerList")
    servers: list[ToolServerShape]


class OperatorAccountShape(Shape):
    """An account that a person has connected."""

    model_config = ConfigDict(frozen=True, title="OperatorAccount")
    id: str
    person_id: str
    person: str
    connection: str
    service: str
    account: str
    status: str = Field(
        description="active; refused: the service does not accept it any more; expired; ended: the service has yet to "
        "be told."
    )
    since: float
    used_at: float | None


class OperatorAccountListShape(Shape):
    """Everybody's accounts."""

    model_config = ConfigDict(frozen=True, title="OperatorAccountList")
    accounts: list[OperatorAccountShape]
    next: str = Field(description="`after` of the next page; empty: this is the last one.")

    @classmethod
    def of(cls, page: AccountPage) -> OperatorAccountListShape:
        """As operators see it."""
        return cls(
            accounts=[
                OperatorAccountShape(
                    id=each.account.connection_id,
                    person_id=each.account.person_id,
                    person=visible_line(each.person, LONGEST_LINE),
                    connection=each.account.connection,
                    service=visible_line(each.account.service, LONGEST_LINE),
                    account=visible_line(each.account.account, LONGEST_LINE),
                    status=each.account.status,
                    since=each.account.since,
                    used_at=each.account.used_at,
                )
                for each in page.accounts
            ],
            next=page.following,
        )


class ParkedShape(Shape):
    """A delivery that was given up."""

    model_config = ConfigDict(frozen=True, title="Parked")
    id: str
    thread_id: str
    kind: str
    person_id: str
    person: str
    text: str
    cause: str
    at: float
    tries: int
    reference: str = Field(description="What people were told.")
    can_retry: bool
    why_not: str = Field(description="Why it cannot be tried again; empty: it can.")

    @classmethod
    def of(cls, parked: Parked) -> ParkedShape:
        """As operators see it."""
        return cls(
            id=parked.key,
            thread_id=parked.thread_id,
            kind=parked.kind,
            person_id=parked.person_id,
            person=visible_line(parked.person, LONGEST_LINE),
            text=visible(parked.text),
            cause=visible(parked.cause),
            at=parked.at,
            tries=parked.tries,
            reference=parked.reference,
            can_retry=not parked.why_not,
            why_not=parked.why_not,
        )


class ParkedListShape(Shape):
    """What was given up, the newest first."""

    model_config = ConfigDict(frozen=True, title="ParkedList")
    parked: list[ParkedShape]
    next: str = Field(description="`before` of the next page; empty: this is the last one.")

    @classmethod
    def of(cls, page: ParkedPage) -> ParkedListShape:
        """As operators see it."""
        return cls(parked=[ParkedShape.of(each) for each in page.parked], next=page.following)


class AccountsQuery(Body):
    """Which page of the accounts."""

    after: Annotated[str, Field(max_length=LONGEST_LINE, description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_ACCOUNTS)] = 50


class ParkedQuery(Body):
    """Which page of what was given up."""

    before: Annotated[str, Field(pattern=r"^[0-9]{0,18}$", description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_PARKED)] = 50


class OperatorParts:
    """The parts of an installation, for operators."""

    def __init__(self, services: Services) -> None:
        self._parts = services.console.parts
        self._parked = services.console.parked

    def operations(self) -> Sequence[Operation]:
        """What can be done with them."""
        acted = {200: Answer("It is under way.", ResultShape)}
        return [
            Operation(
                "GET",
                "/api/v1/operator/tool-servers",
                "listToolServers",
                "Says how each tool server is, at each replica; for operators.",
                self.tool_servers,
                {200: Answer("The servers.", ToolServerListShape)},
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/tool-servers/{name}/retry",
                "retryToolServer",
                "Connects to a tool server anew, at all replicas; for operators. The audit log says who did.",
                self.retry_tool_server,
                acted,
                scope="run",
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/replicas",
                "listReplicas",
                "Lists the processes on the same records; for operators.",
                self.replicas,
                {200: Answer("The processes.", ReplicaListShape)},
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/accounts",
                "listAccountsOfEverybody",
                "Lists the accounts that people have connected; for operators. The audit log says that you did.",
                self.accounts,
                {200: Answer("The accounts.", OperatorAccountListShape)},
                query=AccountsQuery,
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/parked",
                "listParked",
                "Lists what was given up after many failures; for operators. The audit log says that you did.",
                self.parked,
                {200: Answer("What was given up.", ParkedListShape)},
                query=ParkedQuery,
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/parked/{id}/retry",
                "retryParked",
                "Has it tried again, as if it had been sent once more; for operators. The audit log says who did.",
                self.retry_parked,
                acted,
                scope="run",
                problems=SETTLING,
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/parked/{id}/giving-up",
                "giveUpParked",
                "Gives it up for good; for operators. The audit log says who did.",
                self.give_up_parked,
                acted,
                scope="run",
                problems=SETTLING,
                tag="operator",
            ),
        ]

    async def tool_servers(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/tool-servers`."""
        found = for_operators(await self._parts.tool_servers(call.principal.person))
        return json_answer(ToolServerListShape(servers=[ToolServerShape.of(each) for each in found]))

    async def retry_tool_server(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/tool-servers/{name}/retry`."""
        return done(await self._parts.retry_tool_server(call.principal.person, call.path("name")))

    async def replicas(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/replicas`."""
        found = for_operators(await self._parts.replicas(call.principal.person))
        return json_answer(ReplicaListShape(replicas=[ReplicaShape.of(*each) for each in found]))

    async def accounts(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/accounts`."""
        query = call.query(AccountsQuery)
        page = await self._parts.accounts(call.principal.person, query.after, query.limit)
        return json_answer(OperatorAccountListShape.of(for_operators(page)))

    async def parked(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/parked`."""
        query = call.query(ParkedQuery)
        before = int(query.before) if query.before else NEWEST
        page = await self._parked.listed(call.principal.person, before, query.limit)
        return json_answer(ParkedListShape.of(for_operators(page)))

    async def retry_parked(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/parked/{id}/retry`."""
        return done(await self._parked.retry(call.principal.person, _key(call)))

    async def give_up_parked(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/parked/{id}/giving-up`."""
        return done(await self._parked.give_up(call.principal.person, _key(call)))


def _key(call: ApiCall) -> str:
    return call.path("id")[:LONGEST_TURN]
