"""Events: messages go to the inbox, the rest keeps us up to date. Slack gets its answer when the inbox has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.calls import CallFailed
from adapters.shared.untrusted_json import part, words
from adapters.slack.ids import SlackLocation, message_key, person_id, place_of, slack_id, slack_ts
from adapters.slack.inbound.events import SlackMessageDeleted, SlackMessageEdited, SlackRecipient, heard
from adapters.slack.inbound.home_tab import HomeTab
from adapters.slack.inbound.payloads import SlackVisitor
from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.people import SlackPeople
from adapters.slack.web_api.workspaces import Workspaces
from bot.domain import Message, Person
from bot.inbox import Inbox

log = structlog.get_logger(__name__)
PROMPTS = (
    ("What can you do?", "What can you do for me, and which tools do you have?"),
    ("What waits for me?", "What is waiting for me at the moment?"),
    ("Plan my day", "What is on my calendar today, and which tasks are open?"),
)
"""What is suggested in the agent container: title, and the message that is sent (Slack: 4 at most)."""


class SlackMessageHandler:
    """What each event does."""

    def __init__(
        self,
        inbox: Inbox,
        *,
        api: WebApi,
        people: SlackPeople,
        workspaces: Workspaces,
        home: HomeTab,
        background: BackgroundTasks,
    ) -> None:
        self._inbox = inbox
        self._api = api
        self._people = people
        self._workspaces = workspaces
        self._home = home
        self._background = background

    async def message(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`message` and `app_mention`. Raises whatever the inbox raises, so that Slack sends it again."""
        match heard(event, recipient, lambda user: self._people.known_name(recipient.team, user)):
            case Message() as message:
                await self._inbox.accept(message)
            case SlackMessageEdited(key, text, message):
                if message is None or not await self._inbox.accept(message):
                    await self._inbox.amend(key, text)
            case SlackMessageDeleted(key):
                await self._inbox.withdraw(key)
            case None:
                pass

    async def home_opened(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`app_home_opened`: the Home tab is shown; in the Messages tab (the agent view) we suggest how to begin."""
        user, channel = slack_id(event, "user"), slack_id(event, "channel")
        if user and words(event, "tab") != "messages":
            self._background.start(self._home.publish(SlackVisitor(recipient.team, user)), "home")
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
        prompts = [{"title": title, "message": message} for title, message in PROMPTS]
        try:
            await self._api.call(team, "assistant.threads.setSuggestedPrompts", {**where, "prompts": prompts})
        except CallFailed as failure:
            log.info("slack_prompts_not_suggested", team=team, error=failure.error)

    async def agent_stopped(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`agent_session_stopped`: the stop button that Slack shows beside a status. Of somebody else's turn it stops
        nothing, as when they write "stop"."""
        channel, user = slack_id(event, "channel"), slack_id(event, "user")
        thread_ts, at = slack_ts(event, "thread_ts"), slack_ts(event, "event_ts")
        if channel and user and thread_ts:
            thread_id = place_of(SlackLocation(recipient.team, channel, thread_ts), direct=channel.startswith("D")).key
            person = Person(person_id(recipient.team, user), self._people.known_name(recipient.team, user) or "")
            await self._inbox.stop(message_key(recipient.team, channel, f"stop:{at}"), thread_id, person)

    async def uninstalled(self, body: Mapping[str, Any]) -> None:
        """`app_uninstalled`: nothing of that workspace's is ours any more."""
        team, enterprise = slack_id(body, "team_id"), slack_id(body, "enterprise_id")
        await self._workspaces.forget(team, enterprise, at=event_time(body))

    async def revoked(self, body: Mapping[str, Any]) -> None:
        """`tokens_revoked`: of the bot's own token it means the same; tokens of people we do not have."""
        if part(body, "event", "tokens").get("bot"):
            await self.uninstalled(body)

    async def person_changed(self, event: Mapping[str, Any], recipient: SlackRecipient) -> None:
        """`user_change`: a name, a time zone, or who is a guest."""
        self._people.changed(recipient.team, part(event, "user"))


def event_time(body: Mapping[str, Any]) -> float | None:
    """When it happened, in seconds since the epoch: the event may arrive when it has been installed anew already."""
    at = body.get("event_time")
    return float(at) if isinstance(at, int) and at > 0 else None
