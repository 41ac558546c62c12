"""One call to the Bot Connector, by the SDK.

What `botframework.connector.aio.ConnectorClient` consists of is put together anew from its public parts: its
conversation operations, which know addresses, methods and good statuses; a sender on aiohttp instead of one on requests
and threads, with time limits; and a serializer that leaves our JSON alone, since the SDK's models drop every field they
do not know (those of streaming and citations, for example) and its readers break on answers that are no JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

from botframework.connector.aio.operations_async import (  # type: ignore[import-untyped]  # it ships no types
    ConversationsOperations,
)
from botframework.connector.bot_framework_sdk_client_async import (  # type: ignore[import-untyped]
    BotFrameworkConnectorConfiguration,
)
from msrest import Serializer
from msrest.async_client import ServiceClientAsync
from msrest.authentication import Authentication
from msrest.pipeline import Request as SdkRequest
from msrest.pipeline.async_abc import AsyncHTTPSender, AsyncPipeline

from adapters.shared.caches import Newest
from adapters.shared.calls import CallFailed
from adapters.shared.http import Http, HttpAnswer, retry_after

RETRIED = frozenset({412, 429, 502, 504})
"""Microsoft: these "must be retried", posts too."""
_NOT_FOR_EVER = frozenset({401, 408, 409, 423, 425}) | RETRIED
_MOST_SERVICES = 100
"""Service URLs whose clients are kept; there is one for each region and tenant."""
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,79}")


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What the SDK does not ask for: how a call is to be made."""

    verb: str
    token: str = field(repr=False)
    """Empty: without one."""
    seconds: float
    query: Mapping[str, str]
    """Added to the address."""


class ConnectorHttpClient:
    """Makes single calls. `close` in the end."""

    def __init__(self) -> None:
        self._http = Http()
        self._services: Newest[str, ConversationsOperations] = Newest(_MOST_SERVICES)

    async def exchange(self, service_url: str, call: CallOptions, operation: str, arguments: Sequence[Any]) -> Any:
        """Returns the JSON that was answered; `None`: none was. Raises `CallFailed`. `operation`: one of the SDK's
        `ConversationsOperations`, with its arguments."""
        headers = {"Authorization": f"Bearer {call.token}"} if call.token else {}
        operate = getattr(self._service(service_url), operation)
        return await operate(*arguments, custom_headers=headers, call=call)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _service(self, url: str) -> ConversationsOperations:
        service = self._services[url] = self._services.get(url) or _operations(url, _Sender(self._http))
        return service


def _operations(service_url: str, sender: _Sender) -> ConversationsOperations:
    config = BotFrameworkConnectorConfiguration(Authentication(), service_url)
    client = ServiceClientAsync(config)
    serializer = _AsItIs()  # type: ignore[no-untyped-call]  # msrest's are not annotated
    config.pipeline = AsyncPipeline([config.user_agent_policy], sender)
    return ConversationsOperations(client, config, serializer, lambda _kind, answer: answer.json)


class _AsItIs(Serializer):
    """Writes ids into addresses as the SDK does, and bodies as they are."""

    def body(self, data: Any, data_type: str, **_options: Any) -> bytes:
        """UTF-8, which is shorter than the SDK's ASCII and counts towards Teams' limits as it stands. Halves of
        characters, which no UTF-8 has, become question marks."""
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@dataclass
class _Answered:
    """An answer as the operations read it; the SDK's client adds its `context`."""

    json: Any
    status_code: int = 200
    """The operations know only some of the good ones, and need not know which it was."""
    context: Any = None
    http_response: Any = None


class _Sender(AsyncHTTPSender[Any, Any]):
    """The last step of the SDK's pipeline: the request itself."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def __aexit__(self, *_details: object) -> None:
        """Connections are closed by `ConnectorHttpClient`."""

    async def send(self, request: SdkRequest[Any], **options: Any) -> Any:
        """Raises `CallFailed`."""
        asked, call = request.http_request, cast(CallOptions, options["call"])
        url = f"{asked.url}?{urlencode(call.query)}" if call.query else asked.url
        answer = await self._http.request(
            call.verb, asked.method, url, seconds=call.seconds, headers=asked.headers, data=asked.data
        )
        if not 200 <= answer.status < 300:
            raise refusal_of(call.verb, answer)
        read = _Answered(answer.json())
        read.http_response = read
        return read


def refusal_of(verb: str, answer: HttpAnswer) -> CallFailed:
    """An answer that says no, as a failure."""
    status = answer.status
    return CallFailed(
        verb,
        _code(answer) if status != 429 else "ratelimited",
        status=status,
        permanent=status < 500 and status not in _NOT_FOR_EVER,
        retry_after=retry_after(answer.headers),
        may_have_acted=status >= 500 and status not in RETRIED,
    )


def _code(answer: HttpAnswer) -> str:
    """Teams' word for what went wrong: `{"error": {"code": …}}`, or the same without the `error` around it. Ours
    where something between us and Teams has answered."""
    said = answer.object()
    error = said.get("error")
    code = (error if isinstance(error, dict) else said).get("code")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else f"http_{answer.status}"
