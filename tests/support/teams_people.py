"""A person in Teams: writes, clicks, fills in dialogs, and Teams tells the bot about it as it really does.

ana = TeamsPerson(teams, ANA, HttpTransport(url, teams))
said = await ana.says(teams.channel, "delete the stand-up")
await ana.clicks(teams.posts(said.conversation)[-1], "approve")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tests.fakes.teams import activities
from tests.fakes.teams.answer_rules import action_mistakes, dialog_mistakes
from tests.fakes.teams.inputs import CARD, card_in, filled, find_action
from tests.fakes.teams.server import FakeTeams
from tests.fakes.teams.world import BOT_NAME, Conversation, Message
from tests.support.teams_installs import arriving, departing, joining, leaving, upgrading
from tests.support.teams_transports import Answer, Json, Said, Transport

MENTION = f"<at>{BOT_NAME}</at>"
"""A mention of the bot, as it stands in a text."""
_SPAN = f'<span itemtype="http://schema.skype.com/Mention" itemscope="" itemid="0">{BOT_NAME}</span>'


class TeamsPerson:
    """One person, and the transport through which the bot hears of what they do."""

    def __init__(self, teams: FakeTeams, user: str, transport: Transport) -> None:
        self.user = user
        self.transport = transport
        self._teams = teams
        self._world = teams.world
        self._who = activities.Someone(teams.world, user)

    @property
    def chat(self) -> str:
        """Id of the chat with the bot."""
        return self._teams.personal(self.user)

    @property
    def address(self) -> str:
        """What the bot calls them: `29:…`."""
        return self._teams.address(self.user)

    # ------------------------------------------------------------------------------------------- writing

    async def says(
        self,
        conversation: str,
        text: str,
        *,
        mention: bool = True,
        reply_to: str = "",
        markup: str | None = None,
        quoting: str = "",
        files: Sequence[Mapping[str, Any]] = (),
        unsaid_files: Sequence[Mapping[str, Any]] = (),
    ) -> Said:
        """Write a message; in groups and channels with a mention of the bot in front, unless there is one in it.

        In a channel it begins a thread, unless `conversation` is one or `reply_to` names a message of one.
        `<at>Name</at>` in the text mentions others. `markup`: its HTML, if it is more than the text. `quoting`: id of
        the message that is quoted. Teams tells the bot of it only if it is mentioned, or `teams.rsc` is set.
        `unsaid_files`: attached to it, as Graph says and Teams does not, in groups and channels.
        """
        place = self._entered(conversation)
        if mention and place.kind != "personal" and MENTION not in text:
            text, markup = f"{MENTION} {text}", markup and f"{_SPAN}&nbsp;{markup}"
        quoted = place.messages[quoting] if quoting else None
        content = activities.message_content(self._who, text, markup=markup, quoted=quoted, files=files)
        where = place.messages[reply_to].conversation if reply_to else conversation
        message = self._world.post(where, self.user, content)
        self._world.unsaid_files[message.id] = [dict(file) for file in unsaid_files]
        answer = await self._told(place, message, activities.message_activity(self._who, place, message))
        return _said(answer, message)

    async def edits(self, message_id: str, text: str, *, mention: bool = True) -> Said:
        """Change a message of one's own."""
        place, message = self._own(message_id)
        heard = self._hears(place, message)
        if mention and place.kind != "personal" and MENTION not in text:
            text = f"{MENTION} {text}"
        message.content = activities.message_content(self._who, text)
        message.edited = True
        sent = activities.message_activity(
            self._who, place, message, type="messageUpdate", channelData={"eventType": "editMessage"}
        )
        if not heard and not self._hears(place, message):
            return _said(Answer(status=0, activity=sent), message)
        return _said(await self.transport.activity(sent), message)

    async def deletes(self, message_id: str) -> Answer:
        """Delete a message of one's own; it can be undone."""
        place, message = self._own(message_id)
        message.deleted = True
        return await self._told(place, message, activities.deleted_activity(self._who, place, message))

    async def undeletes(self, message_id: str) -> Answer:
        """Take a deletion back."""
        place, message = self._own(message_id)
        message.deleted = False
        sent = activities.message_activity(
            self._who, place, message, type="messageUpdate", channelData={"eventType": "undeleteMessage"}
        )
        return await self._told(place, message, sent)

    async def reacts(self, message_id: str, reaction: str, *, removed: bool = False) -> Answer:
        """React to a message of the bot (`like`, `heart`, `laugh`, `surprised`, `sad`, `angry`), or no longer."""
        place, message = self._seen(message_id)
        assert not message.author, "Teams tells a bot of reactions to its own messages only"
        change = "reactionsRemoved" if removed else "reactionsAdded"
        return await self.transport.activity(activities.reaction(self._who, place, message, reaction, change))

    async def again(self, answer: Answer) -> Answer:
        """Teams sends the same activity once more, as it does when it got no answer in time."""
        return await self.transport.activity(answer.activity)

    # ------------------------------------------------------------------------------------------- cards

    def sees(self, message: Json) -> Json:
        """A message as this person sees it now: with the card that only they were shown, if there is one."""
        _, kept = self._seen(message["id"])
        shown = kept.shown()
        if self.user in kept.views:
            shown["attachments"] = [{"contentType": CARD, "content": kept.views[self.user]}]
        return shown

    async def looks_at(self, message: Json) -> Answer:
        """The card comes into view: Teams refreshes it by itself for those whom it names."""
        card = card_in(message)
        if self.address not in card.get("refresh", {}).get("userIds", []):
            return Answer(status=0)
        return await self._acts(message, card["refresh"]["action"], {}, "automatic")

    async def refreshes(self, message: Json) -> Answer:
        """Refresh a card, named or not. What is answered is what this person sees from now on."""
        card = card_in(message)
        assert "refresh" in card, "the card has no refresh"
        is_named = self.address in card["refresh"].get("userIds", [])
        return await self._acts(message, card["refresh"]["action"], {}, "automatic" if is_named else "manual")

    async def clicks(
        self,
        message: Json,
        name: str,
        values: Mapping[str, Any] | None = None,
        *,
        subject: str = "",
        fallback: bool = False,
    ) -> Answer:
        """Press a button of a card, as it was when it was read, or as this person sees it.

        `values`: what is filled in before, by input id or field name. `subject`: which, where several have that name.
        `fallback`: with a client that does not know `Action.Execute`.
        """
        action, inputs = self._button(message, name, subject)
        data = filled(inputs, values or {})
        if action["type"] == "Action.Execute" and not fallback:
            return await self._acts(message, action, {**action["data"], **data}, "manual")
        action = action["fallback"] if action["type"] == "Action.Execute" else action
        assert action["type"] == "Action.Submit", f"{name!r} is no button to submit: {action['type']}"
        assert "msteams" not in action["data"], f"{name!r} opens a dialog: use opens()"
        place = self._world.conversation(message["conversation"])
        value = {**action["data"], **data}
        return await self.transport.activity(
            activities.submitted(self._who, place, message["conversation"], value, message["id"])
        )

    async def opens(self, message: Json, name: str, *, subject: str = "") -> Answer:
        """Press a button that opens a dialog (`task/fetch`)."""
        action, inputs = self._button(message, name, subject)
        data = action["data"]
        assert data.get("msteams", {}).get("type") == "task/fetch", f"{name!r} opens no dialog"
        value = activities.dialog_value({**data, **filled(inputs, {})})
        answer = await self.invokes("task/fetch", value, message["conversation"], message["id"])
        self._world.product_mistakes += dialog_mistakes(answer.json) if answer.status == 200 else []
        return answer

    async def submits(
        self, dialog: Answer, values: Mapping[str, Any] | None = None, *, name: str = "", subject: str = ""
    ) -> Answer:
        """Fill in a dialog (the answer to `opens` or `submits`) and press a button: `name`, or its only one."""
        if not name:
            names = {a["data"]["countersign"] for a in dialog.card.get("actions", [])} - {"close"}
            assert len(names) == 1, f"say which button: {sorted(names)}"
            [name] = names
        action, inputs = find_action(dialog.card, name, subject)
        assert action["type"] == "Action.Submit", "a dialog is submitted by Action.Submit"
        value = activities.dialog_value({**action["data"], **filled(inputs, values or {})})
        before = dialog.activity
        answer = await self.invokes("task/submit", value, before["conversation"]["id"], before.get("replyToId", ""))
        self._world.product_mistakes += dialog_mistakes(answer.json) if answer.status == 200 else []
        return answer

    # ------------------------------------------------------------------------------------------- elsewhere

    async def feeds_back(self, message: Json, reaction: Literal["like", "dislike"], text: str = "") -> Answer:
        """Use the feedback buttons under an answer."""
        assert "feedbackLoop" in message["channelData"], "the message has no feedback buttons"
        value = activities.feedback_value(reaction, text)
        return await self.invokes("message/submitAction", value, message["conversation"], message["id"])

    async def verifies(self, state: str, conversation: str = "") -> Answer:
        """Come back from a sign-in's page (`signin/verifyState`)."""
        return await self.invokes("signin/verifyState", {"state": state}, conversation or self.chat)

    async def invokes(self, name: str, value: Any, conversation: str = "", reply_to: str = "") -> Answer:
        """Any invoke."""
        conversation = conversation or self.chat
        place = self._world.conversation(conversation)
        return await self.transport.activity(activities.invoke(self._who, place, conversation, name, value, reply_to))

    async def sends(self, kind: str, conversation: str = "", **facts: Any) -> Answer:
        """Any activity: `typing`, `event`, `contactRelationUpdate`, or one that Teams has yet to invent."""
        conversation = conversation or self.chat
        place = self._world.conversation(conversation)
        return await self.transport.activity(activities.activity(self._who, place, conversation, kind, **facts))

    async def installs(self, conversation: str = "") -> tuple[Answer, ...]:
        """Bring the bot to a conversation (default: their own chat): Teams tells it twice."""
        return await self._tells(arriving(self._who, conversation or self.chat))

    async def upgrades(self, conversation: str = "") -> Answer:
        """Take a newer version of the app."""
        return await self.transport.activity(upgrading(self._who, conversation or self.chat))

    async def uninstalls(self, conversation: str = "") -> tuple[Answer, ...]:
        """Remove the bot from a conversation (default: their own chat)."""
        return await self._tells(departing(self._who, conversation or self.chat))

    async def joins(self, conversation: str) -> Answer:
        """Become a member of a group chat or a team."""
        return await self.transport.activity(joining(self._who, conversation))

    async def leaves(self, conversation: str) -> Answer:
        """Be a member no longer."""
        return await self.transport.activity(leaving(self._who, conversation))

    # ------------------------------------------------------------------------------------------- parts

    def _entered(self, conversation: str) -> Conversation:
        place = self._world.conversation(conversation)
        assert self.user in place.members, f"{self.user} is not in {conversation}"
        return place

    def _seen(self, message_id: str) -> tuple[Conversation, Message]:
        message = self._world.message(message_id)
        assert message, "there is no such message"
        assert message.only_for in ("", self.address), "only somebody else sees that message"
        return self._world.conversation(message.conversation), message

    def _own(self, message_id: str) -> tuple[Conversation, Message]:
        place, message = self._seen(message_id)
        assert message.author == self.user, "not a message of theirs"
        return place, message

    def _hears(self, place: Conversation, message: Message) -> bool:
        """Whether Teams tells the bot of a message."""
        if not self._world.has_bot(place):
            return False
        return place.kind == "personal" or self._teams.rsc or MENTION in message.content["text"]

    async def _tells(self, told: Sequence[Json]) -> tuple[Answer, ...]:
        return tuple([await self.transport.activity(one) for one in told])

    async def _told(self, place: Conversation, message: Message, sent: Json) -> Answer:
        if not self._hears(place, message):
            return Answer(status=0, activity=sent)
        return await self.transport.activity(sent)

    def _button(self, message: Json, name: str, subject: str) -> tuple[Json, list[Json]]:
        """In the message as it was read, else as this person sees it."""
        self._seen(message["id"])
        try:
            return find_action(card_in(message), name, subject)
        except AssertionError:
            return find_action(card_in(self.sees(message)), name, subject)

    async def _acts(self, message: Json, action: Json, data: Json, trigger: str) -> Answer:
        """`adaptiveCard/action`; a card that is answered is what this person sees from now on."""
        value = activities.card_action(action, data or action.get("data", {}), trigger)
        answer = await self.invokes("adaptiveCard/action", value, message["conversation"], message["id"])
        if answer.status == 200:
            self._world.product_mistakes += action_mistakes(answer.json)
            _, kept = self._seen(message["id"])
            if isinstance(answer.json, dict) and answer.json.get("type") == CARD:
                kept.views[self.user] = answer.json["value"]
        return answer


def _said(answer: Answer, message: Message) -> Said:
    return Said(
        status=answer.status,
        json=answer.json,
        text=answer.text,
        headers=answer.headers,
        activity=answer.activity,
        id=message.id,
        conversation=message.conversation,
    )
