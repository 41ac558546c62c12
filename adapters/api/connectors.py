"""`/api/v1/connectors`: accounts at outside services, connected before they are needed, listed and disconnected."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web
from pydantic import ConfigDict, Field, RootModel

from adapters.api.models import LONGEST_LINE, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.questions import CodeForm
from adapters.api.results import SAME_KEY, ResultShape, click_key, id_in, settled
from adapters.shared.problems import Problem
from bot.domain import AlreadySettled, CodeEntry, ConnectionStatus, ConnectionView, Refused, ServiceView, Unknown
from bot.safe_text import visible, visible_line
from bot.services import Services

LINKS_AGAIN_SECONDS = 60.0
"""When to ask again who has asked for too many links; how long it takes is in the sentence."""


class ProviderShape(Shape):
    """A service at which an account can be connected."""

    model_config = ConfigDict(frozen=True, title="Provider")
    provider: str = Field(description="Its name in addresses.")
    name: str
    scopes: list[str]
    connected: bool = Field(description="Whether you have an account there that works.")

    @classmethod
    def of(cls, view: ServiceView, *, connected: bool) -> ProviderShape:
        """As the configuration names it."""
        name = visible_line(view.service, LONGEST_LINE)
        return cls(provider=view.provider, name=name, scopes=list(view.scopes), connected=connected)


class ProvidersShape(RootModel[list[ProviderShape]]):
    """Services, by name."""


class AuthUrlShape(Shape):
    """Where the person signs in, in a browser of theirs."""

    model_config = ConfigDict(frozen=True, title="AuthUrl")
    auth_url: str


class ConnectionShape(Shape):
    """An account that is connected."""

    model_config = ConfigDict(frozen=True, title="Connection")
    id: str
    provider: str
    name: str
    status: ConnectionStatus
    account_label: str
    scopes: list[str]
    since: float
    used_at: float | None

    @classmethod
    def of(cls, view: ConnectionView) -> ConnectionShape:
        """As its owner sees it."""
        return cls(
            id=view.connection_id,
            provider=view.provider,
            name=visible_line(view.service, LONGEST_LINE),
            status=view.status,
            account_label=visible_line(view.account, LONGEST_LINE),
            scopes=[visible(scope) for scope in view.scopes],
            since=view.since,
            used_at=view.used_at,
        )


class ConnectionsShape(RootModel[list[ConnectionShape]]):
    """Accounts, by service."""


class ConnectorResources:
    """Accounts of whoever asks."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> Sequence[Operation]:
        """What can be done with them."""
        base = "/api/v1/connectors"
        return [
            Operation(
                "GET",
                f"{base}/providers",
                "listProviders",
                "Lists the services at which accounts can be connected.",
                self.providers,
                {200: Answer("The services.", ProvidersShape)},
                tag="connectors",
            ),
            Operation(
                "GET",
                f"{base}/{{provider}}/auth-url",
                "getAuthUrl",
                "Gives a link with which you, in your browser, connect an account.",
                self.auth_url,
                {200: Answer("The link, for you alone.", AuthUrlShape)},
                scope="run",
                tag="connectors",
            ),
            Operation(
                "POST",
                f"{base}/code",
                "enterConnectionCode",
                "Tells the one-time code that the browser showed, where nothing waits for the account.",
                self.code,
                {200: Answer("The account is connected.", ResultShape)},
                scope="run",
                body=CodeForm,
                headers=SAME_KEY,
                tag="connectors",
            ),
            Operation(
                "GET",
                f"{base}/connections",
                "listConnections",
                "Lists your accounts.",
                self.connections,
                {200: Answer("Your accounts.", ConnectionsShape)},
                tag="connectors",
            ),
            Operation(
                "DELETE",
                f"{base}/connections/{{id}}",
                "deleteConnection",
                "Disconnects an account. The service is told.",
                self.disconnect,
                {200: Answer("It is disconnected.", ResultShape)},
                scope="run",
                tag="connectors",
            ),
        ]

    async def providers(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/connectors/providers`."""
        accounts = self._services.connections
        missing = {each.provider for each in accounts.to_connect(await accounts.of_person(call.principal.person))}
        found = [ProviderShape.of(each, connected=each.provider not in missing) for each in accounts.connectable()]
        return json_answer(ProvidersShape(found))

    async def auth_url(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/connectors/{provider}/auth-url`."""
        person, provider = call.principal.person, id_in(call, "service", "provider")
        link = await self._services.sign_in_links.connect_link(person.person_id, provider, person.name)
        if isinstance(link, Unknown):
            raise Problem(404, link.text)
        if isinstance(link, Refused):
            raise Problem(429, link.text, retry_after=LINKS_AGAIN_SECONDS)
        return json_answer(AuthUrlShape(auth_url=link))

    async def code(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/connectors/code`."""
        entry = CodeEntry(click_key(call), call.principal.person, call.body(CodeForm).code)
        result = await self._services.connections.enter_code(entry)
        if isinstance(result, Refused):  # the code does not count, as in the form of a sign-in
            raise Problem(422, result.text, errors={"code": result.text})
        return json_answer(settled(result))

    async def connections(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/connectors/connections`."""
        own = await self._services.connections.of_person(call.principal.person)
        return json_answer(ConnectionsShape([ConnectionShape.of(each) for each in own]))

    async def disconnect(self, call: ApiCall) -> web.Response:
        """`DELETE /api/v1/connectors/connections/{id}`: doing it twice is doing it once."""
        connection_id, person = id_in(call, "account"), call.principal.person
        result = await self._services.connections.disconnect(connection_id, person)
        if isinstance(result, AlreadySettled):
            return json_answer(ResultShape.of(result))
        if isinstance(result, Refused):
            raise Problem(404, "This account isn’t connected.")
        return json_answer(settled(result))
