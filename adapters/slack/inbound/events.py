"""Events: what each means, which is pure, and what is done: messages go to the inbox, the rest keeps us up to date.

Slack gets its answer when the inbox has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.calls import CallFailed
from adapters.shared.messages import WORDLESS, MessageDeleted, MessageEdited, keep
from adapters.shared.untrusted_json import part, words
from adapters.slack.ids import SlackLocation, message_key, person_id, place_of, slack_id, slack_ts
from adapters.slack.inbound.home_tab import SlackOverviews
from adapters.slack.inbound.payloads import SlackVisitor
from adapters.slack.sender import SlackSender
from adapters.slack.web_api.files import files_in
from adapters.slack.web_api.texts import is_from_a_person, mentions, text_of
from bot.domain import Message, Person
from bot.inbox import Inbox
from translations import gettext as _

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SlackRecipient:
    """The installation that an event was sent to."""

    team: str
    bot_user: str
    bot_id: str
    agent_view: bool = False
    """Whether the app has Slack's agent view: a direct message then begins a thread, as a mention does."""


def heard(
    event: Event, recipient: SlackRecipient, known_name: Callable[[str], str | None]
) -> Message | MessageEdited | MessageDeleted | None:
    """What the event says to us; `None`: it is nothing to us. Reads anything and raises nothing.

    `known_name` gives the name of a user id where it is known already; the others are introduced later.
    """
    channel = slack_id(event, "channel")
    if not channel:
        return None
    direct = words(event, "channel_type") == "im" or channel.startswith("D")
    match words(event, "subtype"):
        case "message_changed":
            return _changed(event, recipient, known_name, channel, direct=direct)
        case "message_deleted":
            return _deleted(
                part(event, "previous_message"), slack_ts(event, "deleted_ts"), recipient, channel, direct=direct
            )
        case _:
            return _message(event, recipient, known_name, channel, direct=direct)


def _message(
    event: Event, recipient: SlackRecipient, known_name: Callable[[str], str | None], channel: str, *, direct: bool
) -> Message | None:
    user, ts, thread_ts = slack_id(event, "user"), slack_ts(event, "ts"), slack_ts(event, "thread_ts")
    if not ts or event.get("hidden") or not is_from_a_person(event, recipient.bot_user):
        return None
    mentioned = words(event, "type") == "app_mention" or mentions(event, recipient.bot_user)
    if not (direct or mentioned or thread_ts):
        return None  # people among themselves, in the channel
    begins_thread = recipient.agent_view or not direct
    files = files_in(event, recipient.team)
    location = SlackLocation(recipient.team, channel, thread_ts or (ts if begins_thread else ""))
    home_team = slack_id(event, "user_team") or slack_id(event, "source_team") or slack_id(event, "team")
    return Message(
        key=message_key(recipient.team, channel, ts),
        place=place_of(location, direct=direct),
        author=Person(person_id(recipient.team, user), known_name(user) or ""),
        text=text_of(event, recipient.bot_user) or WORDLESS,
        at=float(ts),
        addressed=direct or mentioned,
        origin=origin_of(user_team=home_team, bot_user=recipient.bot_user),
        files=files,
    )


def origin_of(*, user_team: str, bot_user: str) -> dict[str, str]:
    """What is needed to introduce a message later: the workspace its author belongs to (empty: not said), and us."""
    return {"user_team": user_team, "bot_user": bot_user}


def _changed(
    event: Event, recipient: SlackRecipient, known_name: Callable[[str], str | None], channel: str, *, direct: bool
) -> MessageEdited | MessageDeleted | None:
    now, before = part(event, "message"), part(event, "previous_message")
    ts = slack_ts(now, "ts")
    if words(now, "subtype") == "tombstone":  # deleted, but its thread goes on
        return _deleted(before, ts, recipient, channel, direct=direct)
    if not ts or not part(now, "edited") or not is_from_a_person(now, recipient.bot_user):
        return None
    text = text_of(now, recipient.bot_user) or WORDLESS
    speaks_to_us, spoke_to_us = mentions(now, recipient.bot_user), mentions(before, recipient.bot_user)
    if text == (text_of(before, recipient.bot_user) or WORDLESS) and speaks_to_us == spoke_to_us:
        return None  # a link was unfurled, a file was looked at
    if not (direct or speaks_to_us or spoke_to_us or slack_ts(now, "thread_ts")):
        return None
    # In a direct chat it was for the bot from the beginning; without its former text nobody can tell.
    as_good_as_new = speaks_to_us and not spoke_to_us and not direct and bool(before)
    message = _message(now, recipient, known_name, channel, direct=direct) if as_good_as_new else None
    return MessageEdited(message_key(recipient.team, channel, ts), text, message)


def _deleted(before: Event, ts: str, recipient: SlackRecipient, channel: str, *, direct: bool) -> MessageDeleted | None:
    if not ts or (before and not is_from_a_person(before, recipient.bot_user)):
        return None
    if before and not (direct or mentions(before, recipient.bot_user) or slack_ts(before, "thread_ts")):
        return None
    return MessageDeleted(message_key(recipient.team, channel, ts))


# ------------------------------------------------------------------------------------------------ what each event does

log = structlog.get_logger(__name__)


def suggested_prompts() -> tuple[tuple[str, str], ...]:
    """Returns what is suggested in the agent container: title, and the message that is sent (Slack: 4 at most)."""
    return (
        (_("What can you do?"), _("What can you do for me, and which tools do you have?")),
        (_("What needs me?"), _("What is waiting for my approval?")),
        (_("Plan my day"), _("What is on my calendar today, and which tasks are open?")),
    )


class SlackMessageHandler:
    """What each event does."""

    def __init__(
        self, inbox: Inbox, sender: SlackSender, overviews: SlackOverviews, background: BackgroundTasks
    ) -> None:
        self._inbox = inbox
        self._sender = sender
        self._overviews = overviews
        self._background = background

    async def message(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`message` and `app_mention`. Raises whatever the inbox raises, so that Slack sends it again."""
        found = heard(event, recipient, lambda user: self._sender.people.known_name(recipient.team, user))
        if found is not None:
            await keep(self._inbox, found)

    async def home_opened(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`app_home_opened`: the Home tab is shown; in the Messages tab (the agent view) we suggest how to begin."""
        user, channel = slack_id(event, "user"), slack_id(event, "channel")
        if user and words(event, "tab") != "messages":
            self._background.start(self._overviews.publish(SlackVisitor(recipient.team, user)), "home")
        elif channel and recipient.agent_view:
            self._background.start(self._suggest(recipient.team, {"channel_id": channel}), "suggested prompts")

    async def agent_opened(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`assistant_thread_started`: suggest how to begin."""
        thread = part(event, "assistant_thread")
        channel, thread_ts = slack_id(thread, "channel_id"), slack_ts(thread, "thread_ts")
        if channel and thread_ts:
            where = {"channel_id": channel, "thread_ts": thread_ts}
            self._background.start(self._suggest(recipient.team, where), "suggested prompts")

    async def _suggest(self, team: str, where: Mapping[str, str]) -> None:
        prompts = [{"title": title, "message": message} for title, message in suggested_prompts()]
        try:
            await self._sender.api.call(team, "assistant.threads.setSuggestedPrompts", {**where, "prompts": prompts})
        except CallFailed as failure:
            log.info("slack_prompts_not_suggested", team=team, error=failure.error)

    async def agent_stopped(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`agent_session_stopped`: the stop button that Slack shows beside a status. Of somebody else's turn it stops
        nothing, as when they write "stop"."""
        channel, user = slack_id(event, "channel"), slack_id(event, "user")
        thread_ts, at = slack_ts(event, "thread_ts"), slack_ts(event, "event_ts")
        if channel and user and thread_ts:
            thread_id = place_of(SlackLocation(recipient.team, channel, thread_ts), direct=channel.startswith("D")).key
            person = Person(person_id(recipient.team, user), self._sender.people.known_name(recipient.team, user) or "")
            await self._inbox.stop(message_key(recipient.team, channel, f"stop:{at}"), thread_id, person)

    async def uninstalled(self, body: Mapping[str, Any]) -> None:
        """`app_uninstalled`: nothing of that workspace's is ours any more."""
        team, enterprise = slack_id(body, "team_id"), slack_id(body, "enterprise_id")
        await self._sender.workspaces.forget(team, enterprise, at=event_time(body))

    async def revoked(self, body: Mapping[str, Any]) -> None:
        """`tokens_revoked`: of the bot's own token it means the same; tokens of people we do not have."""
        if part(body, "event", "tokens").get("bot"):
            await self.uninstalled(body)

    async def person_changed(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`user_change`: a name, a time zone, or who is a guest."""
        await self._sender.people.changed(recipient.team, part(event, "user"))


def event_time(body: Mapping[str, Any]) -> float | None:
    """When it happened, in seconds since the epoch: the event may arrive when it has been installed anew already."""
    at = body.get("event_time")
    return float(at) if isinstance(at, int) and at > 0 else None
