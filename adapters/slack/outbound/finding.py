"""What was posted just before a crash: found again by our mark on it, so that nothing is posted twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from adapters.slack.api import PATIENCE, Api, ApiFailed
from adapters.slack.ids import Spot, spot_of
from adapters.slack.outbound.posting import is_streaming, is_unfinished, marked_post
from adapters.slack.render.posts import beginning
from adapters.slack.render.streamable import streamable
from bot.domain import Post, Said
from policies.spellings import unescaped

log = structlog.get_logger(__name__)

LOOK_BACK = 900.0
"""Seconds before a post was kept from which messages are looked at: its draft is older by as much as the turn took,
and Slack's clock is not ours."""
PAGE_SIZE = 200
MOST_PAGES = 10
UNMISTAKABLE = 12
"""Letters that an answer which is still being written has to share with a longer message to be taken for the same."""
BRIEFLY = 4.0
"""Seconds that a call may take which an answer waits for."""

_CANNOT_LOOK = frozenset({"thread_not_found", "missing_scope", "channel_not_found", "not_in_channel", "no_permission"})
"""Where looking is impossible for good, a message may be posted twice rather than never."""


@dataclass(frozen=True, slots=True)
class Ourselves:
    """The bot as the author of messages in one workspace."""

    user: str
    bot_id: str

    def wrote(self, message: Mapping[str, Any]) -> bool:
        """Whether the bot is a message's author."""
        return bool(
            (self.bot_id and message.get("bot_id") == self.bot_id) or (self.user and message.get("user") == self.user)
        )


@dataclass(frozen=True, slots=True)
class Orphan:
    """A message that somebody began to write, and that no post has finished."""

    ts: str
    text: str
    """As far as it goes."""
    streaming: bool


class Finder:
    """Looks for the messages of a post where they would be."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._ourselves: dict[str, Ourselves] = {}

    async def parts(self, post: Post, in_use: Container[str] = ()) -> list[str]:
        """Timestamps of the messages that show (a part of) a post, oldest first; without any, that of a draft of it
        which a crash left behind. Drafts `in_use` belong to something else. Raises `ApiFailed` when that cannot be
        found out now."""
        spot = spot_of(post.place)
        marked, drafts = [], []
        try:
            async for message in self._our_messages(spot, post.at - LOOK_BACK):
                owner = marked_post(message)
                if owner == post.post_id:
                    marked.append(str(message["ts"]))
                elif owner is None and message["ts"] not in in_use and _may_be_draft(message, post):
                    drafts.append(str(message["ts"]))
        except ApiFailed as failure:
            if failure.error not in _CANNOT_LOOK:
                raise
            log.warning("slack_posts_cannot_be_found", team=spot.team, channel=spot.channel, error=failure.error)
        return sorted(set(marked)) or sorted(drafts)[-1:]

    async def unfinished(self, spot: Spot, oldest: float) -> list[Orphan]:
        """The messages there that were begun and not finished, oldest first. Raises `ApiFailed`."""
        found = [
            Orphan(str(message["ts"]), str(message.get("text") or ""), is_streaming(message))
            async for message in self._our_messages(spot, oldest, BRIEFLY)
            if marked_post(message) is None and is_unfinished(message)
        ]
        return sorted(found, key=lambda orphan: orphan.ts)

    async def _our_messages(
        self, spot: Spot, oldest: float, patience: float = PATIENCE
    ) -> AsyncIterator[Mapping[str, Any]]:
        ourselves = await self._who_we_are(spot.team, patience)
        arguments: dict[str, Any] = {
            "channel": spot.channel,
            "oldest": f"{max(oldest, 0.0):.6f}",
            "inclusive": True,
            "include_all_metadata": True,
            "limit": PAGE_SIZE,
        }
        method = "conversations.history"
        if spot.thread_ts:
            method, arguments["ts"] = "conversations.replies", spot.thread_ts
        for _ in range(MOST_PAGES):
            answer = await self._api.call(spot.team, method, arguments, patience=patience)
            for message in answer.get("messages") or ():
                if ourselves.wrote(message):
                    yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return
            arguments["cursor"] = cursor
        log.warning("slack_thread_too_long_to_search", team=spot.team, channel=spot.channel, pages=MOST_PAGES)

    async def _who_we_are(self, team: str, patience: float) -> Ourselves:
        known = self._ourselves.get(team)
        if known is None:
            answer = await self._api.call(team, "auth.test", patience=patience)
            known = Ourselves(user=str(answer.get("user_id") or ""), bot_id=str(answer.get("bot_id") or ""))
            self._ourselves[team] = known
        return known


def _may_be_draft(message: Mapping[str, Any], post: Post) -> bool:
    """Whether a message of ours without a mark is the beginning of what a post says."""
    if not isinstance(post.content, Said) or message.get("ts") == message.get("thread_ts"):
        return False
    return begins_like(str(message.get("text") or ""), post.content.text)


def begins_like(written: str, text: str) -> bool:
    """Whether a message, as Slack shows it, is the beginning of an answer, as the model writes it, or the answer is not
    as far yet. Answers are streamed, or rendered as they would be posted; Slack rewrites the markup of both."""
    shown = _letters(written)
    ways = (_letters(streamable(text)), _letters(beginning(text)))
    return bool(shown) and any(
        way.startswith(shown) or (len(way) >= UNMISTAKABLE and shown.startswith(way)) for way in ways
    )


def _letters(text: str) -> str:
    """The text without markup: letters and digits only."""
    return "".join(character for character in unescaped(text) if character.isalnum())
