"""chat.startStream, chat.appendStream, chat.stopStream: an answer while it is written."""

from __future__ import annotations

import copy
from typing import Any

from tests.fakes.slack.block_rules import text_mistakes
from tests.fakes.slack.calls import Caller, required
from tests.fakes.slack.content import message_content
from tests.fakes.slack.methods_chat import own_message, shown, stored_message
from tests.fakes.slack.places import spoken_in
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Channel, Json, World

TASK_STATUSES = {"pending", "in_progress", "complete", "error"}
LONGEST = 12_000
"""Characters of one `markdown_text` (Slack: 12,000); what they add up to is not limited."""


def start_stream(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.startStream: always a reply; in channels it has to be known to whom."""
    channel = spoken_in(world, caller, required(arguments, "channel", "channel_not_found"))
    thread_ts = required(arguments, "thread_ts")
    if channel.kind != "im":
        required(arguments, "recipient_team_id", "missing_recipient_team_id")
        required(arguments, "recipient_user_id", "missing_recipient_user_id")
    if arguments.get("task_display_mode", "timeline") not in {"timeline", "plan", "dense"}:
        raise Refused("invalid_arguments")
    written = _read(world, arguments)
    message = stored_message(world, caller, channel, thread_ts, {})
    message |= {"streaming_state": "in_progress", "text": "", "blocks": []}
    _write(message, written)
    return {"channel": channel.id, "ts": message["ts"]}


def append_stream(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.appendStream."""
    channel, message = _streaming(world, caller, arguments)
    written = _read(world, arguments)
    if not written:
        raise Refused("no_text")
    _write(message, written)
    return {"channel": channel.id, "ts": message["ts"]}


def stop_stream(world: World, caller: Caller, arguments: Json) -> Json:
    """chat.stopStream: the given blocks go below what was streamed."""
    channel, message = _streaming(world, caller, arguments)
    written = _read(world, arguments)
    content = message_content(world, "chat.stopStream", {n: v for n, v in arguments.items() if n != "text"})
    _write(message, written)
    message["blocks"] = message["blocks"] + content.get("blocks", [])
    message["streaming_state"] = "completed"
    if content.get("metadata"):
        message["metadata"] = content["metadata"]
    return {"channel": channel.id, "ts": message["ts"], "message": shown(message)}


def end_stream(world: World, ts: str) -> None:
    """Slack ends it by itself, as it does after about five minutes. Raises `KeyError`: no such message."""
    found = world.message(ts)
    if found is None:
        raise KeyError(ts)
    found[1]["streaming_state"] = "completed"


def _streaming(world: World, caller: Caller, arguments: Json) -> tuple[Channel, Json]:
    channel = spoken_in(world, caller, required(arguments, "channel", "channel_not_found"))
    message = own_message(caller, channel, required(arguments, "ts", "message_not_found"), "message_not_owned_by_app")
    if message.get("streaming_state") != "in_progress":
        raise Refused("message_not_in_streaming_state")
    return channel, message


def _read(world: World, arguments: Json) -> list[Json]:
    """The chunks of one call, checked; `markdown_text` is one of them."""
    text, chunks = arguments.get("markdown_text"), arguments.get("chunks")
    if text and chunks:
        raise Refused("cannot_provide_both_markdown_text_and_chunks")
    given = [{"type": "markdown_text", "text": text}] if text else chunks or []
    if not isinstance(given, list):
        raise Refused("invalid_chunks")
    for number, chunk in enumerate(given):
        if wrong := _chunk_mistake(chunk):
            raise Refused("invalid_chunks", [f"[ERROR] {wrong} [json-pointer:/chunks/{number}]"])
        if len(chunk.get("text", "")) > LONGEST:
            raise Refused("msg_too_long")
        if chunk["type"] == "markdown_text":
            wrong_text = text_mistakes(chunk["text"], users=world.known_users())
            world.product_mistakes += [f"stream: {mistake}" for mistake in wrong_text]
            if "://" in chunk["text"]:
                world.product_mistakes.append("stream: an address, which Slack fetches and unfurls")
    return given


def _chunk_mistake(chunk: Any) -> str:
    if not isinstance(chunk, dict):
        return "a chunk is an object"
    match chunk.get("type"):
        case "markdown_text":
            return "" if isinstance(chunk.get("text"), str) and chunk["text"] else "text is missing"
        case "task_update":
            named = isinstance(chunk.get("id"), str) and chunk["id"] and isinstance(chunk.get("title"), str)
            if not named or not chunk["title"] or len(chunk["title"]) > 256:
                return "a task has an id and a title of at most 256 characters"
            if any(not isinstance(chunk.get(name, ""), str) for name in ("details", "output")):
                return "details and output are text"
            return "" if chunk.get("status") in TASK_STATUSES else f"status is one of {sorted(TASK_STATUSES)}"
        case "plan_update":
            return "" if isinstance(chunk.get("title"), str) and chunk["title"] else "title is missing"
        case other:
            return f"unknown type {other!r}"


def _write(message: Json, chunks: list[Json]) -> None:
    """As the message shows them: text grows, a task has one card that its updates change."""
    blocks: list[Json] = message["blocks"]
    for chunk in chunks:
        if chunk["type"] == "markdown_text":
            message["text"] += chunk["text"]
            if blocks and blocks[-1]["type"] == "markdown":
                blocks[-1]["text"] += chunk["text"]
            else:
                blocks.append({"type": "markdown", "block_id": f"s{len(blocks)}", "text": chunk["text"]})
        elif chunk["type"] == "task_update":
            _write_task(blocks, chunk)


def _write_task(blocks: list[Json], chunk: Json) -> None:
    """title and status replace what was there, details and output are added to it."""
    for block in blocks:
        if block["type"] == "task_card" and block["task_id"] == chunk["id"]:
            block |= {"title": chunk["title"], "status": chunk["status"]}
            for name in ("details", "output"):
                if chunk.get(name):
                    block[name] = block.get(name, "") + chunk[name]
            return
    card = {name: value for name, value in copy.deepcopy(chunk).items() if name not in {"id", "type"}}
    blocks.append({"type": "task_card", "block_id": f"s{len(blocks)}", "task_id": chunk["id"], **card})
