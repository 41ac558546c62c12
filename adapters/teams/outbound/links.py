"""The link of a sign-in: given to its owner alone when its card is shown, taken back when it is settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from adapters.shared.calls import CallFailed
from adapters.shared.sending import SignInLink, link_for_owner
from adapters.teams.connector.client import BotConnector
from adapters.teams.ids import TeamsLocation
from adapters.teams.outbound.posting import post_part, reference_to
from adapters.teams.outbound.private import TeamsPrivateMessages
from adapters.teams.render.posts import open_a_chat_first, sign_in_link
from bot.domain import Content, SignInView
from bot.platform import Reference

log = structlog.get_logger(__name__)

LINK = "link"
"""Where a card's reference keeps that of the message with its link; empty: it was given to nobody."""


class SignInLinkMessages:
    """Sees to it that exactly the owners of open sign-ins have their links. Failing is no failure of the card: its
    button gives the link again."""

    def __init__(self, connector: BotConnector, private: TeamsPrivateMessages, link_of: SignInLink) -> None:
        self._connector = connector
        self._private = private
        self._link_of = link_of

    async def follow(self, content: Content, location: TeamsLocation, reference: Reference) -> Reference:
        """Give or take back the link that belongs to a card shown at `location`; the card's reference, with that of the
        link's message in it. Raises nothing."""
        if not isinstance(content, SignInView):
            return reference
        if content.status == "open":
            return reference if LINK in reference else {**reference, LINK: await self._give(content, location)}
        given = reference.get(LINK)
        if given:
            await self._private.take_back(location, given)
        return {name: value for name, value in reference.items() if name != LINK}

    async def _give(self, view: SignInView, location: TeamsLocation) -> Mapping[str, Any]:
        link = await link_for_owner(self._link_of, view)
        if not link:
            return {}
        told = await self._private.tell(location, view.owner_id, sign_in_link(view, link))
        return told if told is not None else await self._say_what_to_do(view, location)

    async def _say_what_to_do(self, view: SignInView, location: TeamsLocation) -> Mapping[str, Any]:
        """For everybody there to read, so without the link."""
        try:
            note = await post_part(self._connector, location, open_a_chat_first(view.owner))
        except CallFailed as failure:
            log.warning("teams_owner_not_told", sign_in=view.sign_in_id, error=failure.error)
            return {}
        return reference_to(location.conversation, [note])
