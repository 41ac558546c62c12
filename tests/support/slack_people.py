"""A person in Slack: writes, clicks, fills in forms, and Slack tells the app about it as it really does.

ana = SlackPerson(slack, "T1", "U1", HttpTransport(url, "secret"))
said = await ana.says("C1", f"{ana.bot} delete the stand-up")
await ana.clicks(slack.messages("C1")[-1], "approve")
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adapters.slack.actions import DELETION
from tests.fakes.slack import payloads, response_urls
from tests.fakes.slack.inputs import action, chosen_value, find_element, state_values
from tests.fakes.slack.methods_chat import remove
from tests.fakes.slack.server import FakeSlack
from tests.fakes.slack.world import Channel
from tests.support.slack_done import Clicked, Done, Said, Submitted
from tests.support.slack_forms import settle_modal
from tests.support.slack_installs import installs, uninstalls
from tests.support.slack_transports import Answer, HttpTransport, Json, Retry, Transport


class SlackPerson:
    """One person of one workspace (or as that workspace sees them), and the transport through which the app hears."""

    def __init__(self, slack: FakeSlack, team: str, user: str, transport: Transport) -> None:
        self.team, self.user = team, user
        self.transport = transport
        self._slack = slack
        self._world = slack.world
        self._who = payloads.Someone(slack.world, team, user)

    @property
    def bot(self) -> str:
        """A mention of the app."""
        return f"<@{self._world.workspaces[self.team].bot_user}>"

    @property
    def dm(self) -> str:
        """The channel of the direct messages with the app."""
        return self._world.direct(self.team, self.user).id

    # ------------------------------------------------------------------------------------------- writing

    async def says(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        files: Sequence[Mapping[str, Any]] = (),
        first: Literal["app_mention", "message"] = "app_mention",
    ) -> Said:
        """Write `text` as Slack keeps it (`& < >` escaped, mentions as `<@U…>`).

        A mention of the app reaches it as two events; `first` says which comes first.
        """
        place = self._place(channel)
        message = payloads.written_message(self._who, text, thread_ts, files)
        place.messages[message["ts"]] = message
        events = [payloads.message_event(place, message)]
        if self.bot in text and place.kind != "im":
            events.insert(0 if first == "app_mention" else 1, payloads.mention_event(place, message))
        answers, sent = await self._tell(place, events)
        return Said(answers=answers, events=sent, channel=channel, ts=message["ts"], message=copy.deepcopy(message))

    async def edits(self, ts: str, text: str) -> Done:
        """Change a message of one's own."""
        place, before = self._own(ts)
        edited = {"user": self.user, "ts": self._world.next_ts()}
        message = {**before, "text": text, "edited": edited}
        return await self._changes(place, message, before)

    async def unfurls(self, ts: str, link: str = "https://example.com/page") -> Done:
        """Slack shows what is behind a link: the message changes and nobody has edited it."""
        place, before = self._own(ts)
        attachment = {"from_url": link, "original_url": link, "id": 1, "title": "A page", "fallback": "A page"}
        return await self._changes(place, {**before, "attachments": [attachment]}, before)

    async def deletes(self, ts: str) -> Done:
        """Delete a message of one's own; one with replies becomes a tombstone."""
        place, before = self._own(ts)
        tombstone = remove(place, before)
        if tombstone:
            event = payloads.changed_event(self._who, place, place.messages[ts], before)
        else:
            event = payloads.deleted_event(self._who, place, before)
        answers, sent = await self._tell(place, [event])
        return Done(answers=answers, events=sent)

    async def again(self, done: Done, retry: Retry | None = None) -> Done:
        """Slack sends the same events once more, as it does when it got no answer in time."""
        answers = [await self.transport.event(event, retry or Retry()) for event in done.events]
        return Done(answers=tuple(answers), events=done.events)

    # ------------------------------------------------------------------------------------------- clicking

    async def clicks(self, target: Json, action_id: str, value: str | None = None) -> Clicked:
        """Click something in a message, an ephemeral or a view, as it was when it was read.

        `value` says which one, where several have that action_id, and which option of a menu.
        """
        block, element = find_element(target["blocks"], action_id, value)
        is_view = "hash" in target
        where = payloads.in_view(target) if is_view else self._in_message(target)
        trigger_id = self._world.issue_trigger(self.team, self.user, target["id"] if is_view else "")
        chosen = chosen_value(element, action_id, value)
        actions = [action(block, element, chosen, self._world.next_ts())]
        payload = payloads.interaction(self._who, "block_actions", **where, trigger_id=trigger_id, actions=actions)
        answer = await self.transport.interaction(payload)
        response_url = payload.get("response_url", "")
        return Clicked(answers=(answer,), payload=payload, trigger_id=trigger_id, response_url=response_url)

    async def clicks_again(self, clicked: Clicked) -> Done:
        """The very same click once more: the same action_ts."""
        return Done(answers=(await self.transport.interaction(clicked.payload),))

    async def submits(self, view: Json, values: Mapping[str, Any] | None = None) -> Submitted:
        """Fill in a modal and submit it. `values` by block_id or field name; what is not named stays as it is, but that
        who approves a deletion ticks that they mean it.

        Raises `AssertionError` for what Slack's client would not let through, and for an answer Slack would not take.
        """
        asked = {DELETION: ["yes"]} if any(block.get("block_id") == DELETION for block in view["blocks"]) else {}
        state = {"values": state_values(view["blocks"], {**asked, **(values or {})})}
        trigger_id = self._world.issue_trigger(self.team, self.user, view["id"])
        payload = payloads.interaction(
            self._who, "view_submission", trigger_id=trigger_id, view={**view, "state": state}, response_urls=[]
        )
        answer = await self.transport.interaction(payload)
        after, errors = settle_modal(self._world, self.team, self.user, view, answer)
        return Submitted(answers=(answer,), payload=payload, view=after, errors=errors)

    async def submits_again(self, submitted: Submitted) -> Done:
        """The very same form once more."""
        return Done(answers=(await self.transport.interaction(submitted.payload),))

    async def closes(self, view: Json) -> Done:
        """Close a modal; the app hears of it if it asked to."""
        stack = self._world.modals.get((self.team, self.user), [])
        stack[:] = [shown for shown in stack if shown["id"] != view["id"]]
        if not view["notify_on_close"]:
            return Done()
        payload = payloads.interaction(self._who, "view_closed", view=view, is_cleared=False)
        return Done(answers=(await self.transport.interaction(payload),))

    # ------------------------------------------------------------------------------------------- elsewhere

    async def commands(self, text: str, channel: str, command: str = "/countersign") -> Clicked:
        """Use a slash command. What the app answers is shown: see `slack.ephemerals`."""
        place = self._place(channel)
        response_url = response_urls.issue(self._world, self.team, self.user, channel)
        fields = payloads.slash_command(self._who, place, command, text, response_url)
        answer = await self.transport.command(fields)
        shown = answer.json or ({"text": answer.text} if answer.text else None)
        if answer.status == 200 and shown:
            facts = {"team": self.team, "user": self.user, "channel": channel, "ts": "", "thread_ts": ""}
            response_urls.answered(self._world, facts, shown)
        return Clicked(
            answers=(answer,), payload=dict(fields), trigger_id=fields["trigger_id"], response_url=response_url
        )

    async def asks_about(self, message: Json, callback_id: str = "ask_about_message") -> Clicked:
        """Use the message shortcut on a message."""
        found = self._world.message(message["ts"])
        assert found, "there is no such message"
        place, stored = found
        response_url = response_urls.issue(
            self._world, self.team, self.user, place.id, stored["ts"], stored.get("thread_ts", "")
        )
        trigger_id = self._world.issue_trigger(self.team, self.user)
        payload = payloads.interaction(
            self._who,
            "message_action",
            callback_id=callback_id,
            trigger_id=trigger_id,
            response_url=response_url,
            action_ts=self._world.next_ts(),
            message_ts=stored["ts"],
            message=copy.deepcopy(stored),
            channel=payloads.channel_of(place),
        )
        answer = await self.transport.interaction(payload)
        return Clicked(answers=(answer,), payload=payload, trigger_id=trigger_id, response_url=response_url)

    async def opens_home(self, tab: Literal["home", "messages"] = "home") -> Done:
        """Open the app's home tab."""
        event: Json = {"type": "app_home_opened", "user": self.user, "channel": self.dm, "tab": tab}
        if tab == "home" and (view := self._slack.home(self.user, team=self.team)):
            event["view"] = view
        return await self._tells({**event, "event_ts": self._world.next_ts()})

    async def opens_assistant(self, channel: str = "") -> Said:
        """Open the agent container beside `channel`; `ts` of the result is the new thread in the direct messages."""
        place = self._world.channels[self.dm]
        ts = self._world.next_ts()
        bot = self._world.workspaces[self.team]
        root = {"type": "message", "subtype": "assistant_app_thread", "user": bot.bot_user, "bot_id": bot.bot_id}
        place.messages[ts] = {**root, "ts": ts, "thread_ts": ts, "text": "New Assistant Thread"}
        context = {"channel_id": channel, "team_id": self.team, "enterprise_id": None} if channel else {}
        thread = {"user_id": self.user, "context": context, "channel_id": place.id, "thread_ts": ts}
        event = {"type": "assistant_thread_started", "assistant_thread": thread, "event_ts": self._world.next_ts()}
        done = await self._tells(event)
        return Said(answers=done.answers, events=done.events, channel=place.id, ts=ts, message=place.messages[ts])

    async def installs(self, *, rotating: bool = False, changed: Mapping[str, str | None] | None = None) -> Done:
        """Install the app into the workspace with a browser: see `slack_installs.installs`."""
        assert isinstance(self.transport, HttpTransport), "a browser needs the app's address"
        return Done(
            answers=await installs(
                self._slack, self.transport, team=self.team, user=self.user, rotating=rotating, changed=changed
            )
        )

    async def uninstalls(self) -> Done:
        """Take the app out of the workspace."""
        return Done(answers=await uninstalls(self._slack, self.transport, team=self.team, user=self.user))

    async def renames(self, name: str) -> Done:
        """Take another name (`user_change`)."""
        user = self._who.facts
        user["real_name"] = user["profile"]["real_name"] = user["profile"]["display_name"] = name
        return await self._tells(
            {"type": "user_change", "user": copy.deepcopy(user), "event_ts": self._world.next_ts()}
        )

    # ------------------------------------------------------------------------------------------- parts

    def _place(self, channel: str) -> Channel:
        place = self._world.channels[channel]
        assert self.user in place.members, f"{self.user} is not in {channel}"
        return place

    def _own(self, ts: str) -> tuple[Channel, Json]:
        found = self._world.message(ts)
        assert found and found[1].get("user") == self.user, "not a message of theirs"
        return found[0], copy.deepcopy(found[1])

    async def _changes(self, place: Channel, message: Json, before: Json) -> Done:
        place.messages[message["ts"]] = message
        event = payloads.changed_event(self._who, place, copy.deepcopy(message), before)
        answers, sent = await self._tell(place, [event])
        return Done(answers=answers, events=sent)

    async def _tells(self, event: Json) -> Done:
        sent = payloads.envelope(self._who, event)
        return Done(answers=(await self.transport.event(sent),), events=(sent,))

    async def _tell(self, place: Channel, events: Sequence[Json]) -> tuple[tuple[Answer, ...], tuple[Json, ...]]:
        """Slack tells an app only of places that it is in."""
        if self._world.workspaces[self.team].bot_user not in place.members:
            return (), ()
        sent = [payloads.envelope(self._who, event, ext_shared=place.is_ext_shared) for event in events]
        return tuple([await self.transport.event(envelope) for envelope in sent]), tuple(sent)

    def _in_message(self, message: Json) -> Json:
        found = self._world.message(message["ts"])
        place = found[0] if found else self._world.channels[message["channel"]]
        is_ephemeral = any(e["ts"] == message["ts"] for e in self._slack.ephemerals(self.user))
        url = response_urls.issue(
            self._world, self.team, self.user, place.id, message["ts"], message.get("thread_ts", "")
        )
        shown = copy.deepcopy(found[1] if found else message)
        where = payloads.in_message(place, shown, is_ephemeral=is_ephemeral)
        return {**where, "response_url": url}
