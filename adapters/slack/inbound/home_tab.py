"""The App Home: made anew whenever somebody opens it, or settles something there."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from adapters.slack.api import Api, ApiFailed
from adapters.slack.inbound.concerns import Concerns
from adapters.slack.inbound.gestures import Visitor
from adapters.slack.links import permalink
from adapters.slack.render.home import home_view
from adapters.slack.render.posts import note
from adapters.slack.web_api.people import People
from adapters.slack.web_api.workspaces import Workspaces
from bot.accounts.connections import Connections
from bot.domain import Unwelcome
from bot.queries import Queries

log = structlog.get_logger(__name__)


class HomeTab:
    """Publishes a person's App Home."""

    def __init__(
        self,
        queries: Queries,
        connections: Connections,
        *,
        concerns: Concerns,
        api: Api,
        people: People,
        workspaces: Workspaces,
    ) -> None:
        self._queries = queries
        self._connections = connections
        self._concerns = concerns
        self._api = api
        self._people = people
        self._workspaces = workspaces

    async def publish(self, visitor: Visitor) -> None:
        """Show them what concerns them. What Slack refuses is logged: they can open it again."""
        try:
            view = await self._view(visitor)
            await self._api.call(visitor.team, "views.publish", {"user_id": visitor.user, "view": view})
        except ApiFailed as failure:
            log.warning("slack_home_not_published", team=visitor.team, user=visitor.user, error=failure.error)

    async def _view(self, visitor: Visitor) -> dict[str, Any]:
        bot, person = await asyncio.gather(
            self._workspaces.bot(visitor.team),
            self._people.admitted(visitor.team, visitor.user, visitor.home_team),
        )
        if isinstance(person, Unwelcome):
            return {"type": "home", "blocks": list(note(person.text).blocks)}
        overview = await self._concerns.of(visitor, person)
        grants = await self._queries.standing_approvals(person)
        connections = await self._connections.of_person(person)
        return home_view(overview, lambda shown: permalink(bot.url, shown), person, grants, connections)
