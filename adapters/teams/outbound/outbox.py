"""What the bot says, shown in Teams: sent, and updated in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from adapters.shared.caches import Newest
from adapters.shared.calls import CallFailed
from adapters.shared.people import user_of
from adapters.shared.sending import SignInLink, as_post_failures, link_for_owner, still_waits
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.people import TeamsPeople
from adapters.teams.ids import Activity, TeamsLocation, channel_of, location_of
from adapters.teams.outbound.audiences import audience_of
from adapters.teams.outbound.drafts import TeamsDrafts
from adapters.teams.outbound.posting import (
    TeamsPrivateMessages,
    is_chat_with,
    location_of_reference,
    post_part,
    reference_to,
    remove,
    replace_part,
    show_or_words,
)
from adapters.teams.render.posts import Audience, activities, open_a_chat_first, sign_in_link
from bot.domain import Content, Post, SignInView
from bot.platform import Reference

log = structlog.get_logger(__name__)

MOST_REMEMBERED = 1_000
"""Posts that are kept in mind for `find`; far more than are ever tried again at once."""

LINK = "link"
"""Where a card's reference keeps that of the message with its link; empty: it was given to nobody."""
TOLD_TO_NOBODY: Reference = {"private": True}
"""The reference of what one person was to see and could not be reached for."""


class TeamsPostSender:
    """Sends, updates and finds posts, as `bot.platform.Platform` has it. Only here does Teams' failure become
    `PostFailed`."""

    def __init__(
        self,
        connector: BotConnector,
        people: TeamsPeople,
        drafts: TeamsDrafts,
        private: TeamsPrivateMessages,
        sign_in_link: SignInLink,
    ) -> None:
        self._connector = connector
        self._people = people
        self._drafts = drafts
        self._private = private
        self._sign_in_link = sign_in_link
        self._begun: Newest[str, Reference] = Newest(MOST_REMEMBERED)
        """Post id → reference, as far as this process has shown the post."""

    async def send(self, post: Post) -> Reference:
        """Show a post for the first time; in place of its draft, where there is one. Raises `PostFailed`."""
        location = location_of(post.place)
        with as_post_failures():
            if post.only_for is not None and not is_chat_with(location, post.only_for):
                return await self._send_privately(post, location, post.only_for)
            location = await self._private.chat_with(location)
            shown = await self._drawn(post, location)
            if location.kind == "channel" and location.conversation == channel_of(location.conversation):
                reference = await self._begin_thread(post, location, shown)
            else:
                async with self._drafts.posting(location):
                    first = await self._drafts.show(post, location, shown[0])
                    reference = await self._post_rest(post, location, shown, [first] if first else [])
        return await self._done(post, location, reference)

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Show what a post has become: the messages there are, are replaced; missing ones posted, surplus ones
        deleted. Raises `PostFailed`."""
        if reference.get("private"):
            return reference  # a notice, which does not change
        location = location_of_reference(location_of(post.place), reference)
        old: Sequence[str] = reference["parts"]
        with as_post_failures():
            shown = await self._drawn(post, location)
            async with self._drafts.posting(location):
                parts = [
                    await self._replace(post, location, shown[n], part) for n, part in enumerate(old[: len(shown)])
                ]
                reference = {**reference, **await self._post_rest(post, location, shown, parts)}
                for surplus in old[len(shown) :]:
                    await remove(self._connector, location, surplus)
        return await self._done(post, location, reference)

    async def find(self, post: Post) -> Reference | None:
        """The messages of a post that this process has sent already, some of them at least. Teams lets nobody search
        for those of another: they are sent again."""
        return self._begun.get(post.post_id)

    # ------------------------------------------------------------------------------------------- parts

    async def _drawn(self, post: Post, location: TeamsLocation) -> Sequence[Activity]:
        return activities(post, await audience_of(post.content, location, self._people))

    async def _begin_thread(self, post: Post, location: TeamsLocation, shown: Sequence[Activity]) -> Reference:
        """Begins a thread with the post in a channel that a rule names; it is updated there later."""
        opened = await show_or_words(shown[0], partial(self._connector.open_thread, location))
        thread = replace(location, conversation=opened.conversation)
        return await self._post_rest(post, thread, shown, [opened.activity_id])

    async def _post_rest(
        self, post: Post, location: TeamsLocation, shown: Sequence[Activity], parts: list[str]
    ) -> Reference:
        """Post the messages after the first ones, which are there, one after the other. What is there is kept in mind:
        another try goes on from it."""
        self._keep_in_mind(post, location, parts)
        for activity in shown[len(parts) :]:
            parts.append(await post_part(self._connector, location, activity))
            self._keep_in_mind(post, location, parts)
        return reference_to(location.conversation, parts)

    async def _replace(self, post: Post, location: TeamsLocation, activity: Activity, part: str) -> str:
        """Replace one message. Somebody has deleted it: it stays gone, unless it is a card that still waits."""
        if await replace_part(self._connector, location, part, activity) or not still_waits(post.content):
            return part
        return await post_part(self._connector, location, activity)

    async def _done(self, post: Post, location: TeamsLocation, reference: Reference) -> Reference:
        self._drafts.shown(post)
        return await self._follow_link(post.content, location_of_reference(location, reference), reference)

    async def _send_privately(self, post: Post, location: TeamsLocation, person: str) -> Reference:
        try:
            return await self._private.write(location, person, activities(post, Audience("personal")))
        except CallFailed as failure:
            if not failure.permanent:
                raise
            log.warning("teams_person_not_told", tenant=location.tenant, user=user_of(person), error=failure.error)
            return TOLD_TO_NOBODY

    def _keep_in_mind(self, post: Post, location: TeamsLocation, parts: Sequence[str]) -> None:
        if parts:
            self._begun[post.post_id] = reference_to(location.conversation, parts)

    # ------------------------------------------------------------------------------------------- links of sign-ins

    async def _follow_link(self, content: Content, location: TeamsLocation, reference: Reference) -> Reference:
        """See to it that exactly the owner of an open sign-in has its link, by the card shown at `location`. Returns
        the card's reference, with that of the link's message in it. Raises nothing: that is no failure of the card."""
        if not isinstance(content, SignInView):
            return reference
        if content.status == "open":
            return reference if LINK in reference else {**reference, LINK: await self._give_link(content, location)}
        given = reference.get(LINK)
        if given:
            await self._private.take_back(location, given)
        return {name: value for name, value in reference.items() if name != LINK}

    async def _give_link(self, view: SignInView, location: TeamsLocation) -> Mapping[str, Any]:
        if not (link := await link_for_owner(self._sign_in_link, view)):
            return {}
        told = await self._private.tell(location, view.owner_id, sign_in_link(view, link))
        return told if told is not None else await self._say_what_to_do(view, location)

    async def _say_what_to_do(self, view: SignInView, location: TeamsLocation) -> Mapping[str, Any]:
        """Says publicly what to do, so without the link."""
        try:
            note = await post_part(self._connector, location, open_a_chat_first(view.owner))
        except CallFailed as failure:
            log.warning("teams_owner_not_told", sign_in=view.sign_in_id, error=failure.error)
            return {}
        return reference_to(location.conversation, [note])
