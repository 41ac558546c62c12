"""Threads that begin with our own post: what somebody asks by the slash command or by the shortcut."""

from __future__ import annotations

from contextlib import suppress

import structlog

from adapters.slack.api import AT_ONCE, Api, ApiFailed
from adapters.slack.ids import Spot, message_key, place_of
from adapters.slack.inbound.events import origin_of, text_of
from adapters.slack.inbound.gestures import Visitor
from adapters.slack.inbound.reading import parts, slack_ts
from adapters.slack.outbound.posting import show_piece, where
from adapters.slack.render.posts import opening
from adapters.slack.web_api.people import People
from adapters.slack.web_api.texts import mentioned, plain_text, with_names
from adapters.slack.web_api.workspaces import Workspaces
from bot.platform import Desk
from bot.safe_text import shorten
from bot.vocabulary import Message, Person

log = structlog.get_logger(__name__)

EVENT_TYPE = "countersign_opening"
"""Under which an opening is marked as ours in its metadata, so that nobody takes it for an answer."""
QUOTE_LIMIT = 2_000
"""Characters of the message that somebody asks about."""
_QUOTE_PATIENCE = 0.8
"""Seconds: Slack waits 3 s for the answer to a form, and the question is asked without the quote sooner than not."""

_INVITE = "I am not in this channel. Invite me with /invite, or write to me directly."
_TROUBLE = {
    "not_in_channel": _INVITE,
    "channel_not_found": _INVITE,
    "is_archived": "This channel is archived, so I cannot answer in it.",
    "restricted_action": "This channel does not let me post. Write to me directly.",
    "thread_not_found": "That message is gone.",
    "cannot_reply_to_message": "Nobody can reply to that message. Write to me directly.",
}


class Openings:
    """Posts the question, then has it answered in the thread of that post."""

    def __init__(self, desk: Desk, api: Api, people: People, workspaces: Workspaces) -> None:
        self._desk = desk
        self._api = api
        self._people = people
        self._workspaces = workspaces

    async def ask(self, visitor: Visitor, person: Person, text: str, *, direct: bool) -> str:
        """Begin a thread in a channel. What went wrong, in a sentence; empty: nothing."""
        return await self._begin(visitor, person, text, Spot(visitor.team, visitor.spot.channel), "", direct=direct)

    async def ask_about(self, visitor: Visitor, person: Person, text: str, spot: Spot, message_ts: str) -> str:
        """Begin in the thread of a message, which is quoted. What went wrong, in a sentence; empty: nothing."""
        quoted = await self._quote(spot, message_ts)
        return await self._begin(visitor, person, text, spot, quoted, direct=spot.channel.startswith("D"))

    async def _begin(
        self, visitor: Visitor, person: Person, text: str, spot: Spot, quoted: str, *, direct: bool
    ) -> str:
        try:
            bot = await self._workspaces.bot(spot.team)
            question = plain_text(text, bot.bot_user)
            ts = await self._post(visitor.user, spot, person, question, quoted)
        except ApiFailed as failure:
            return trouble(failure)
        place = place_of(Spot(spot.team, spot.channel, spot.thread_ts or ts), direct=direct)
        message = Message(
            key=message_key(spot.team, spot.channel, ts),
            place=place,
            author=person,
            text=about(question, quoted),
            at=float(ts),
            origin=origin_of(user_team=visitor.home_team, bot_user=bot.bot_user),
        )
        try:
            await self._desk.accept(message)
        except Exception:
            # Whatever it was: the question is not kept, and must not stand there as if it would be answered.
            with suppress(ApiFailed):
                arguments = {"channel": spot.channel, "ts": ts}
                await self._api.call(spot.team, "chat.delete", arguments, patience=AT_ONCE)
            raise
        return ""

    async def _post(self, user: str, spot: Spot, person: Person, question: str, quoted: str) -> str:
        piece = opening(person.name, self._readable(spot.team, question), self._readable(spot.team, quoted))
        quiet = {"unfurl_links": False, "unfurl_media": False}
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"asked_by": user}}
        arguments = {**where(spot), **quiet, "metadata": metadata}
        answer = await show_piece(self._api, spot.team, "chat.postMessage", arguments, piece, patience=AT_ONCE)
        ts = slack_ts(answer, "ts")
        if not ts:
            raise ApiFailed("chat.postMessage", "no_ts", may_have_acted=True)
        return ts

    async def _quote(self, spot: Spot, message_ts: str) -> str:
        """What the message says now. Empty when that cannot be read: the thread it is in will be, when its turn
        comes."""
        arguments = {
            "channel": spot.channel,
            "ts": spot.thread_ts or message_ts,
            "oldest": message_ts,
            "latest": message_ts,
            "inclusive": True,
            "limit": 2,  # the first message of a thread always comes along
        }
        try:
            answer = await self._api.call(spot.team, "conversations.replies", arguments, patience=_QUOTE_PATIENCE)
            bot = await self._workspaces.bot(spot.team)
        except ApiFailed as failure:
            log.info("slack_message_not_quoted", team=spot.team, channel=spot.channel, error=failure.error)
            return ""
        found = [text_of(m, bot.bot_user) for m in parts(answer, "messages") if slack_ts(m, "ts") == message_ts]
        return shorten(found[0], QUOTE_LIMIT) if found else ""

    def _readable(self, team: str, text: str) -> str:
        """The text with the names that are known already."""
        users, _ = mentioned(text)
        known = {user: self._people.known_name(team, user) for user in users}
        return with_names(text, {user: name for user, name in known.items() if name})


def about(question: str, quoted: str) -> str:
    """What is asked, with the message that it is about."""
    if not quoted:
        return question
    lines = "\n".join(f"> {line}" for line in quoted.splitlines())
    return f"{question}\n\nThis is about the message:\n{lines}"


def trouble(failure: ApiFailed) -> str:
    """Why a question was not asked, for the person who asked."""
    if failure.may_have_acted:
        return "Slack did not answer. Please look whether your question was posted before you ask again."
    return _TROUBLE.get(failure.error, f"Slack did not take my post ({failure.error}). Please try again in a moment.")
