"""response_url: answering a click, a command or a shortcut without a token."""

from __future__ import annotations

from typing import Any

from tests.fakes.slack.content import message_content
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Json, World

USES, LIVES = 5, 1800.0
"""Slack: 5 times within 30 minutes."""


def issue(world: World, team: str, user: str, channel: str, ts: str = "", thread_ts: str = "") -> str:
    """A new address. `ts`: of the message that was clicked; empty after a command."""
    name = world.next_id("r")
    facts = {"team": team, "user": user, "channel": channel, "ts": ts, "thread_ts": thread_ts}
    world.response_urls[name] = {**facts, "uses": 0, "issued_at": world.clock.moved}
    return f"{world.base_url}/response/{name}"


def respond(world: World, name: str, body: Any) -> None:
    """What was sent to such an address. Raises `Refused`."""
    facts = world.response_urls.get(name)
    if facts is None:
        raise Refused("expired_url")
    if facts["uses"] >= USES or world.clock.moved - facts["issued_at"] > LIVES:
        raise Refused("used_url" if facts["uses"] >= USES else "expired_url")
    if not isinstance(body, dict):
        raise Refused("invalid_payload")
    facts["uses"] += 1
    answered(world, facts, body)


def answered(world: World, facts: Json, body: Json) -> None:
    """Show an answer to the person or the channel. Raises `Refused`."""
    content = message_content(world, "response_url", body)
    if body.get("delete_original") or body.get("replace_original"):
        _change_original(world, facts, None if body.get("delete_original") else content)
        return
    if not content.get("text") and not content.get("blocks"):
        raise Refused("no_text")
    thread = {"thread_ts": facts["thread_ts"]} if facts["thread_ts"] else {}
    message = {"channel": facts["channel"], "ts": world.next_ts(), "text": "", **thread, **content}
    if body.get("response_type", "ephemeral") == "ephemeral":
        world.ephemerals.append({"user": facts["user"], **message})
        return
    bot = world.workspaces[facts["team"]]
    posted = {"type": "message", "user": bot.bot_user, "bot_id": bot.bot_id, **message}
    world.channels[posted.pop("channel")].messages[message["ts"]] = posted


def _change_original(world: World, facts: Json, content: Json | None) -> None:
    """Replace what was clicked, or take it away (`None`)."""
    found = world.message(facts["ts"])
    original = found[1] if found else None
    for ephemeral in world.ephemerals:
        if ephemeral["ts"] == facts["ts"] and ephemeral["user"] == facts["user"]:
            original = ephemeral
    if original is None:
        raise Refused("message_not_found")
    if content is not None:
        original.update(content)
    elif found:
        del found[0].messages[facts["ts"]]
    else:
        world.ephemerals.remove(original)
