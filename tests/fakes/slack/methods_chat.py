"""chat.*: posting, updating, deleting, ephemerals, links."""

from __future__ import annotations

from typing import Any

from tests.fakes.slack.calls import Caller, required
from tests.fakes.slack.content import message_content
from tests.fakes.slack.places import readable, spoken_in
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import APP_ID, Channel, Json, World


def post_message(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.postMessage."""
    channel = spoken_in(world, caller, required(arguments, "channel", "channel_not_found"))
    content = _something(world, "chat.postMessage", arguments)
    _no_surprises(world, arguments)
    message = stored_message(world, caller, channel, arguments.get("thread_ts"), content)
    return {"channel": channel.id, "ts": message["ts"], "message": shown(message)}


def update(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.update. What is not given stays."""
    channel = spoken_in(world, caller, required(arguments, "channel", "channel_not_found"))
    message = own_message(caller, channel, required(arguments, "ts", "message_not_found"), "cant_update_message")
    if message.get("streaming_state") == "in_progress":
        raise Refused("streaming_state_conflict")
    content = _something(world, "chat.update", arguments)
    message.update(content)
    if not message.get("metadata"):
        message.pop("metadata", None)
    message["edited"] = {"user": caller.workspace.bot_user, "ts": world.next_ts()}
    return {"channel": channel.id, "ts": message["ts"], "text": message["text"], "message": shown(message)}


def delete(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.delete."""
    channel = spoken_in(world, caller, required(arguments, "channel", "channel_not_found"))
    message = own_message(caller, channel, required(arguments, "ts", "message_not_found"), "cant_delete_message")
    remove(channel, message)
    return {"channel": channel.id, "ts": message["ts"]}


def post_ephemeral(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.postEphemeral: only to somebody who is in the channel."""
    channel = spoken_in(world, caller, required(arguments, "channel", "channel_not_found"))
    user = required(arguments, "user", "user_not_in_channel")
    if user not in channel.members:
        raise Refused("user_not_in_channel")
    content = _something(world, "chat.postEphemeral", arguments)
    ts = world.next_ts()
    thread = {"thread_ts": arguments["thread_ts"]} if arguments.get("thread_ts") else {}
    world.ephemerals.append({"user": user, "channel": channel.id, "ts": ts, "text": "", **thread, **content})
    return {"message_ts": ts}


def get_permalink(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.getPermalink."""
    channel = readable(world, caller, required(arguments, "channel", "channel_not_found"))
    ts = required(arguments, "message_ts", "message_not_found")
    if ts not in channel.messages:
        raise Refused("message_not_found")
    link = f"https://{caller.workspace.domain}.slack.com/archives/{channel.id}/p{ts.replace('.', '')}"
    thread_ts = channel.messages[ts].get("thread_ts")
    if thread_ts and thread_ts != ts:
        link += f"?thread_ts={thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


# ------------------------------------------------------------------------------------------- parts


def stored_message(world: World, caller: Caller, channel: Channel, thread_ts: Any, content: Json) -> Json:
    """A new message of the bot."""
    message: Json = {
        "type": "message",
        "ts": world.next_ts(),
        "user": caller.workspace.bot_user,
        "bot_id": caller.workspace.bot_id,
        "app_id": APP_ID,
        "team": caller.team,
        "text": "",
        **({"thread_ts": thread_ts} if thread_ts else {}),
        **{name: value for name, value in content.items() if value != {}},
    }
    channel.messages[message["ts"]] = message
    return message


def own_message(caller: Caller, channel: Channel, ts: str, foreign: str) -> Json:
    """A message of the caller. Raises `Refused`, with `foreign` for somebody else's."""
    message = channel.messages.get(ts)
    if message is None or message.get("subtype") == "tombstone":
        raise Refused("message_not_found")
    if message.get("bot_id") != caller.workspace.bot_id:
        raise Refused(foreign)
    return message


def remove(channel: Channel, message: Json) -> bool:
    """Take it away; what has replies leaves a tombstone. Returns whether it did."""
    ts = message["ts"]
    if not any(m.get("thread_ts") == ts and m["ts"] != ts for m in channel.messages.values()):
        del channel.messages[ts]
        return False
    tombstone = {"type": "message", "subtype": "tombstone", "user": "USLACKBOT", "hidden": True, "ts": ts}
    channel.messages[ts] = {**tombstone, "text": "This message was deleted.", "thread_ts": ts}
    return True


def shown(message: Json) -> Json:
    """A message as posting it answers: without metadata's payload nobody asked for."""
    return {name: value for name, value in message.items() if name != "metadata"}


def _something(world: World, method: str, arguments: Json) -> Json:
    """The content of a message, which may not be empty. Our product gives a fallback text to every one."""
    content = message_content(world, method, arguments)
    if not content.get("text") and not content.get("blocks"):
        raise Refused("no_text")
    if not content.get("text"):
        world.product_mistakes.append(f"{method}: no fallback text")
    return content


def _no_surprises(world: World, arguments: Json) -> None:
    for name in ("unfurl_links", "unfurl_media"):
        if str(arguments.get(name)).lower() not in {"false", "0"}:
            world.product_mistakes.append(f"chat.postMessage: {name} is not false")
    for name in ("link_names", "parse"):
        if arguments.get(name):
            world.product_mistakes.append(f"chat.postMessage: {name} lets text ping")
