"""Requests of other agents through the SDK's dispatcher, which knows both versions of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, cast

from a2a.server.context import ServerCallContext
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from aiohttp import web
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.types import Message as AsgiMessage

from adapters.api.agent_to_agent.contract import RPC_PATH, Exchange
from adapters.api.agent_to_agent.requests import EXCHANGE, TaskRequests
from adapters.api.turns import ApiTurns
from adapters.shared.long_answers import LongAnswers
from adapters.shared.server_sent import ClientGone, EventStream, OpenStreams
from bot.services import Services

STREAMING = frozenset({"SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"})


class AgentServer:
    """Answers what other agents ask."""

    def __init__(self, services: Services, turns: ApiTurns, streams: OpenStreams, open_: LongAnswers) -> None:
        self._streams = streams
        requests = TaskRequests(services, turns, open_)
        self._dispatcher = JsonRpcDispatcher(requests, _Contexts(), enable_v0_3_compat=True)

    async def answer(self, exchange: Exchange, asked: Mapping[str, Any]) -> web.StreamResponse:
        """Answer a request. Raises `Problem`."""
        if asked.get("method") not in STREAMING:
            return await self._dispatched(exchange, asked)
        with self._streams.opened(exchange.call.request, exchange.call.principal) as stream:
            exchange.stream = stream
            return await self._dispatched(exchange, asked)

    async def _dispatched(self, exchange: Exchange, asked: Mapping[str, Any]) -> web.StreamResponse:
        response = await self._dispatcher.handle_requests(_request(exchange, json.dumps(asked).encode()))
        if isinstance(response, EventSourceResponse) and exchange.stream is not None:
            items = cast("AsyncGenerator[Mapping[str, str], None]", response.body_iterator)
            return await _streamed(exchange, exchange.stream, items)
        if exchange.failure is not None:
            raise exchange.failure
        return web.Response(
            body=bytes(response.body), content_type="application/json", headers={"Cache-Control": "no-store"}
        )


class _Contexts(DefaultServerCallContextBuilder):
    """Takes the exchange along."""

    def build(self, request: Request) -> ServerCallContext:
        """What the SDK hands on to whoever answers."""
        context = super().build(request)
        context.state[EXCHANGE] = request.scope[EXCHANGE]
        return context


def _request(exchange: Exchange, body: bytes) -> Request:
    """The request as the SDK takes it: the body was read and checked before."""

    async def receive() -> AsgiMessage:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in _headers(exchange)]
    scope = {
        "type": "http",
        "method": "POST",
        "path": RPC_PATH,
        "query_string": b"",
        "headers": headers,
        EXCHANGE: exchange,
    }
    return Request(scope, receive)


def _headers(exchange: Exchange) -> list[tuple[str, str]]:
    """Those that the protocol has; a token is nobody's business any more."""
    return [(name, value) for name, value in exchange.call.request.headers.items() if "a2a-" in name.lower()]


async def _streamed(
    exchange: Exchange, stream: EventStream, items: AsyncGenerator[Mapping[str, str], None]
) -> web.StreamResponse:
    try:
        async with aclosing(items):
            async for item in items:
                if exchange.failure is not None and not stream.response.prepared:
                    raise exchange.failure
                if not stream.response.prepared:
                    await stream.begin()
                await stream.send(_event(item))
            if stream.is_read:
                await stream.end()
    except ClientGone:
        pass  # the task goes on: whoever asks for it again is told
    finally:
        if exchange.happenings is not None:
            await exchange.happenings.aclose()
    return stream.response


def _event(item: Mapping[str, str]) -> bytes:
    name = f"event: {item['event']}\n" if "event" in item else ""
    return f"{name}data: {item['data']}\n\n".encode()
