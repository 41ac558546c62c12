"""`POST /api/messages`: whose request it is comes first, then what it says."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog
from aiohttp import web

from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.untrusted_json import LONG, MalformedBodyError
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.authentication import NotAdmitted
from adapters.teams.connector.turns import ActivityAnswer, Turns
from adapters.teams.ids import Activity
from adapters.teams.inbound.activities import decode
from adapters.teams.inbound.invokes import Invokes
from adapters.teams.inbound.messages import TeamsMessageHandler
from adapters.teams.inbound.visitors import TeamsRecipient
from bot.domain import Clock
from bot.records.database import is_outage

log = structlog.get_logger(__name__)
LARGEST_BODY = 1_000_000
"""Bytes. Teams' own stay well below: a message has 100 KB at most."""
_NOT_ADMITTED = {
    401: "The token is missing, or it is not the Bot Connector's for this bot.",
    403: "This bot does not work for this tenant.",
    503: "The keys to check the token with cannot be fetched at the moment.",
}


class ActivityVerifier:
    """Lets in what the Bot Connector has signed."""

    def __init__(
        self, config: TeamsConfig, turns: Turns, messages: TeamsMessageHandler, invokes: Invokes, clock: Clock
    ) -> None:
        self._config = config
        self._turns = turns
        self._messages = messages
        self._invokes = invokes
        self._clock = clock

    async def handle(self, request: web.Request) -> web.Response:
        """200 taken, invokes with their answer; 400 malformed, 401 not from the Bot Connector, 403 of a tenant that is
        not ours, 408 too slow, 413 too large, 415 not JSON, 501 an invoke that is not for us, 503 could not be kept."""
        if request.content_type != "application/json":
            return _refused(415, "Send JSON: Content-Type: application/json.")
        recipient = TeamsRecipient(self._is_local(request), self._config.tenant.lower() or "local", self._clock())
        arrived = asyncio.get_running_loop().time()
        try:
            await self._turns.authentication.check_token(request.headers)
            raw = await read_whole_body(request, LARGEST_BODY, "The body is too large.")
            activity = await asyncio.to_thread(decode, raw) if len(raw) > LONG else decode(raw)
            handle = partial(self._handle, activity, recipient, arrived, len(raw))
            answer = await self._turns.run(request.headers, request.remote, activity, handle)
        except BodyNotReadError as error:
            return _refused(error.status, str(error))
        except MalformedBodyError as error:
            log.warning("teams_request_malformed", reason=str(error))
            return _refused(400, f"The request is malformed: {error}.")
        except NotAdmitted as refusal:
            log.warning("teams_not_admitted", status=refusal.status, reason=refusal.reason, remote=request.remote)
            return _refused(refusal.status, _NOT_ADMITTED[refusal.status])
        return web.Response(status=answer.status) if answer.body is None else _json(answer.status, answer.body)

    async def _handle(self, activity: Activity, recipient: TeamsRecipient, arrived: float, size: int) -> ActivityAnswer:
        if activity["type"] == "invoke":
            reply = await self._invokes.answer(activity, recipient, arrived)
            return ActivityAnswer(reply.status, reply.body)
        try:
            await self._messages.take(activity, recipient, size)
        except Exception as error:
            if is_outage(error):
                raise  # refused by `adapters.shared.outages`
            # Whatever the trouble is: it is not on disk, so that it is not to be acknowledged.
            log.exception("teams_activity_not_kept", activity=activity["type"][:50])
            return ActivityAnswer(503, {"error": "It could not be kept. Please send it again."})
        return ActivityAnswer(200)

    def _is_local(self, request: web.Request) -> bool:
        """Whether it was let in as a local client's, which knows no Entra, and not by a token."""
        by_token = self._config.app_id and "Authorization" in request.headers
        return self._config.local_unauthenticated and not by_token


def _json(status: int, body: object) -> web.Response:
    return web.json_response(body, status=status)


def _refused(status: int, error: str) -> web.Response:
    return _json(status, {"error": error})
