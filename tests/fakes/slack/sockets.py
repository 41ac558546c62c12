"""Socket Mode: the WebSocket through which Slack hands out events, and hears that they were taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.slack.world import APP_ID, Json

ACCEPTS_PAYLOAD = {"interactive", "slash_commands"}


@dataclass
class Envelope:
    """Something handed to the app, until it is acknowledged."""

    envelope_id: str
    type: str
    payload: Json
    retry_attempt: int = 0
    acked: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Any = None
    """The payload of the acknowledgement."""

    def as_sent(self) -> Json:
        """As it goes over the wire."""
        retry: Json = {}
        if self.type == "events_api":
            retry = {"retry_attempt": self.retry_attempt, "retry_reason": "timeout" if self.retry_attempt else ""}
        return {
            "envelope_id": self.envelope_id,
            "payload": self.payload,
            "type": self.type,
            "accepts_response_payload": self.type in ACCEPTS_PAYLOAD,
            **retry,
        }


class Sockets:
    """The app's connections, and what they have not acknowledged."""

    def __init__(self) -> None:
        self.acks: list[Json] = []
        """Every acknowledgement as it came."""
        self.envelopes: dict[str, Envelope] = {}
        """Everything that was handed out, by envelope id."""
        self.greets = True
        """Whether a new connection is greeted; without `hello` an app is not connected."""
        self.in_turn = False
        """Whether the connections take turns; else the newest is given all."""
        self.given_to: set[int] = set()
        """The connections, by their position, that were given something."""
        self._open: list[web.WebSocketResponse] = []
        self._numbers = 0

    @property
    def connected(self) -> int:
        """How many connections are open."""
        return len(self._open)

    @property
    def unacked(self) -> list[Envelope]:
        """What was handed out and not acknowledged."""
        return [envelope for envelope in self.envelopes.values() if not envelope.acked.is_set()]

    async def send(self, kind: str, payload: Mapping[str, Any], retry_attempt: int = 0) -> Envelope:
        """Hand out an `events_api`, `interactive` or `slash_commands` payload: at once, or when somebody connects."""
        self._numbers += 1
        envelope = Envelope(f"envelope-{self._numbers}", kind, dict(payload), retry_attempt)
        self.envelopes[envelope.envelope_id] = envelope
        await self._deliver(envelope)
        return envelope

    async def resend(self) -> int:
        """Hand out again what was not acknowledged, as Slack does after a while. Returns how many."""
        waiting = self.unacked
        for envelope in waiting:
            envelope.retry_attempt += 1
            await self._deliver(envelope)
        return len(waiting)

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask the app to connect anew, as Slack does every few hours; the old connection is closed by the app."""
        for socket in tuple(self._open):
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})

    async def cut(self) -> None:
        """Close every connection from our side."""
        for socket in tuple(self._open):
            with suppress(ConnectionError):
                await socket.close(code=1001)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection of the app, as long as it lasts."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._open.append(socket)
        try:
            if self.greets:
                await socket.send_json(
                    {
                        "type": "hello",
                        "num_connections": len(self._open),
                        "debug_info": {"host": "fake", "build_number": 1, "approximate_connection_time": 18060},
                        "connection_info": {"app_id": APP_ID},
                    }
                )
            for envelope in self.unacked:
                await self._deliver(envelope)
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self._acknowledge(json.loads(message.data))
        finally:
            self._open.remove(socket)
        return socket

    async def _deliver(self, envelope: Envelope) -> None:
        """To one connection. Nobody connected: it goes to the one that comes."""
        first = self._numbers if self.in_turn else -1
        for position in range(first, first - len(self._open), -1):
            socket = self._open[position % len(self._open)]
            if not socket.closed:
                with suppress(ConnectionError):
                    await socket.send_json(envelope.as_sent())
                    self.given_to.add(position % len(self._open))
                    return

    def _acknowledge(self, message: Json) -> None:
        self.acks.append(message)
        envelope = self.envelopes.get(message.get("envelope_id", ""))
        if envelope is not None:
            envelope.answer = message.get("payload")
            envelope.acked.set()
