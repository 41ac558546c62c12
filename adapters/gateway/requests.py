"""What the handlers of `/mcp` are told of a request, beside what the client says in it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from bot.gateway.views import GatewayCaller
from bot.identity.principal import Principal

SCOPE_KEY = "countersign.gateway"
"""Where it stands in the scope of the ASGI request."""


@dataclass(frozen=True, slots=True)
class GatewaySession:
    """What a program said of itself when it began a session; its own word, of which nothing is proved."""

    session_id: str
    """Random; not what the client sends, which is sealed (`adapters/gateway/sessions.py`)."""
    person_id: str
    """Whose it is."""
    begun_at: float
    client_name: str
    """In one line, at most 100 characters, with all of them visible."""
    url_elicitation: bool = False
    """Whether it can show its person a link (`elicitation.url`)."""


@dataclass(slots=True)
class GatewayRequest:
    """For whom a request asks, and through which program."""

    principal: Principal
    caller: GatewayCaller
    session: GatewaySession | None
    """`None` while the client initializes, which is when it gets one."""
    server: str | None
    """The one tool server whose tools are asked for, by `/mcp/{server}`; `None`: all."""
    ending: asyncio.Event
    """Set when this process ends: whoever waits says now how to go on."""
    answered_call: str = ""

    def note_answered(self, gateway_call_id: str) -> None:
        """The answer to this request holds the result of a call, which was handed out for it."""
        self.answered_call = gateway_call_id


def gateway_request(http_request: Any) -> GatewayRequest:
    """Returns it for a handler: of `server.request_context.request`, which is starlette's. Raises `KeyError` for a
    request that did not come through the gateway."""
    found: GatewayRequest = http_request.scope[SCOPE_KEY]
    return found
