"""One message in Teams: posted, replaced, removed; or shown to one person alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import structlog

from adapters.shared.caches import Refusals, Remembered
from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.shared.people import user_of
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.client import CALL_SECONDS, BotConnector
from adapters.teams.connector.people import TeamsPeople
from adapters.teams.ids import Activity, TeamsLocation
from bot.domain import Clock, system_clock
from bot.platform import Reference
from translations import gettext as _

log = structlog.get_logger(__name__)
Answer = TypeVar("Answer")
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
    connector: BotConnector, location: TeamsLocation, activity: Activity, *, patience: float = CALL_SECONDS
) -> str:
    """Post a new message. Returns its id. Raises `CallFailed`."""
    return await show_or_words(activity, lambda each: connector.send(location, each, patience=patience))


async def replace_part(connector: BotConnector, location: TeamsLocation, activity_id: str, activity: Activity) -> bool:
    """Replace what a message shows. False: it is gone. Raises `CallFailed`."""
    try:
        await show_or_words(activity, lambda each: connector.update(location, activity_id, each))
    except CallFailed as failure:
        if is_gone(failure):
            return False
        raise
    return True


async def show_or_words(activity: Activity, show: Callable[[Activity], Awaitable[Answer]]) -> Answer:
    """Show a message; where Teams refuses its card, show the card's words. Raises `CallFailed`."""
    try:
        return await show(activity)
    except CallFailed as failure:
        words = instead_of(activity, failure)
        if words is None:
            raise
    return await show(words)


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
    said = next((text for text in words if text), _("This card can’t be shown here."))
    return {"type": "message", "text": said, "textFormat": "plain"}


# ----------------------------------------- what one person alone may see: a refusal, a sign-in link

TELLING_SECONDS = 8.0
"""Seconds that each way of telling somebody may take."""
CHATS_KEPT = 86_400.0
"""Seconds for which it is remembered which conversation is somebody's chat; Teams never changes it."""
Way = Literal["here", "targeted", "chat"]
"""How something is told: in the chat where it belongs anyway, in a targeted message, in the 1:1 chat."""


class TeamsPrivateMessages:
    """Tells one person something, by the first way that is open. Nothing told is ever logged: it may hold a link."""

    def __init__(
        self, connector: BotConnector, people: TeamsPeople, config: TeamsConfig, *, clock: Clock = system_clock
    ) -> None:
        self._connector = connector
        self._people = people
        self._config = config
        self._untargeted: Refusals[str] = Refusals(clock)
        """Tenants without targeted messages."""
        self._chats: Remembered[tuple[str, str], str] = Remembered(keep=CHATS_KEPT, clock=clock)

    async def tell(
        self, location: TeamsLocation, person: str, activity: Activity, *, address: str = ""
    ) -> Reference | None:
        """Show a message to one person (their id; `address`: their `29:…`, where it is known): where they write with
        the bot alone, else as a targeted message where it belongs, else in their 1:1 chat. `None`: none of these
        arrived; that is logged here."""
        try:
            return await self.write(location, person, [activity], address=address)
        except CallFailed as failure:
            log.warning("teams_person_not_told", tenant=location.tenant, user=user_of(person), error=str(failure))
            return None

    async def write(
        self, location: TeamsLocation, person: str, activities: Sequence[Activity], *, address: str = ""
    ) -> dict[str, Any]:
        """Shows several messages to one person, all in the same way; returns what is needed to change them. Raises
        `CallFailed` where the last way failed."""
        user = user_of(person)
        if is_chat_with(location, person):
            parts = [await self._post(location, activity) for activity in activities]
            return _private(location, parts, "here")
        whispered = await self._whisper(location, person, activities, address)
        if len(whispered) == len(activities):
            return _private(location, whispered, "targeted")
        chat = await self.chat_with(replace(location, conversation="", kind="personal", user=user))
        parts = [await self._post(chat, activity) for activity in activities]
        return _private(chat, parts, "chat")

    async def chat_with(self, location: TeamsLocation) -> TeamsLocation:
        """The 1:1 chat with `location.user`, opened where it was not. Raises `CallFailed` (403: they have not
        installed the app)."""
        if location.conversation:
            return location

        async def open_it(_key: tuple[str, str]) -> str:
            return (await self._connector.open_chat(location, patience=TELLING_SECONDS)).conversation

        conversation = await self._chats.get((location.tenant, location.user), open_it)
        return replace(location, conversation=conversation)

    async def take_back(self, location: TeamsLocation, reference: Reference) -> None:
        """Delete what was told. Raises nothing: a message that stays is old news, not a wrong one."""
        where = location_of_reference(location, reference)
        for part in reference["parts"]:
            with failures_logged_as("teams_private_message_not_removed", tenant=location.tenant):
                await remove(self._connector, where, part, targeted=reference.get("way") == "targeted")

    async def close(self) -> None:
        """End what is under way."""
        await self._chats.close()

    async def _whisper(
        self, location: TeamsLocation, person: str, activities: Sequence[Activity], address: str
    ) -> list[str]:
        """Targeted messages in the conversation; fewer ids than messages: it is impossible there."""
        posted: list[str] = []
        if location.kind == "personal" or not self._config.targeted_messages or self._untargeted.hold(location.tenant):
            return posted
        address = address or (await self._people.addresses(location, [person])).get(person, "")
        if not address:
            return posted  # they are not in the conversation
        try:
            for activity in activities:
                sent = await self._connector.send(location, activity, only_for=address, patience=TELLING_SECONDS)
                posted.append(sent)  # those before a failure count
        except CallFailed as failure:
            log.info("teams_targeted_message_impossible", tenant=location.tenant, error=failure.error)
            if _says_never(failure):
                self._untargeted.remember(location.tenant)
        return posted

    async def _post(self, location: TeamsLocation, activity: Activity) -> str:
        return await post_part(self._connector, location, activity, patience=TELLING_SECONDS)


def is_chat_with(location: TeamsLocation, person: str) -> bool:
    """Whether a conversation is the direct chat with this person."""
    return location.kind == "personal" and bool(location.conversation) and location.user == user_of(person)


def _says_never(failure: CallFailed) -> bool:
    """Whether a tenant has no targeted messages: Teams knows neither the verb nor the address then. A conversation that
    we are not in (403) says nothing about its tenant."""
    return failure.permanent and failure.status in {400, 404, 405, 501} and "NotFound" not in failure.error


def _private(location: TeamsLocation, parts: Sequence[str], way: Way) -> dict[str, Any]:
    return {**reference_to(location.conversation, parts), "private": True, "way": way}
