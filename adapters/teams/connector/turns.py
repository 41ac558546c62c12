"""One activity as a turn of botbuilder-core: the SDK's adapter, with what is broken in it replaced at its public seams.

The SDK runs the turn and carries the answer to an invoke. Who may send activities is judged by `Authentication`, since
the SDK's own blocks the event loop, answers bad tokens with 500 and keeps keys for a day whatever happens. Its models
never read what came in, since they lose the fields they do not know: a turn has the activity's type, whoever handles it
has the JSON. What is posted goes out by `BotConnector` after the turn, when its work is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botbuilder.core import CloudAdapterBase, InvokeResponse, TurnContext  # type: ignore[import-untyped]  # no types
from botbuilder.schema import Activity, ActivityTypes  # type: ignore[import-untyped]
from botframework.connector.auth import (  # type: ignore[import-untyped]
    AuthenticateRequestResult,
    BotFrameworkAuthentication,
    ClaimsIdentity,
    ConnectorFactory,
)

from adapters.teams.connector.authentication import Authentication


@dataclass(frozen=True, slots=True)
class ActivityAnswer:
    """What an activity is answered with."""

    status: int
    body: Mapping[str, Any] | None = None
    """JSON; `None`: nothing."""


Handle = Callable[[], Awaitable[ActivityAnswer]]


class Turns(CloudAdapterBase):  # type: ignore[misc]  # the SDK's adapter is extended by inheriting, and has no types
    """Takes activities in."""

    def __init__(self, authentication: Authentication) -> None:
        super().__init__(_Seams())
        self.authentication = authentication

    async def run(
        self, headers: Mapping[str, str], remote: str | None, activity: Mapping[str, Any], handle: Handle
    ) -> ActivityAnswer:
        """Authenticate an activity, then handle it. Raises `NotAdmitted`, and what `handle` raises.

        `headers` are looked up case-insensitively; `remote` is the address at the other end of the socket.
        """
        await self.authentication.admit(headers, remote, activity)
        answers: list[ActivityAnswer] = []

        async def turn(context: TurnContext) -> None:
            answers.append(answer := await handle())
            response = InvokeResponse(status=answer.status, body=answer.body)
            await context.send_activity(Activity(type=ActivityTypes.invoke_response, value=response))

        response = await self.process_activity(_admitted(), Activity(type=activity["type"]), turn)
        # The SDK carries answers to invokes only.
        return answers[0] if response is None else ActivityAnswer(response.status, response.body)


def _admitted() -> AuthenticateRequestResult:
    result = AuthenticateRequestResult()
    result.claims_identity = ClaimsIdentity({}, is_authenticated=True)
    result.connector_factory = _NoConnector()
    return result


class _NoConnector(ConnectorFactory):  # type: ignore[misc]  # as above
    """Nothing is posted within a turn."""

    async def create(self, service_url: str, audience: str) -> object:
        """What the SDK asks for before each turn."""
        return self


class _Seams(BotFrameworkAuthentication):  # type: ignore[misc]  # as above
    """What the SDK asks for beside a turn: of all that, this bot uses nothing."""

    async def authenticate_request(self, activity: Activity, auth_header: str) -> AuthenticateRequestResult:
        """Refused: `Turns.run` has judged before."""
        raise PermissionError("activities come in by Turns.run")

    async def authenticate_streaming_request(self, auth_header: str, channel_id_header: str) -> None:
        """Refused."""
        raise PermissionError("this bot has no streaming connections")

    def create_connector_factory(self, claims_identity: ClaimsIdentity) -> ConnectorFactory:
        """None that could post."""
        return _NoConnector()

    async def create_user_token_client(self, claims_identity: ClaimsIdentity) -> None:
        """None: people's accounts are in bot.accounts."""
