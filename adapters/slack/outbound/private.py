"""What one person alone may see: a refusal, a sign-in link."""

from __future__ import annotations

from typing import Any

import aiohttp
import structlog

from adapters.shared.calls import CallFailed
from adapters.slack.ids import SlackLocation
from adapters.slack.outbound.posting import post_piece, show_piece
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.web_api.client import WebApi

log = structlog.get_logger(__name__)

PATIENCE = 8.0
"""Seconds that each way of telling somebody may take."""


class SlackPrivateMessages:
    """Tells one person something, by the first way that is open. Nothing told is ever logged: it may hold a link."""

    def __init__(self, api: WebApi) -> None:
        self._api = api

    async def tell(
        self, team: str, user: str, location: SlackLocation, piece: SlackMessage, response_url: str = ""
    ) -> bool:
        """Show a piece to one person: as the answer to their click (`response_url`), else as an ephemeral message
        where it belongs, else in a direct message. False: none of these arrived; that is logged here."""
        if response_url and await reply(response_url, location, piece):
            return True
        if await self.whisper(team, user, location, piece):
            return True
        try:
            await self.write(team, user, piece)
        except CallFailed as failure:
            log.warning("slack_person_not_told", team=team, user=user, method=failure.call, error=failure.error)
            return False
        return True

    async def whisper(self, team: str, user: str, location: SlackLocation, piece: SlackMessage) -> bool:
        """An ephemeral message in the thread. False: impossible there (they are not in the channel, say)."""
        if not location.channel:
            return False
        arguments = {"channel": location.channel, "user": user}
        if location.thread_ts:
            arguments["thread_ts"] = location.thread_ts
        try:
            await show_piece(self._api, team, "chat.postEphemeral", arguments, piece, patience=PATIENCE)
        except CallFailed as failure:
            log.info("slack_ephemeral_impossible", team=team, channel=location.channel, error=failure.error)
            return False
        return True

    async def write(self, team: str, user: str, piece: SlackMessage) -> tuple[SlackLocation, str]:
        """A direct message; where it stands and its timestamp. Raises `CallFailed`."""
        location = await self.direct(team, user)
        return location, await post_piece(self._api, location, piece)

    async def direct(self, team: str, user: str) -> SlackLocation:
        """Where direct messages with somebody stand. Raises `CallFailed`."""
        opened = await self._api.call(team, "conversations.open", {"users": user}, patience=PATIENCE)
        return SlackLocation(team, str(opened["channel"]["id"]))


async def reply(response_url: str, location: SlackLocation, piece: SlackMessage) -> bool:
    """Answer a click at the address that came with it (Slack: five times within half an hour), for whoever clicked
    alone; no token is needed. False: it did not arrive."""
    body: dict[str, Any] = {
        "response_type": "ephemeral",
        "replace_original": False,
        "text": piece.text,
        "blocks": list(piece.blocks),
    }
    if location.thread_ts:
        body["thread_ts"] = location.thread_ts  # without it the answer to a click in a thread stands in the channel
    timeout = aiohttp.ClientTimeout(total=PATIENCE)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.post(response_url, json=body, allow_redirects=False) as response,
        ):
            arrived = response.status == 200
            cause = f"http_{response.status}"
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        arrived, cause = False, type(error).__name__  # its words would name the address, which is a secret
    if not arrived:
        log.info("slack_response_url_failed", cause=cause)
    return arrived
