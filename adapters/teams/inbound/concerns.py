"""What a person is shown of what concerns them: nothing that was asked in a conversation which they are not in."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from adapters.teams.api import AT_ONCE, Connector, ConnectorFailed
from adapters.teams.ids import TeamsLocation, channel_of, location_of, within_tenant
from adapters.teams.inbound.visitors import Visitor
from bot.domain import ApprovalView, Overview, Person, Shown
from bot.queries import Queries

log = structlog.get_logger(__name__)

ANYBODY = "any"
"""The policy's word for approvers who need to have nothing to do with it. Whoever else may decide is named by it."""
MOST_CONVERSATIONS = 40
"""Conversations whose members are asked for; what was asked in others is left out."""


class Concerns:
    """What waits for a person, and what came of what they asked."""

    def __init__(self, queries: Queries, connector: Connector) -> None:
        self._queries = queries
        self._connector = connector

    async def of(self, visitor: Visitor, person: Person) -> Overview:
        """Their overview of this tenant.

        That anybody may decide is no reason to show everybody what was asked in a private channel or a group chat: its
        members see the card there. In a direct chat nobody else could, so there it is shown to whoever may decide.
        """
        overview = await self._queries.overview(person, within_tenant(visitor.location.tenant))
        own = {shown.post.post_id for shown in overview.waiting}
        doubtful = [s for s in overview.to_decide if s.post.post_id not in own and _is_anybodys(s)]
        locations = dict.fromkeys(_roster(shown) for shown in doubtful)
        asked = list(locations)[:MOST_CONVERSATIONS]
        theirs = await asyncio.gather(*(self._is_member(location, visitor) for location in asked))
        seen = {location for location, is_theirs in zip(asked, theirs, strict=True) if is_theirs}
        hidden = {shown.post.post_id for shown in doubtful if _roster(shown) not in seen}
        return replace(overview, to_decide=tuple(s for s in overview.to_decide if s.post.post_id not in hidden))

    async def _is_member(self, location: TeamsLocation, visitor: Visitor) -> bool:
        """Whether they are in a conversation; not, where that cannot be found out."""
        try:
            await self._connector.member(location, visitor.caller.address or visitor.caller.user, patience=AT_ONCE)
        except ConnectorFailed as failure:
            log.info("teams_not_shown", tenant=location.tenant, error=failure.error)
            return False
        return True


def _roster(shown: Shown) -> TeamsLocation:
    """Whose members are asked: a thread's are its channel's."""
    location = location_of(shown.post.place)
    return replace(location, conversation=channel_of(location.conversation))


def _is_anybodys(shown: Shown) -> bool:
    content = shown.post.content
    return isinstance(content, ApprovalView) and ANYBODY in content.approvers and not shown.post.place.direct
