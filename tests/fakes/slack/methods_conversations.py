"""conversations.* and users.info: what an app may read."""

from __future__ import annotations

import base64
import copy
from collections.abc import Sequence
from typing import Any

from tests.fakes.slack.calls import Caller, required, yes
from tests.fakes.slack.places import readable, visible
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Channel, Json, World

MOST = 999
"""Items a page (Slack: 999 messages)."""


def history(world: World, caller: Caller, arguments: Json) -> Json:
    """conversations.history: newest first, without replies."""
    channel = readable(world, caller, required(arguments, "channel", "channel_not_found"))
    found = [m for m in channel.messages.values() if _top_level(m) and _within(m["ts"], arguments)]
    page, rest = _page(found[::-1], arguments, 100)
    return {"messages": [as_read(channel, m, arguments) for m in page], "pin_count": 0, **rest}


def replies(world: World, caller: Caller, arguments: Json) -> Json:
    """conversations.replies: oldest first; the parent begins every page, whatever `oldest` says."""
    channel = readable(world, caller, required(arguments, "channel", "channel_not_found"))
    ts = required(arguments, "ts", "thread_not_found")
    asked = channel.messages.get(ts)
    thread_ts = (asked or {}).get("thread_ts") or ts
    parent = channel.messages.get(thread_ts)
    answers = [m for m in channel.messages.values() if m.get("thread_ts") == thread_ts and m["ts"] != thread_ts]
    if parent is None and not answers:
        raise Refused("thread_not_found")
    page, rest = _page([m for m in answers if _within(m["ts"], arguments)], arguments, 1000)
    shown = [m for m in (parent, *page) if m is not None]
    return {"messages": [as_read(channel, m, arguments) for m in shown], **rest}


def info(world: World, caller: Caller, arguments: Json) -> Json:
    """conversations.info."""
    return {
        "channel": channel_shown(visible(world, caller, required(arguments, "channel", "channel_not_found")), caller)
    }


def members(world: World, caller: Caller, arguments: Json) -> Json:
    """conversations.members."""
    channel = visible(world, caller, required(arguments, "channel", "channel_not_found"))
    page, rest = _page(sorted(channel.members), arguments, 100)
    rest.pop("has_more")
    return {"members": page, **rest}


def open_direct(world: World, caller: Caller, arguments: Json) -> Json:
    """conversations.open, with `users` or `channel`."""
    if arguments.get("channel"):
        return {"channel": {"id": visible(world, caller, arguments["channel"]).id}}
    users = required(arguments, "users", "users_list_not_supplied").split(",")
    if len(users) > 1:
        raise Refused("method_not_supported_for_channel_type")
    return {"channel": {"id": world.direct(caller.team, users[0]).id}}


def user_info(world: World, caller: Caller, arguments: Json) -> Json:
    """users.info."""
    user = copy.deepcopy(world.user(caller.team, required(arguments, "user", "user_not_found")))
    if not yes(arguments, "include_locale"):
        user.pop("locale", None)
    if "users:read.email" not in caller.workspace.scopes.split(","):
        user["profile"].pop("email", None)
    return {"user": user}


def file_info(world: World, caller: Caller, arguments: Json) -> Json:
    """files.info."""
    _needs(caller, "files:read")
    file = world.files.get(required(arguments, "file", "file_not_found"))
    if file is None:
        raise Refused("file_not_found")
    return {"file": copy.deepcopy(file[1])}


def user_group_members(world: World, caller: Caller, arguments: Json) -> Json:
    """usergroups.users.list."""
    _needs(caller, "usergroups:read")
    group = required(arguments, "usergroup", "no_such_subteam")
    if (caller.team, group) not in world.user_groups:
        raise Refused("no_such_subteam")
    return {"users": sorted(world.user_groups[caller.team, group])}


# ------------------------------------------------------------------------------------------- parts


def _needs(caller: Caller, scope: str) -> None:
    if scope not in caller.workspace.scopes.split(","):
        raise Refused("missing_scope")


def as_read(channel: Channel, message: Json, arguments: Json) -> Json:
    """A message as reading shows it: metadata only to those who ask, a parent with what is known of its thread."""
    shown = copy.deepcopy(message)
    if not yes(arguments, "include_all_metadata"):
        shown.pop("metadata", None)
    answers = [m for m in channel.messages.values() if m.get("thread_ts") == message["ts"] != m["ts"]]
    if answers:
        users = list(dict.fromkeys(m["user"] for m in answers if "user" in m))
        shown |= {
            "thread_ts": message["ts"],
            "reply_count": len(answers),
            "reply_users": users,
            "reply_users_count": len(users),
            "latest_reply": answers[-1]["ts"],
        }
    elif message.get("thread_ts", message["ts"]) != message["ts"] and message["thread_ts"] in channel.messages:
        shown["parent_user_id"] = channel.messages[message["thread_ts"]].get("user", "")
    return shown


def channel_shown(channel: Channel, caller: Caller) -> Json:
    """A channel as conversations.info shows it."""
    return {
        "id": channel.id,
        "name": channel.name,
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.kind != "channel",
        "is_archived": channel.is_archived,
        "is_ext_shared": channel.is_ext_shared,
        "is_member": caller.workspace.bot_user in channel.members,
        "context_team_id": channel.team,
        **({"user": next(iter(channel.members - {caller.workspace.bot_user}))} if channel.kind == "im" else {}),
    }


def _top_level(message: Json) -> bool:
    return message.get("thread_ts", message["ts"]) == message["ts"] or message.get("subtype") == "thread_broadcast"


def _within(ts: str, arguments: Json) -> bool:
    oldest, latest = float(arguments.get("oldest") or 0), float(arguments.get("latest") or "inf")
    if yes(arguments, "inclusive"):
        return oldest <= float(ts) <= latest
    return oldest < float(ts) < latest


def _page(items: Sequence[Any], arguments: Json, usual: int) -> tuple[list[Any], Json]:
    """One page, and what says how to get the next."""
    limit = int(arguments.get("limit") or usual)
    if not 1 <= limit <= max(usual, MOST):
        raise Refused("invalid_limit")
    start = 0
    if arguments.get("cursor"):
        try:
            start = int(base64.b64decode(arguments["cursor"]).decode().removeprefix("next:"))
        except ValueError:
            raise Refused("invalid_cursor") from None
    more = start + limit < len(items)
    cursor = base64.b64encode(f"next:{start + limit}".encode()).decode() if more else ""
    return list(items[start : start + limit]), {"has_more": more, "response_metadata": {"next_cursor": cursor}}
