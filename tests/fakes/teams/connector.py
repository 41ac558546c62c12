"""The calls of the Bot Connector, on the world. No HTTP here.

https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.fakes.teams import activity_rules
from tests.fakes.teams.calls import ApiCall
from tests.fakes.teams.refused import Refused
from tests.fakes.teams.roster import member_of, members_of
from tests.fakes.teams.streams import LARGEST, Streams, stream_info
from tests.fakes.teams.world import Conversation, Json, Message, World, personal_of

Result = tuple[int, Json | None]
_TARGETED = "isTargetedActivity"
_GONE = ("ActivityNotFoundInConversation", "The message could not be found in the conversation.")


def answer(world: World, streams: Streams, call: ApiCall, parts: dict[str, str]) -> Result:
    """Do what is asked: status and body. `parts` of the path. Raises `Refused`."""
    if len(json.dumps(call.body, ensure_ascii=False).encode(errors="surrogatepass")) > LARGEST:
        if stream_info(call.body):
            raise Refused("ContentStreamNotAllowed", "Message size too large")
        raise Refused("MessageSizeTooBig", "Message size too large.")
    if call.verb == "send":
        return _send(world, streams, call, parts.get("activity", ""))
    return VERBS[call.verb](world, call, parts)


def _send(world: World, streams: Streams, call: ApiCall, reply_to: str) -> Result:
    place = world.entered(call.conversation)
    activity, conversation = call.body, call.conversation
    if place.kind == "channel" and reply_to and ";messageid=" not in conversation:
        conversation = _thread_of(place, reply_to)
    if info := stream_info(activity):
        if activity.get("type") == "message":
            _allowed(world, activity)
        return streams.take(place, conversation, activity, info)
    if activity.get("type") == "typing":
        place.typings += 1
        return 202, {"id": world.next_message_id()}
    _allowed(world, activity)
    _within_limit(world, place)
    only_for = _recipient(world, place, activity) if call.query.get(_TARGETED) == "true" else ""
    message = world.post(conversation, "", activity, only_for=only_for)
    return 201, {"id": message.id}


def _update(world: World, call: ApiCall, parts: dict[str, str]) -> Result:
    message = _own(world, call, parts["activity"])
    if message.only_for and call.body.get("recipient"):
        raise Refused("BadArgument", "Recipient should not be specified when a targeted message is updated.")
    _allowed(world, call.body)
    message.content = copy.deepcopy(call.body)
    message.edited = True
    message.views.clear()
    return 200, {"id": message.id}


def _delete(world: World, call: ApiCall, parts: dict[str, str]) -> Result:
    message = _own(world, call, parts["activity"])
    if message.streaming:
        world.product_mistakes.append("stream: deleted while it was open, which Teams takes and does not do")
        return 200, None
    message.deleted = True
    message.content = {"type": "message", "text": ""}
    return 200, None


def _open_chat(world: World, call: ApiCall, _parts: dict[str, str]) -> Result:
    members = call.body.get("members") or []
    tenant = call.body.get("tenantId") or _in(call.body, "channelData", "tenant", "id")
    if not tenant:
        raise Refused("BadSyntax", "Bad format of conversation parameters: tenantId is missing")
    if len(members) != 1 or not isinstance(members[0], dict):
        raise Refused("BadSyntax", "Incorrect conversation creation parameters: one member is needed")
    try:
        user = world.user(str(members[0].get("id", "")))
    except Refused:
        raise Refused("BadSyntax", "Bad format of user id: failed to decrypt pairwise id") from None
    if not user.has_app:
        raise Refused("ForbiddenOperationException", "Bot is not installed in user's personal scope")
    conversation = personal_of(user.user)
    if call.body.get("activity"):
        _allowed(world, call.body["activity"])
        message = world.post(conversation, "", call.body["activity"])
        return 201, {"id": conversation, "activityId": message.id, "serviceUrl": world.service_url}
    return 201, {"id": conversation}


def _open_thread(world: World, call: ApiCall, _parts: dict[str, str]) -> Result:
    channel = _in(call.body, "channelData", "channel", "id")
    activity = call.body.get("activity")
    if not isinstance(channel, str) or not isinstance(activity, dict):
        raise Refused("BadSyntax", "Incorrect conversation creation parameters: channel and activity are needed")
    place = world.entered(channel)
    if place.kind != "channel":
        raise Refused("BadSyntax", "A thread can be begun in a channel only")
    _allowed(world, activity)
    _within_limit(world, place)
    message = world.post(place.id, "", activity)
    return 201, {"id": message.conversation, "activityId": message.id, "serviceUrl": world.service_url}


def _member(world: World, call: ApiCall, parts: dict[str, str]) -> Result:
    return 200, member_of(world, world.entered(call.conversation), parts["user"])


def _members(world: World, call: ApiCall, _parts: dict[str, str]) -> Result:
    place = world.entered(call.conversation)
    return 200, members_of(world, place, call.query.get("pageSize", ""), call.query.get("continuationToken", ""))


VERBS: dict[str, Callable[[World, ApiCall, dict[str, str]], Result]] = {
    "update": _update,
    "delete": _delete,
    "open_chat": _open_chat,
    "open_thread": _open_thread,
    "member": _member,
    "members": _members,
}


# ------------------------------------------------------------------------------------------- parts


def _own(world: World, call: ApiCall, activity_id: str) -> Message:
    place = world.entered(call.conversation)
    message = place.messages.get(activity_id)
    if message is None or message.deleted:
        raise Refused(*_GONE)
    if message.author:
        raise Refused("ForbiddenOperationException", "The message is not one of the bot's.")
    if bool(message.only_for) != (call.query.get(_TARGETED) == "true"):
        raise Refused(*_GONE)
    return message


def _allowed(world: World, activity: Json) -> None:
    """Note what our product forbids, and refuse what Teams refuses."""
    refusals = _note(world, activity)
    if refusals:
        raise Refused("BadSyntax", "; ".join(refusals))


def _note(world: World, activity: Json) -> list[str]:
    refusals = activity_rules.refusals(activity)
    world.product_mistakes += [*refusals, *activity_rules.product_mistakes(activity)]
    return refusals


def _recipient(world: World, place: Conversation, activity: Json) -> str:
    if not world.targeted:
        raise Refused("BadArgument", "Targeted messages are not enabled for this tenant.")
    if place.kind == "personal":
        raise Refused("BadArgument", "Targeted messages are for group chats and channels.")
    address = _in(activity, "recipient", "id")
    if not address:
        raise Refused("BadArgument", "Recipient is missing in the targeted message.")
    user = world.user(str(address))
    if user.user not in place.members:
        raise Refused("MemberNotFoundInConversation", "Member not found in conversation.")
    return user.address


def _within_limit(world: World, place: Conversation) -> None:
    if world.limit is None:
        return
    most, seconds = world.limit
    since = (world.clock.now() - seconds) * 1000
    if sum(1 for m in place.messages.values() if not m.author and int(m.id) > since) >= most:
        raise Refused("TooManyRequests", "API calls quota exceeded")


def _thread_of(place: Conversation, message_id: str) -> str:
    found = place.messages.get(message_id)
    if found is None:
        raise Refused("ConversationNotFound", "Conversation not found.")
    return found.conversation


def _in(content: Any, *names: str) -> Any:
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content
