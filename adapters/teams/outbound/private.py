"""What one person alone may see: a refusal, a sign-in link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import structlog

from adapters.shared.caches import Refusals, Remembered
from adapters.shared.calls import CallFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.client import BotConnector
from adapters.teams.ids import Activity, TeamsLocation, user_of
from adapters.teams.outbound.audiences import Addresses
from adapters.teams.outbound.posting import location_of_reference, post_part, reference_to, remove
from bot.domain import Clock, system_clock
from bot.platform import Reference

log = structlog.get_logger(__name__)

PATIENCE = 8.0
"""Seconds that each way of telling somebody may take."""
CHATS_KEPT = 86_400.0
"""Seconds for which it is remembered which conversation is somebody's chat; Teams never changes it."""

Way = Literal["here", "targeted", "chat"]
"""How something is told: in the chat where it belongs anyway, in a targeted message, in the 1:1 chat."""


class TeamsPrivateMessages:
    """Tells one person something, by the first way that is open. Nothing told is ever logged: it may hold a link."""

    def __init__(
        self, connector: BotConnector, people: Addresses, config: TeamsConfig, *, clock: Clock = system_clock
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
        """Show a message to one person (their id; `address`: their `29:…`, where it is known): where they talk with the
        bot alone, else as a targeted message where it belongs, else in their 1:1 chat. `None`: none of these arrived;
        that is logged here."""
        try:
            return await self.write(location, person, [activity], address=address)
        except CallFailed as failure:
            log.warning(
                "teams_person_not_told",
                tenant=location.tenant,
                user=user_of(person),
                verb=failure.call,
                error=failure.error,
            )
            return None

    async def write(
        self, location: TeamsLocation, person: str, activities: Sequence[Activity], *, address: str = ""
    ) -> dict[str, Any]:
        """The same for several messages, all by the same way; what is needed to change them. Raises `CallFailed`
        where the last way failed."""
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
            return (await self._connector.open_chat(location, patience=PATIENCE)).conversation

        conversation = await self._chats.get((location.tenant, location.user), open_it)
        return replace(location, conversation=conversation)

    async def take_back(self, location: TeamsLocation, reference: Reference) -> None:
        """Delete what was told. Raises nothing: a message that stays is old news, not a wrong one."""
        where = location_of_reference(location, reference)
        for part in reference["parts"]:
            try:
                await remove(self._connector, where, part, targeted=reference.get("way") == "targeted")
            except CallFailed as failure:
                log.info("teams_private_message_not_removed", tenant=location.tenant, error=failure.error)

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
                posted.append(await self._connector.send(location, activity, only_for=address, patience=PATIENCE))  # noqa: PERF401  # those before a failure count
        except CallFailed as failure:
            log.info("teams_targeted_message_impossible", tenant=location.tenant, error=failure.error)
            if _says_never(failure):
                self._untargeted.remember(location.tenant)
        return posted

    async def _post(self, location: TeamsLocation, activity: Activity) -> str:
        return await post_part(self._connector, location, activity, patience=PATIENCE)


def is_chat_with(location: TeamsLocation, person: str) -> bool:
    """Whether a conversation is the direct chat with this person."""
    return location.kind == "personal" and bool(location.conversation) and location.user == user_of(person)


def _says_never(failure: CallFailed) -> bool:
    """Whether a tenant has no targeted messages: Teams knows neither the verb nor the address then. A conversation that
    we are not in (403) says nothing about its tenant."""
    return failure.permanent and failure.status in {400, 404, 405, 501} and "NotFound" not in failure.error


def _private(location: TeamsLocation, parts: Sequence[str], way: Way) -> dict[str, Any]:
    return {**reference_to(location.conversation, parts), "private": True, "way": way}
