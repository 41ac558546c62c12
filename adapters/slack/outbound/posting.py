"""One message in Slack: posted, replaced, removed; or shown to one person alone. Our own mark on it lets it be found
again after a crash."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.shared.http import Http
from adapters.slack.ids import SlackLocation
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.web_api.client import CALL_SECONDS, WebApi

log = structlog.get_logger(__name__)
EVENT_TYPE = "countersign_post"
"""Under which our mark stands in a message's metadata."""
UNFINISHED: Mapping[str, Any] = {"event_type": "countersign_draft", "event_payload": {"unfinished": True}}
"""The mark of a draft that is not finished, where one can be set: if the process ends, the next one writes it anew."""
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"})
"""Slack's words for a message that cannot be changed any more, whoever saw to that."""
_REFUSED_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})


def mark(post_id: str, part: int) -> dict[str, Any]:
    """The metadata that says which part of which post a message is. Everybody in the workspace may read it."""
    return {"event_type": EVENT_TYPE, "event_payload": {"post": post_id, "part": part}}


def marked_post(message: Mapping[str, Any]) -> str | None:
    """The id of the post that a message is marked as part of; `None`: it has no mark of ours."""
    match message.get("metadata"):
        case {"event_type": str(kind), "event_payload": {"post": str(post_id)}} if kind == EVENT_TYPE:
            return post_id
    return None


def is_streaming(message: Mapping[str, Any]) -> bool:
    """Whether a message is a stream that nobody has stopped."""
    return message.get("streaming_state") == "in_progress"


def is_unfinished(message: Mapping[str, Any]) -> bool:
    """Whether a message of ours is a draft that is being written, or was when its process ended."""
    metadata = message.get("metadata") or {}
    return is_streaming(message) or metadata.get("event_type") == UNFINISHED["event_type"] or _shows_running(message)


def _shows_running(message: Mapping[str, Any]) -> bool:
    """Whether a message shows a tool call as running: Slack ends a stream after some minutes, which leaves no mark."""
    cards = (block for block in message.get("blocks") or () if block.get("type") == "task_card")
    return any(card.get("status") == "in_progress" for card in cards)


def where(location: SlackLocation) -> dict[str, str]:
    """The arguments that say where to post."""
    return {"channel": location.channel} | ({"thread_ts": location.thread_ts} if location.thread_ts else {})


async def post_piece(
    api: WebApi, location: SlackLocation, piece: SlackMessage, metadata: Mapping[str, Any] | None = None
) -> str:
    """Post a new message; its timestamp. Raises `CallFailed`."""
    quiet = {"unfurl_links": False, "unfurl_media": False}
    marked = {"metadata": metadata} if metadata else {}
    answer = await show_piece(api, location.team, "chat.postMessage", where(location) | quiet | marked, piece)
    return str(answer["ts"])


async def replace_piece(
    api: WebApi, location: SlackLocation, ts: str, piece: SlackMessage, metadata: Mapping[str, Any] | None = None
) -> bool:
    """Replace what a message shows. False: it is gone, or nobody may change it any more. Raises `CallFailed`."""
    try:
        await update_piece(api, location, ts, piece, metadata)
    except CallFailed as failure:
        if failure.error in GONE:
            return False
        raise
    return True


async def update_piece(
    api: WebApi,
    location: SlackLocation,
    ts: str,
    piece: SlackMessage,
    metadata: Mapping[str, Any] | None = None,
    *,
    patience: float = CALL_SECONDS,
) -> None:
    """Replace what a message shows, which may be a stream that nobody has stopped. `metadata`: empty takes away what it
    had. Raises `CallFailed`."""
    arguments = {"channel": location.channel, "ts": ts} | ({} if metadata is None else {"metadata": metadata})
    try:
        await show_piece(api, location.team, "chat.update", arguments, piece, patience=patience)
    except CallFailed as failure:
        if failure.error != "streaming_state_conflict":
            raise
        # It was left streaming, by a crash or by a stop that did not arrive.
        await stop_stream(api, location, ts, patience=patience)
        await show_piece(api, location.team, "chat.update", arguments, piece, patience=patience)


async def remove(api: WebApi, location: SlackLocation, ts: str) -> None:
    """Delete a message of ours; one that is gone already is no failure. Raises `CallFailed`."""
    try:
        await api.call(location.team, "chat.delete", {"channel": location.channel, "ts": ts})
    except CallFailed as failure:
        if failure.error not in {"message_not_found", "cant_delete_message"}:
            raise


async def stop_stream(
    api: WebApi,
    location: SlackLocation,
    ts: str,
    *,
    chunks: Sequence[Mapping[str, Any]] = (),
    blocks: Sequence[Mapping[str, Any]] = (),
    metadata: Mapping[str, Any] | None = None,
    patience: float = CALL_SECONDS,
) -> None:
    """End a stream, with last words and what stands below them. Raises `CallFailed`."""
    optional = {"chunks": list(chunks), "blocks": list(blocks), "metadata": metadata}
    arguments = {"channel": location.channel, "ts": ts} | {name: value for name, value in optional.items() if value}
    await api.call(location.team, "chat.stopStream", arguments, patience=patience)


async def show_piece(
    api: WebApi,
    team: str,
    method: str,
    arguments: Mapping[str, Any],
    piece: SlackMessage,
    *,
    patience: float = CALL_SECONDS,
) -> Mapping[str, Any]:
    """Call a method that shows blocks; if Slack does not take them, once more with the text alone, so that people get
    something. Raises `CallFailed`."""
    shown = {**arguments, "text": piece.text}
    try:
        return await api.call(team, method, shown | {"blocks": list(piece.blocks)}, patience=patience)
    except CallFailed as failure:
        if failure.error not in _REFUSED_BLOCKS:
            raise
        kinds = [block.get("type") for block in piece.blocks]
        # Without a traceback, which might show what people and tools wrote.
        log.error("slack_blocks_refused", method=method, error=failure.error, blocks=kinds)  # noqa: TRY400
        # An empty list takes away the blocks of a message that is replaced; leaving them out would keep them.
        return await api.call(team, method, shown | {"blocks": []}, patience=patience)


# ----------------------------------------- what one person alone may see: a refusal, a sign-in link

TELLING_SECONDS = 8.0
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
        arguments = where(location) | {"user": user}
        with failures_logged_as("slack_ephemeral_impossible", team=team, channel=location.channel):
            await show_piece(self._api, team, "chat.postEphemeral", arguments, piece, patience=TELLING_SECONDS)
            return True
        return False

    async def write(self, team: str, user: str, piece: SlackMessage) -> tuple[SlackLocation, str]:
        """A direct message; where it stands and its timestamp. Raises `CallFailed`."""
        location = await self.direct(team, user)
        return location, await post_piece(self._api, location, piece)

    async def direct(self, team: str, user: str) -> SlackLocation:
        """Where direct messages with somebody stand. Raises `CallFailed`."""
        opened = await self._api.call(team, "conversations.open", {"users": user}, patience=TELLING_SECONDS)
        return SlackLocation(team, str(opened["channel"]["id"]))


async def reply(response_url: str, location: SlackLocation, piece: SlackMessage) -> bool:
    """Answer a click at the address that came with it (Slack: five times within half an hour), for whoever clicked
    alone; no token is needed. False: it did not arrive."""
    # Without its thread the answer to a click in one stands in the channel.
    within = {"thread_ts": location.thread_ts} if location.thread_ts else {}
    return await _answer(response_url, piece, {"replace_original": False, **within})


async def put_in_place(response_url: str, piece: SlackMessage) -> bool:
    """The same in the place of the message that was clicked, which only they see."""
    return await _answer(response_url, piece, {"replace_original": True})


async def _answer(response_url: str, piece: SlackMessage, how: Mapping[str, Any]) -> bool:
    body = {"response_type": "ephemeral", **how, "text": piece.text, "blocks": list(piece.blocks)}
    http = Http()
    headers = {"Content-Type": "application/json"}
    try:
        answer = await http.request(
            "response_url", "POST", response_url, seconds=TELLING_SECONDS, headers=headers, data=json.dumps(body)
        )
        cause = f"http_{answer.status}"
    except CallFailed as failure:
        cause = failure.error
    finally:
        await http.close()
    if cause != "http_200":
        log.info("slack_response_url_failed", cause=cause)
    return cause == "http_200"
