"""Cards that were posted twice, because the process died between posting and recording: taken away when they show.

Teams lets nobody search for a message, but it tells on which one somebody clicked, and asks for those whom a card names
what they are to see of it as soon as it shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from adapters.shared import actions
from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.calls import CallFailed
from adapters.teams.actions import REFRESH
from adapters.teams.connector.client import BotConnector
from adapters.teams.ids import channel_of, place_of
from adapters.teams.inbound.activities import TeamsClick
from bot.platform import Reference
from bot.queries import Queries

log = structlog.get_logger(__name__)

GRACE = 10.0
"""Seconds between posting a card and its reference in the records, at the very most: only what is unknown before and
after is taken for a duplicate."""

_ON_CARDS = frozenset(
    {
        actions.APPROVE,
        actions.REJECT,
        REFRESH,
        actions.ANSWER,
        actions.IT_WAS_DONE,
        actions.TRY_AGAIN,
        actions.SKIP,
    }
)
"""Buttons on the posted cards themselves. Links to sign in come in messages of their own, too."""


class Duplicates:
    """Removes cards that the records know nothing of."""

    def __init__(self, queries: Queries, connector: BotConnector, background: BackgroundTasks, *, grace: float) -> None:
        self._queries = queries
        self._connector = connector
        self._background = background
        self._grace = grace

    def check(self, click: TeamsClick) -> None:
        """Remove the message that was clicked, later, unless it is one that is recorded."""
        if click.action in _ON_CARDS and click.visitor.message and click.subject:
            self._background.start(self._check(click), "duplicate")

    async def _check(self, click: TeamsClick) -> None:
        if not await self._is_unknown(click):
            return
        await asyncio.sleep(self._grace)
        location, message = click.visitor.location, click.visitor.message
        place = place_of(location)
        if not await self._is_unknown(click) or await self._queries.is_ours(message, place.channel or place.key):
            return  # the latter: what a client says may be made up, also on which message something was clicked
        try:
            await self._connector.delete(location, message)
        except CallFailed as failure:
            log.info("teams_duplicate_not_removed", tenant=location.tenant, error=failure.error)
        else:
            log.info("teams_duplicate_removed", tenant=location.tenant, subject=click.subject)

    async def _is_unknown(self, click: TeamsClick) -> bool:
        """Whether the card is recorded here, and not as this message. A card that was routed to a channel begins a
        thread there, and its duplicate another."""
        here = channel_of(click.visitor.location.conversation)
        shown = [messages_in(each.reference) for each in await self._queries.shown(click.subject) if each.reference]
        ids = {m for known in shown for where, found in known.items() if channel_of(where) == here for m in found}
        return bool(ids) and click.visitor.message not in ids


def messages_in(reference: Reference) -> Mapping[str, Sequence[str]]:
    """The messages of a reference by their conversation, private ones included."""
    found: dict[str, list[str]] = {}

    def collect(value: Mapping[str, Any]) -> None:
        parts = value.get("parts")
        if isinstance(parts, list | tuple):
            found.setdefault(str(value.get("conversation", "")), []).extend(map(str, parts))
        for inner in value.values():
            if isinstance(inner, Mapping):
                collect(inner)

    collect(reference)
    return found
