"""What the bot says, shown in Slack: sent, updated in place, and found again after a crash."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.shared.people import user_of
from adapters.shared.sending import SignInLink, as_post_failures, link_for_owner, message_id_of, still_waits
from adapters.slack.ids import SlackLocation, is_user, location_of, place_of
from adapters.slack.outbound.drafts import Finished, SlackDrafts
from adapters.slack.outbound.posting import SlackPrivateMessages, mark, post_piece, remove, replace_piece
from adapters.slack.outbound.recovery import Finder
from adapters.slack.outbound.streams import MOST_STREAMED, Ending
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.cards import sign_in_piece
from adapters.slack.render.markdown import streamable
from adapters.slack.render.posts import pieces, sources_of
from adapters.slack.web_api.client import WebApi
from bot.domain import Post, Said, SignInView
from bot.platform import Reference

EPHEMERAL: Reference = {"ephemeral": True}
"""The reference of what one person saw once: it cannot be updated."""


class SlackPostSender:
    """Sends, updates and finds posts, as `bot.platform.Platform` has it. Only here does Slack's failure become
    `PostFailed`."""

    def __init__(self, api: WebApi, drafts: SlackDrafts, sign_in_link: SignInLink) -> None:
        self._api = api
        self._drafts = drafts
        self._private = SlackPrivateMessages(api)
        self._finder = Finder(api)
        self._sign_in_link = sign_in_link

    async def send(self, post: Post) -> Reference:
        """Show a post for the first time; in place of its draft, where there is one. Raises `PostFailed`."""
        shown = self._drawn(post)
        with as_post_failures():
            if post.only_for is not None:
                return await self._send_privately(post, shown, user_of(post.only_for))
            location = await self._location(post)
            with self._drafts.posting(location):
                parts = await self._parts_from_draft(post, location, shown)
                parts += await self._post_from(len(parts), post, location, shown)
        self._shown(post, location)
        if isinstance(post.content, SignInView) and post.content.status == "open":
            await self._hand_over_link(post.content, location)
        return _reference(location, parts)

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Show what a post has become: the messages there are, are replaced; missing ones posted, surplus ones
        deleted. Raises `PostFailed`."""
        if reference.get("ephemeral"):
            return reference
        location, shown = _location_of_reference(post, reference), self._drawn(post)
        old: Sequence[str] = reference["parts"]
        with as_post_failures():
            parts = [await self._replace(post, location, n, shown[n], ts) for n, ts in enumerate(old[: len(shown)])]
            parts += await self._post_from(len(parts), post, location, shown)
            for surplus in old[len(shown) :]:
                await remove(self._api, location, surplus)
        self._shown(post, location)
        return _reference(location, parts)

    async def find(self, post: Post) -> Reference | None:
        """The messages of a post that was, or may have been, sent before. Raises `PostFailed` when that cannot be
        found out now."""
        if post.only_for is not None:
            return None
        with as_post_failures():
            location = await self._location(post)
            at = replace(post, place=place_of(location, direct=post.place.direct))
            found = await self._finder.parts(at, self._drafts.in_use())
        draft = self._drafts.by_message.get(message_id_of(post))
        left = draft.ts if draft and not draft.is_open else ""
        parts = sorted({*found, left} - {""})
        self._drafts.orphans.take(parts)
        return _reference(location, parts) if parts else None

    def _drawn(self, post: Post) -> tuple[SlackMessage, ...]:
        if isinstance(post.content, Said):
            post = replace(post, content=self._drafts.without_shown(post.content))
        return pieces(post)

    async def _location(self, post: Post) -> SlackLocation:
        """Where a post belongs; a card that goes to a person stands in their direct messages."""
        location = location_of(post.place)
        return await self._private.direct(location.team, location.channel) if is_user(location.channel) else location

    # ------------------------------------------------------------------------------------------- in public

    async def _parts_from_draft(self, post: Post, location: SlackLocation, shown: Sequence[SlackMessage]) -> list[str]:
        """The draft's message, turned into the post's first; empty when there is none."""
        if not isinstance(post.content, Said):
            return []
        message_id = message_id_of(post)
        draft = self._drafts.by_message.get(message_id)
        finished = await draft.finish(_ending(post, post.content, shown)) if draft else None
        if finished is not None and finished.whole:
            return [finished.ts]
        for ts in await self._begun(post, post.content, location, finished):
            if await replace_piece(self._api, location, ts, shown[0], mark(post.post_id, 0)):
                return [ts]
        self._drafts.by_message.pop(message_id, None)  # somebody has deleted it: it is not searched for
        return []

    async def _begun(self, post: Post, said: Said, location: SlackLocation, draft: Finished | None) -> list[str]:
        """The message in which a post was begun: by us, or by the process that died."""
        if draft is None:
            orphan = await self._drafts.orphans.claim(location, said.text)
            return [orphan] if orphan else []
        return [draft.ts] if draft.ts else (await self._finder.parts(post, self._drafts.in_use()))[:1]

    async def _post_from(
        self, first: int, post: Post, location: SlackLocation, shown: Sequence[SlackMessage]
    ) -> list[str]:
        """Post the parts from this one on, one after the other."""
        return [
            await post_piece(self._api, location, shown[n], mark(post.post_id, n)) for n in range(first, len(shown))
        ]

    async def _replace(self, post: Post, location: SlackLocation, part: int, piece: SlackMessage, ts: str) -> str:
        """Replace one message. Somebody has deleted it: it stays gone, unless it is a card that still waits."""
        marked = mark(post.post_id, part)
        if await replace_piece(self._api, location, ts, piece, marked) or not still_waits(post.content):
            return ts
        return await post_piece(self._api, location, piece, marked)

    def _shown(self, post: Post, location: SlackLocation) -> None:
        self._drafts.status.posted(location)
        self._drafts.by_message.pop(message_id_of(post), None)

    # ------------------------------------------------------------------------------------------- in private

    async def _send_privately(self, post: Post, shown: Sequence[SlackMessage], user: str) -> Reference:
        direct = location = location_of(post.place)
        parts: list[str] = []
        is_direct = is_user(location.channel)  # a message there is for one person anyway, and does not vanish
        for piece in shown:
            if is_direct or parts or not await self._private.whisper(location.team, user, location, piece):
                direct, ts = await self._private.write(location.team, user, piece)
                parts.append(ts)
        return _reference(direct, parts) if parts else EPHEMERAL

    async def _hand_over_link(self, view: SignInView, location: SlackLocation) -> None:
        """Give the link to its owner. Failing is no failure of the post: its button gives the link again."""
        if link := await link_for_owner(self._sign_in_link, view):
            await self._private.tell(location.team, user_of(view.owner_id), location, sign_in_piece(view, link))


def _ending(post: Post, said: Said, shown: Sequence[SlackMessage]) -> Ending:
    """How the draft ends: as the whole post, where nothing had to be changed to make a stream of it safe, and Slack's
    own rendering is as good as ours."""
    blocks = [block for piece in shown for block in piece.blocks]
    as_streamed = (
        len(shown) == 1
        and not said.agent  # its name stands above the text
        and len(said.text) <= MOST_STREAMED  # what is longer is not even read
        and all(block["type"] != "table" for block in blocks)
        and html.unescape(streamable(said.text)) == said.text
    )
    sources = sources_of(said)
    calls = [block for block in blocks if block["type"] == "context" and block not in sources]
    below = [*sources, *(block for block in blocks if block["type"] == "context_actions")]
    return Ending(said.text if as_streamed else "", calls, below, mark(post.post_id, 0))


def _reference(location: SlackLocation, parts: Sequence[str]) -> dict[str, Any]:
    return {"team": location.team, "channel": location.channel, "parts": list(parts)}


def _location_of_reference(post: Post, reference: Mapping[str, Any]) -> SlackLocation:
    """Where a post's messages stand; a direct message that stood in for an ephemeral one is in no thread."""
    place = location_of(post.place)
    if (reference["team"], reference["channel"]) == (place.team, place.channel):
        return place
    return SlackLocation(reference["team"], reference["channel"])
