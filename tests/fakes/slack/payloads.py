"""What Slack sends to an app, in its real shapes. Pure: who, where and what go in, JSON comes out.

https://docs.slack.dev/reference/interaction-payloads and https://docs.slack.dev/reference/events
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.slack.inputs import initial_state
from tests.fakes.slack.world import APP_ID, Channel, Json, World

VERIFICATION = "verification-token"
CHANNEL_NAMES = {"im": "directmessage", "group": "privategroup"}


@dataclass(frozen=True)
class Someone:
    """A person as a workspace sees them."""

    world: World
    team: str
    user: str

    @property
    def facts(self) -> Json:
        """What users.info says. Raises `Refused`: nobody has added them."""
        return self.world.user(self.team, self.user)

    @property
    def home_team(self) -> str:
        """Their own workspace: another one than `team` for people from outside."""
        return str(self.facts["team_id"])

    @property
    def is_foreign(self) -> bool:
        """Whether they come through Slack Connect."""
        return self.home_team != self.team or bool(self.facts.get("is_stranger"))


def envelope(who: Someone, event: Json, *, ext_shared: bool = False) -> Json:
    """An event as the Events API wraps it, with an id of its own."""
    world, workspace = who.world, who.world.workspaces[who.team]
    return {
        "token": VERIFICATION,
        "team_id": who.team,
        "context_team_id": who.team,
        "context_enterprise_id": None,
        "api_app_id": APP_ID,
        "event": event,
        "type": "event_callback",
        "event_id": world.next_id("Ev"),
        "event_time": int(world.clock.now()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": who.team,
                "user_id": workspace.bot_user,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": ext_shared,
        "event_context": world.next_id("4-context"),
    }


# ------------------------------------------------------------------------------------------- messages


def written_message(who: Someone, text: str, thread_ts: str | None, files: Sequence[Mapping[str, Any]]) -> Json:
    """A new message as the workspace keeps it."""
    ts = who.world.next_ts()
    message: Json = {
        "type": "message",
        "user": who.user,
        "text": text,
        "ts": ts,
        "client_msg_id": who.world.next_id("client-"),
        "team": who.home_team,
        "blocks": [_typed(text, who.world.next_id("b"))],
    }
    if thread_ts:
        message["thread_ts"] = thread_ts
    if files:
        shared = [_file(who, file) for file in files]
        message |= {"subtype": "file_share", "files": shared, "upload": False, "display_as_bot": False}
    if who.is_foreign:
        profile = {"real_name": who.facts["real_name"], "display_name": who.facts["name"], "team": who.home_team}
        message |= {"user_team": who.home_team, "source_team": who.home_team, "user_profile": profile}
    return message


def message_event(channel: Channel, message: Json) -> Json:
    """`message` for a new one."""
    parent = channel.messages.get(message.get("thread_ts", ""))
    reply = {"parent_user_id": parent.get("user", "")} if parent else {}
    return {**message, **reply, "channel": channel.id, "event_ts": message["ts"], "channel_type": channel.kind}


def mention_event(channel: Channel, message: Json) -> Json:
    """`app_mention` of the same message: without subtype and channel_type."""
    kept = {name: value for name, value in message.items() if name not in {"type", "subtype"}}
    return {"type": "app_mention", **kept, "channel": channel.id, "event_ts": message["ts"]}


def changed_event(who: Someone, channel: Channel, message: Json, previous: Json) -> Json:
    """`message_changed`: an edit (the message then has `edited`), an unfurl, or a tombstone."""
    ts = who.world.next_ts()
    return {
        "type": "message",
        "subtype": "message_changed",
        "message": {**message, "source_team": who.home_team, "user_team": who.home_team},
        "previous_message": previous,
        "channel": channel.id,
        "hidden": True,
        "ts": ts,
        "event_ts": ts,
        "channel_type": channel.kind,
    }


def deleted_event(who: Someone, channel: Channel, previous: Json) -> Json:
    """`message_deleted`."""
    ts = who.world.next_ts()
    return {
        "type": "message",
        "subtype": "message_deleted",
        "previous_message": previous,
        "channel": channel.id,
        "hidden": True,
        "deleted_ts": previous["ts"],
        "ts": ts,
        "event_ts": ts,
        "channel_type": channel.kind,
    }


def _typed(text: str, block_id: str) -> Json:
    """What somebody typed, as Slack's own client sends it beside the text."""
    words = [
        {"type": "user", "user_id": part[2:-1]} if re.fullmatch(r"<@\w+>", part) else {"type": "text", "text": part}
        for part in re.split(r"(<@\w+>)", text)
        if part
    ]
    section = {"type": "rich_text_section", "elements": words}
    return {"type": "rich_text", "block_id": block_id, "elements": [section]}


def _file(who: Someone, file: Mapping[str, Any]) -> Json:
    """A file with what Slack says of it; `file` gives `name`, `size` and whatever else matters."""
    name = str(file.get("name", "file.txt"))
    file_id = who.world.next_id("F")
    return {
        "id": file_id,
        "created": int(who.world.clock.now()),
        "name": name,
        "title": name,
        "mimetype": "text/plain",
        "filetype": name.rpartition(".")[2],
        "user": who.user,
        "size": 12,
        "mode": "hosted",
        "is_external": False,
        "is_public": True,
        "url_private": f"https://files.slack.com/files-pri/{who.team}-{file_id}/{name}",
        "permalink": f"https://acme.slack.com/files/{who.user}/{file_id}/{name}",
        **file,
    }


# ------------------------------------------------------------------------------------------- interactivity


def interaction(who: Someone, kind: str, **facts: Any) -> Json:
    """What all interactions have in common."""
    workspace = who.world.workspaces[who.team]
    return {
        "type": kind,
        "user": {
            "id": who.user,
            "username": who.facts["name"],
            "name": who.facts["name"],
            "team_id": who.home_team,
        },
        "api_app_id": APP_ID,
        "token": VERIFICATION,
        "team": {"id": who.team, "domain": workspace.domain},
        "enterprise": None,
        "is_enterprise_install": False,
        **facts,
    }


def channel_of(channel: Channel) -> Json:
    """A channel as interactions name it."""
    return {"id": channel.id, "name": CHANNEL_NAMES.get(channel.kind, channel.name)}


def in_message(channel: Channel, message: Json, *, is_ephemeral: bool) -> Json:
    """Where something was clicked: a message, which is told in full unless only one person sees it."""
    thread_ts = message.get("thread_ts")
    return {
        "container": {
            "type": "message",
            "message_ts": message["ts"],
            "channel_id": channel.id,
            "is_ephemeral": is_ephemeral,
            **({"thread_ts": thread_ts} if thread_ts else {}),
        },
        "channel": channel_of(channel),
        "state": {"values": {}},
        **({} if is_ephemeral else {"message": message}),
    }


def in_view(view: Json) -> Json:
    """Where something was clicked: a modal or the home tab."""
    inputs = [block for block in view["blocks"] if block["type"] == "input"]
    values = {b["block_id"]: {b["element"]["action_id"]: initial_state(b["element"])} for b in inputs}
    return {
        "container": {"type": "view", "view_id": view["id"]},
        "view": {**view, "state": {"values": values}},
    }


def slash_command(who: Someone, channel: Channel, command: str, text: str, response_url: str) -> dict[str, str]:
    """A slash command: the fields of a form."""
    workspace = who.world.workspaces[who.team]
    return {
        "token": VERIFICATION,
        "team_id": who.team,
        "team_domain": workspace.domain,
        "channel_id": channel.id,
        "channel_name": CHANNEL_NAMES.get(channel.kind, channel.name),
        "user_id": who.user,
        "user_name": who.facts["name"],
        "command": command,
        "text": text,
        "api_app_id": APP_ID,
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": who.world.issue_trigger(who.team, who.user),
    }
