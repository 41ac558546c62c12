"""After a crash: finds what was posted just before by our mark on it, and drafts that nobody writes any more."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import structlog

from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.slack.ids import SlackLocation, location_of
from adapters.slack.outbound.posting import is_streaming, is_unfinished, marked_post, remove, stop_stream
from adapters.slack.render.markdown import streamable
from adapters.slack.render.posts import beginning
from adapters.slack.web_api.client import CALL_SECONDS, WebApi
from bot.domain import Clock, Post, Said
from bot.records.claims import Claim, check_claim, current_claim
from policies.spellings import unescaped

log = structlog.get_logger(__name__)
LOOK_BACK = 900.0
"""Seconds before a post was kept from which messages are read: its draft is older by as much as the turn took, and
Slack's clock is not ours."""
PAGE_SIZE = 200
MOST_PAGES = 10
MOST_COMPARED = 20_000
"""Characters of an answer that are compared with a message, some 30 ms; a draft of ours has fewer (Slack: 12,000 of a
stream)."""
UNMISTAKABLE = 12
"""Letters that an answer which is still being written has to share with a longer message to be taken for the same."""
BRIEFLY = 4.0
"""Seconds that a call may take which an answer waits for."""
_CANNOT_SEARCH = frozenset(
    {"thread_not_found", "missing_scope", "channel_not_found", "not_in_channel", "no_permission"}
)
"""Where searching is impossible for good, a message may be posted twice rather than never."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A message that somebody began to write, and that no post has finished."""

    ts: str
    text: str
    """The message's text, as far as Slack gives it."""
    streaming: bool


class Finder:
    """Searches for the messages of a post where they would be."""

    def __init__(self, api: WebApi) -> None:
        self._api = api
        self._ourselves: dict[str, tuple[str, str]] = {}
        """Workspace → the bot's ids as the author of messages: as a user and as a bot."""

    async def parts(self, post: Post, in_use: Container[str] = ()) -> list[str]:
        """Timestamps of the messages that show (a part of) a post, oldest first; without any, that of a draft of it
        which a crash left behind. Drafts `in_use` belong to something else. Raises `CallFailed` when that cannot be
        found out now."""
        location = location_of(post.place)
        answer = WantedAnswer(post.content.text) if isinstance(post.content, Said) else None
        marked, drafts = [], []
        try:
            async for message in self._our_messages(location, post.at - LOOK_BACK):
                owner = marked_post(message)
                if owner == post.post_id:
                    marked.append(str(message["ts"]))
                elif owner is None and message["ts"] not in in_use and _may_be_draft(message, answer):
                    drafts.append(str(message["ts"]))
        except CallFailed as failure:
            if failure.error not in _CANNOT_SEARCH:
                raise
            log.warning(
                "slack_posts_cannot_be_found", team=location.team, channel=location.channel, error=failure.error
            )
        return sorted(set(marked)) or sorted(drafts)[-1:]

    async def unfinished(self, location: SlackLocation, oldest: float) -> list[Orphan]:
        """The messages there that were begun and not finished, oldest first. Raises `CallFailed`."""
        found = [
            Orphan(str(message["ts"]), str(message.get("text") or ""), is_streaming(message))
            async for message in self._our_messages(location, oldest, BRIEFLY)
            if marked_post(message) is None and is_unfinished(message)
        ]
        return sorted(found, key=lambda orphan: orphan.ts)

    async def _our_messages(
        self, location: SlackLocation, oldest: float, patience: float = CALL_SECONDS
    ) -> AsyncIterator[Mapping[str, Any]]:
        user, bot_id = await self._who_we_are(location.team, patience)
        arguments: dict[str, Any] = {
            "channel": location.channel,
            "oldest": f"{max(oldest, 0.0):.6f}",
            "inclusive": True,
            "include_all_metadata": True,
            "limit": PAGE_SIZE,
        }
        method = "conversations.history"
        if location.thread_ts:
            method, arguments["ts"] = "conversations.replies", location.thread_ts
        for _ in range(MOST_PAGES):
            answer = await self._api.call(location.team, method, arguments, patience=patience)
            for message in answer.get("messages") or ():
                if (bot_id and message.get("bot_id") == bot_id) or (user and message.get("user") == user):
                    yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return
            arguments["cursor"] = cursor
        log.warning("slack_thread_too_long_to_search", team=location.team, channel=location.channel, pages=MOST_PAGES)

    async def _who_we_are(self, team: str, patience: float) -> tuple[str, str]:
        if team not in self._ourselves:
            answer = await self._api.call(team, "auth.test", patience=patience)
            self._ourselves[team] = str(answer.get("user_id") or ""), str(answer.get("bot_id") or "")
        return self._ourselves[team]


class WantedAnswer:
    """An answer as the model writes it, to be compared with what Slack shows of messages: its two readings are made
    once, however many messages there are."""

    def __init__(self, text: str) -> None:
        self._text = text[:MOST_COMPARED]

    def begins_like(self, written: str) -> bool:
        """Whether a message, as Slack shows it, is its beginning, or it is not as far yet. Answers are streamed, or
        rendered as they would be posted; Slack rewrites the markup of both."""
        shown = _letters(written)
        return bool(shown) and any(
            way.startswith(shown) or (len(way) >= UNMISTAKABLE and shown.startswith(way)) for way in self._readings
        )

    @cached_property
    def _readings(self) -> tuple[str, str]:
        return _letters(streamable(self._text)), _letters(beginning(self._text))


def _may_be_draft(message: Mapping[str, Any], answer: WantedAnswer | None) -> bool:
    """Whether a message of ours without a mark is the beginning of what a post says."""
    if answer is None or message.get("ts") == message.get("thread_ts"):
        return False
    return answer.begins_like(str(message.get("text") or ""))


def _letters(text: str) -> str:
    """The text without markup: letters and digits only."""
    return "".join(character for character in unescaped(text) if character.isalnum())


# ---------------------------------------------------------------------- drafts of a process that died
# Handed to the post that says the same, or removed.


@dataclass(slots=True)
class _Found:
    """What was found."""

    by_location: dict[SlackLocation, list[Orphan]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Messages of posts."""
    searching: defaultdict[SlackLocation, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))


class Orphans:
    """Half-written messages of a process that died, searched for once in each thread that may hold any: one that is
    older than this process, or, where several processes take turns, one that was taken over (`Claim.taken_over`).

    They are told apart by what they say: of two that were being written, each goes to its own post, so that the order
    stays. Whatever is written in such a thread waits for the search, so that no message of this process is taken for
    one. A search goes back `LOOK_BACK` seconds; when this process has run for as long, there are none, and what was
    found is forgotten. What was found in a thread that was taken over is forgotten with the claim.
    """

    def __init__(self, api: WebApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._finder = Finder(api)
        self._over_at = clock() + LOOK_BACK
        self._began_at = f"{clock():.6f}"  # as Slack writes it, which sorts by time
        self._found = _Found()
        self._found_under: WeakKeyDictionary[Claim, _Found] = WeakKeyDictionary()

    def may_be_in(self, location: SlackLocation) -> bool:
        """Whether there may be any: in a thread that is older than this process, or where there are no threads; or in
        one that this process has taken over."""
        found = self._known()
        return found is not None and self._is_old(location) and found.by_location.get(location) != []

    async def claim(self, location: SlackLocation, text: str) -> str:
        """Timestamp of the one that says the same as far as it goes, no longer streaming; empty: there is none."""
        known = self._known()
        if known is None or not self.may_be_in(location):
            return ""
        found = await self._in_thread(location, known)
        answer = WantedAnswer(text)
        orphan = next((each for each in found if answer.begins_like(each.text)), None)
        if orphan is None:
            return ""
        found.remove(orphan)
        known.taken.add(orphan.ts)
        # Where that fails: whoever replaces it stops it first.
        with failures_logged_as("slack_orphan_not_stopped", team=location.team, channel=location.channel):
            await self._stop(location, orphan)
        return orphan.ts

    def take(self, timestamps: Sequence[str]) -> None:
        """These have become the messages of a post."""
        if (known := self._known()) is not None:
            known.taken.update(timestamps)

    async def clear(self, location: SlackLocation) -> None:
        """Take away those that nobody has claimed: what they were to say is said elsewhere, or will never be. Raises
        `Overtaken`."""
        known = self._known()
        if known is None or not self.may_be_in(location):
            return
        found = await self._in_thread(location, known)
        while found:
            await check_claim()
            if not found:
                return  # it was claimed meanwhile
            orphan = found.pop()
            if orphan.ts in known.taken:
                continue
            with failures_logged_as("slack_orphan_not_removed", team=location.team, channel=location.channel):
                await self._stop(location, orphan)
                await remove(self._api, location, orphan.ts)

    def _known(self) -> _Found | None:
        """What was found so far; `None`: there is nothing to be found."""
        claim = current_claim()
        if claim is not None:
            return self._found_under.setdefault(claim, _Found()) if claim.taken_over else None
        if self._clock() < self._over_at:
            return self._found
        self._found = _Found()
        return None

    def _is_old(self, location: SlackLocation) -> bool:
        return current_claim() is not None or location.thread_ts <= self._began_at

    async def _in_thread(self, location: SlackLocation, known: _Found) -> list[Orphan]:
        async with known.searching[location]:
            if location not in known.by_location:
                found: list[Orphan] = []
                with failures_logged_as("slack_orphans_not_found", team=location.team, channel=location.channel):
                    found = await self._finder.unfinished(location, self._clock() - LOOK_BACK)
                known.by_location[location] = [orphan for orphan in found if orphan.ts not in known.taken]
            return known.by_location[location]

    async def _stop(self, location: SlackLocation, orphan: Orphan) -> None:
        if orphan.streaming:
            await stop_stream(self._api, location, orphan.ts)
