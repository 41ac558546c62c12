"""What Teams sends to a bot, in its real shapes. Pure: who, where and what go in, JSON comes out.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/conversations/conversation-messages and
https://learn.microsoft.com/microsoftteams/platform/bots/how-to/conversations/subscribe-to-conversation-events
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.fakes.teams.world import BOT, BOT_NAME, GROUP_OF_TEAM, Conversation, Json, Message, User, World

MENTION = re.compile(r"<at>(.+?)</at>")
FILE = "application/vnd.microsoft.teams.file.download.info"


@dataclass(frozen=True)
class Someone:
    """A person who does something."""

    world: World
    user: str

    @property
    def facts(self) -> User:
        """Who they are."""
        return self.world.users[self.user]

    @property
    def account(self) -> Json:
        """As activities name them."""
        facts = self.facts
        known = {} if facts.role == "anonymous" else {"aadObjectId": facts.user}
        return {"id": facts.address, "name": facts.name, **known}


def activity(who: Someone, place: Conversation, conversation: str, kind: str, **facts: Any) -> Json:
    """What all activities have in common; `facts` go over it. `conversation`: with the thread, in a channel."""
    now = datetime.fromtimestamp(who.world.clock.now(), UTC)
    group = {} if place.kind == "personal" else {"isGroup": True}
    made = {
        "type": kind,
        "id": who.world.next_event_id(),
        "timestamp": _moment(now).replace("+00:00", "Z"),
        "localTimestamp": _moment(now.astimezone(ZoneInfo(who.facts.time_zone))),
        "localTimezone": who.facts.time_zone,
        "locale": who.facts.locale,
        "serviceUrl": who.world.service_url,
        "channelId": "msteams",
        "from": who.account,
        "conversation": {**group, "conversationType": place.kind, "tenantId": place.tenant, "id": conversation},
        "recipient": {"id": BOT, "name": BOT_NAME},
        "entities": [client_info(who)],
        "channelData": {**channel_data(place), **facts.pop("channelData", {})},
    }
    return {**made, **facts}


def channel_data(place: Conversation) -> Json:
    """What Teams adds to every activity: the tenant and, in channels, the team."""
    if place.kind != "channel":
        return {"tenant": {"id": place.tenant}}
    return {
        "teamsChannelId": place.id,
        "teamsTeamId": place.team,
        "channel": {"id": place.id},
        "team": {"id": place.team, "aadGroupId": GROUP_OF_TEAM},
        "tenant": {"id": place.tenant},
    }


def client_info(who: Someone) -> Json:
    """What Teams says of the person's client."""
    locale = who.facts.locale
    return {
        "type": "clientInfo",
        "locale": locale,
        "country": locale.partition("-")[2] or "US",
        "platform": "Web",
        "timezone": who.facts.time_zone,
    }


# ------------------------------------------------------------------------------------------- messages


def message_content(
    who: Someone,
    text: str,
    *,
    markup: str | None = None,
    quoted: Message | None = None,
    files: Sequence[Mapping[str, Any]] = (),
) -> Json:
    """Text, attachments and entities of a message. `<at>Name</at>` in the text mentions who is called so.

    `markup`: the HTML, where it says more than the text; `quoted`: the message that is replied to with a quote.
    """
    mentioned = [_mention(who.world, name) for name in dict.fromkeys(MENTION.findall(text))]
    content = markup if markup is not None else _as_html(text)
    if quoted is not None:
        text, content = f"{quoted.content.get('text', '')}\r\n\r\n{text}", f"{_quote(who.world, quoted)}{content}"
    page = {"contentType": "text/html", "content": f"<div>{content}</div>"}
    return {
        "textFormat": "plain",
        "text": text,
        "attachments": [*(_file(who.world, file) for file in files), page],
        "entities": [*mentioned, client_info(who)],
    }


def message_activity(who: Someone, place: Conversation, message: Message, **facts: Any) -> Json:
    """`message`, or `messageUpdate` of one."""
    kind = facts.pop("type", "message")
    reply = {}
    if place.kind == "channel" and not message.conversation.endswith(f";messageid={message.id}"):
        reply = {"replyToId": message.conversation.partition(";messageid=")[2]}
    return activity(who, place, message.conversation, kind, **{"id": message.id, **reply, **message.content, **facts})


def deleted_activity(who: Someone, place: Conversation, message: Message) -> Json:
    """`messageDelete`: without what it said."""
    event = {"eventType": "softDeleteMessage"}
    return activity(who, place, message.conversation, "messageDelete", id=message.id, channelData=event)


def _as_html(text: str) -> str:
    number = iter(range(len(text)))

    def span(found: re.Match[str]) -> str:
        name = html.escape(html.unescape(found[1]))
        kind = "http://schema.skype.com/Mention"
        return f'<span itemtype="{kind}" itemscope="" itemid="{next(number)}">{name}</span>'

    escaped = html.escape(text, quote=False)
    marked = re.sub(r"&lt;at&gt;(.+?)&lt;/at&gt;", span, escaped)
    return f"<p>{marked.replace(chr(10), '<br>')}</p>"


def _quote(world: World, quoted: Message) -> str:
    name = world.users[quoted.author].name if quoted.author else BOT_NAME
    person = f"8:orgid:{quoted.author}" if quoted.author else BOT
    preview = html.escape(str(quoted.content.get("text", "")), quote=False)
    return (
        f'<blockquote itemscope="" itemtype="http://schema.skype.com/Reply" itemid="{quoted.id}">'
        f'<strong itemprop="mri" itemid="{person}">{html.escape(name)}</strong>'
        f'<span itemprop="time" itemid="{quoted.id}"></span>'
        f'<p itemprop="preview">{preview}</p></blockquote>'
    )


def _mention(world: World, name: str) -> Json:
    if name == BOT_NAME:
        mentioned = {"id": BOT, "name": BOT_NAME}
    else:
        user = next(user for user in world.users.values() if user.name == name)
        mentioned = {"id": user.address, "name": user.name}
    return {"type": "mention", "mentioned": mentioned, "text": f"<at>{name}</at>"}


def _file(world: World, file: Mapping[str, Any]) -> Json:
    name = str(file.get("name", "notes.txt"))
    unique = world.next_event_id().removeprefix("f:")
    address = f"https://acme-my.sharepoint.com/personal/ana/Documents/{name}"
    content = {"downloadUrl": f"{address}?tempauth=secret", "uniqueId": unique, "fileType": name.rpartition(".")[2]}
    return {"contentType": FILE, "contentUrl": address, "name": name, "content": content, **file}


# ------------------------------------------------------------------------------------------- clicks and forms


def invoke(who: Someone, place: Conversation, conversation: str, name: str, value: Any, reply_to: str = "") -> Json:
    """An invoke, which is answered at once."""
    facts: Json = {"name": name, "value": value, "channelData": {"source": {"name": "message"}}}
    if reply_to:
        facts["replyToId"] = reply_to
        facts["channelData"]["legacy"] = {"replyToId": f"1:{reply_to}"}
    return activity(who, place, conversation, "invoke", **facts)


def card_action(action: Json, data: Json, trigger: str) -> Json:
    """`value` of `adaptiveCard/action`. `trigger`: `manual`, or `automatic` for a refresh."""
    kept = {name: action[name] for name in ("type", "title", "id", "verb") if name in action}
    return {"action": {**kept, "data": data}, "trigger": trigger}


def dialog_value(data: Json) -> Json:
    """`value` of `task/fetch` and `task/submit`."""
    return {"data": data, "context": {"theme": "default"}}


def feedback_value(reaction: str, text: str) -> Json:
    """`value` of `message/submitAction`, for the buttons of a feedback loop: the text is JSON in JSON."""
    feedback = json.dumps({"feedbackText": text})
    return {"actionName": "feedback", "actionValue": {"reaction": reaction, "feedback": feedback}}


def submitted(who: Someone, place: Conversation, conversation: str, value: Json, reply_to: str) -> Json:
    """`Action.Submit`: a message without text that carries the data."""
    told = {"source": {"name": "message"}, "legacy": {"replyToId": f"1:{reply_to}"}}
    return activity(who, place, conversation, "message", value=value, replyToId=reply_to, channelData=told)


# ------------------------------------------------------------------------------------------- installations, reactions


def reaction(who: Someone, place: Conversation, message: Message, kind: str, change: str) -> Json:
    """`messageReaction`. `change`: `reactionsAdded` or `reactionsRemoved`."""
    facts = {change: [{"type": kind}], "replyToId": message.id, "legacy": {"replyToId": f"1:{message.id}"}}
    return activity(who, place, message.conversation, "messageReaction", **facts)


def installation(who: Someone, place: Conversation, action: str) -> Json:
    """`installationUpdate`: `add`, `remove`, `add-upgrade`, `remove-upgrade`."""
    told: Json = {"source": {"name": "message"}}
    if place.kind == "channel":
        told["settings"] = {"selectedChannel": {"id": place.id}}
    return activity(who, place, place.id, "installationUpdate", action=action, channelData=told)


def membership(who: Someone, place: Conversation, change: str, members: Sequence[str]) -> Json:
    """`conversationUpdate`. `change`: `membersAdded` or `membersRemoved`; `members`: addresses (the bot's is `28:…`).

    In teams the conversation is the team's, except when the bot itself is added: then it is the chosen channel.
    """
    facts: Json = {change: [{"id": member} for member in members]}
    conversation = place.id
    if place.kind == "channel":
        event = {"membersAdded": "teamMemberAdded", "membersRemoved": "teamMemberRemoved"}[change]
        facts["channelData"] = {"eventType": event}
        conversation = place.id if change == "membersAdded" and BOT in members else place.team
    made = activity(who, place, conversation, "conversationUpdate", **facts)
    del made["entities"], made["locale"], made["localTimezone"]
    return made


def _moment(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds")
