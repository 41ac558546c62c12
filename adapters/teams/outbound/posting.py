"""One message in Teams: posted, replaced, removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog

from adapters.shared.calls import CallFailed
from adapters.teams.connector.client import PATIENCE, BotConnector, Opened
from adapters.teams.ids import Activity, TeamsLocation
from bot.platform import Reference

# ---------------------------------------------------------------------------------------- one message

log = structlog.get_logger(__name__)
_CONVERSATION_GONE = frozenset({"ConversationNotFound", "ConversationBlockedByUser"})
_REFUSED_CONTENT = frozenset({400, 413})
"""`BadSyntax`, `BadArgument`, `MessageSizeTooBig`…: said of cards that Teams does not take."""


def reference_to(conversation: str, parts: Sequence[str]) -> dict[str, Any]:
    """What is needed to update the messages of a post."""
    return {"conversation": conversation, "parts": list(parts)}


def location_of_reference(location: TeamsLocation, reference: Reference) -> TeamsLocation:
    """Where a post's messages stand: in the thread that it began, in the chat that was opened for it."""
    return replace(location, conversation=str(reference["conversation"]))


def is_gone(failure: CallFailed) -> bool:
    """Whether a message is not there any more (404 `ActivityNotFoundInConversation`), though its conversation is."""
    return failure.status in {404, 410} and failure.error not in _CONVERSATION_GONE


async def post_part(
    connector: BotConnector, location: TeamsLocation, activity: Activity, *, patience: float = PATIENCE
) -> str:
    """Post a new message; its id. A card that Teams refuses is posted as text. Raises `CallFailed`."""
    try:
        return await connector.send(location, activity, patience=patience)
    except CallFailed as failure:
        words = instead_of(activity, failure)
        if words is None:
            raise
    return await connector.send(location, words, patience=patience)


async def open_thread(connector: BotConnector, location: TeamsLocation, activity: Activity) -> Opened:
    """Begin a thread in a channel with a message. Raises `CallFailed`."""
    try:
        return await connector.open_thread(location, activity)
    except CallFailed as failure:
        words = instead_of(activity, failure)
        if words is None:
            raise
    return await connector.open_thread(location, words)


async def replace_part(connector: BotConnector, location: TeamsLocation, activity_id: str, activity: Activity) -> bool:
    """Replace what a message shows. False: it is gone. Raises `CallFailed`."""
    try:
        await connector.update(location, activity_id, activity)
    except CallFailed as failure:
        if is_gone(failure):
            return False
        words = instead_of(activity, failure)
        if words is None:
            raise
        return await replace_part(connector, location, activity_id, words)
    return True


async def remove(connector: BotConnector, location: TeamsLocation, activity_id: str, *, targeted: bool = False) -> None:
    """Delete a message of ours; one that is gone already is no failure. Raises `CallFailed`."""
    try:
        await connector.delete(location, activity_id, targeted=targeted)
    except CallFailed as failure:
        if not is_gone(failure):
            raise


def instead_of(activity: Activity, failure: CallFailed) -> Activity | None:
    """The words of a card that Teams refused, so that people get something; `None`: it was none of that."""
    if failure.status not in _REFUSED_CONTENT or not activity.get("attachments"):
        return None
    # Without what people and tools wrote.
    log.error("teams_card_refused", verb=failure.call, error=failure.error)
    cards = [attachment.get("content") or {} for attachment in activity["attachments"]]
    words = [activity.get("summary"), *(card.get("fallbackText") for card in cards)]
    said = next((text for text in words if text), "This card cannot be shown here.")
    return {"type": "message", "text": said, "textFormat": "plain"}
