"""The App Home, and what of their overview a person may see: nothing from channels they are not in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import structlog

from adapters.shared.calls import CallFailed
from adapters.slack.ids import location_of, permalink, within_team
from adapters.slack.inbound.payloads import SlackVisitor
from adapters.slack.render.home import home_view
from adapters.slack.render.posts import note
from adapters.slack.sender import SlackSender
from bot.domain import ConversationReference, Overview, Person, Shown, Unwelcome
from bot.services import Services
from translations import choose, in_language

log = structlog.get_logger(__name__)
MOST_CHANNELS = 40
"""Channels whose members are asked for; what was asked in others is left out."""
LOOKUP_SECONDS = 1.5
"""Seconds for asking: a command is to be answered within 3 s. What is not known by then is left out this time."""


class SlackOverviews:
    """What waits for a person, and what came of what they asked: in an answer, and on their App Home."""

    def __init__(self, services: Services, sender: SlackSender) -> None:
        self._services = services
        self._sender = sender

    async def of(self, visitor: SlackVisitor, person: Person) -> Overview:
        """Returns a person's overview of this workspace, as far as they may see it."""
        return await self._services.queries.overview(person, within_team(visitor.team), partial(self._among, visitor))

    async def publish(self, visitor: SlackVisitor) -> None:
        """Show a person their App Home, when they open it or settle something there. What Slack refuses is logged: they
        can open it again."""
        try:
            view = await self._view(visitor)
            await self._sender.api.call(visitor.team, "views.publish", {"user_id": visitor.user, "view": view})
        except CallFailed as failure:
            log.warning("slack_home_not_published", team=visitor.team, user=visitor.user, error=failure.error)

    async def _view(self, visitor: SlackVisitor) -> dict[str, Any]:
        bot, person = await asyncio.gather(
            self._sender.workspaces.bot(visitor.team),
            self._sender.people.admitted(visitor.team, visitor.user, visitor.home_team),
        )
        if isinstance(person, Unwelcome):
            return {"type": "home", "blocks": list(note(person.text).blocks)}
        overview = await self.of(visitor, person)
        grants = await self._services.queries.standing_approvals(person)
        connections = await self._services.connections.of_person(person)
        services = self._services.connections.to_connect(connections)

        def link(shown: Shown) -> str:
            return permalink(bot.url, shown)

        with in_language(choose(person.locale)):
            return home_view(overview, link, person, grants, connections, services=services)

    async def _among(self, visitor: SlackVisitor, places: Sequence[ConversationReference]) -> set[str]:
        """Keys of the places in whose channels they are."""
        channels = list(dict.fromkeys(location_of(place).channel for place in places))[:MOST_CHANNELS]
        asked = {
            channel: asyncio.create_task(self._sender.facts.shares_channel(visitor.team, channel, visitor.user))
            for channel in channels
        }
        done, late = await asyncio.wait(asked.values(), timeout=LOOKUP_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        if late:
            log.info("slack_members_late", team=visitor.team, channels=len(late))
        theirs = {channel for channel, task in asked.items() if task in done and task.result()}
        return {place.key for place in places if location_of(place).channel in theirs}
