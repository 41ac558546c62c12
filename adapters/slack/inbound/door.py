"""`POST /slack/events`: whose request it is comes first, then what it says."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_sdk.signature import Clock as SdkClock
from slack_sdk.signature import SignatureVerifier

from adapters.shared.json_bodies import LONG
from adapters.slack.inbound.bolt import Inbound
from adapters.slack.inbound.envelope import MalformedError, decode
from bot.clock import Clock

log = structlog.get_logger(__name__)

MAX_BODY = 1_000_000
"""Bytes. Slack's own stay well below: a message has 40,000 characters at most, a modal 250 kB."""
BODY_SECONDS = 15.0
"""How long a client may take to send a body."""


class Door:
    """Lets in what Slack has signed."""

    def __init__(self, inbound: Inbound, signing_secret: str, clock: Clock) -> None:
        self._inbound = inbound
        self._verifier = SignatureVerifier(signing_secret, _SignedAt(clock))

    async def handle(self, request: web.Request) -> web.Response:
        """200 with the answer; 400 malformed, 401 not from Slack or older than five minutes, 408 too slow, 413 too
        large, 503 could not be kept."""
        try:
            raw = await _read(request)
        except _NotReadError as error:
            return _refused(error.status, str(error))
        if not self._is_from_slack(request, raw):
            log.warning("slack_signature_refused", remote=request.remote)
            return _refused(401, "The signature is missing, wrong, or too old.")
        try:
            read = partial(decode, raw, request.content_type)
            payload = await asyncio.to_thread(read) if len(raw) > LONG else read()
        except MalformedError as error:
            log.warning("slack_request_malformed", reason=str(error))
            return _refused(400, f"The request is malformed: {error}.")
        return await to_aiohttp_response(await self._inbound.take(payload))

    def _is_from_slack(self, request: web.Request, raw: bytes) -> bool:
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        # The verifier takes numbers, ASCII and UTF-8 for granted.
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12 and signature.isascii()):
            return False
        try:
            return self._verifier.is_valid(raw, timestamp, signature)
        except UnicodeDecodeError:
            return False


class _SignedAt(SdkClock):
    """The house's clock, for the verifier."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock()


class _NotReadError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def _read(request: web.Request) -> bytes:
    """The body. Raises `_NotReadError`; one that is too large is not read to its end."""
    raw = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                raw += chunk
                if len(raw) > MAX_BODY:
                    raise _NotReadError(413, "The body is too large.")
    except TimeoutError:
        raise _NotReadError(408, "The body did not arrive in time.") from None
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError):
        raise _NotReadError(400, "The body broke off.") from None
    return bytes(raw)


def _refused(status: int, error: str) -> web.Response:
    return web.json_response({"error": error}, status=status)
