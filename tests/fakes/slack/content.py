"""What a message or a view may hold: read from the arguments, checked, as it is stored."""

from __future__ import annotations

import copy
from typing import Any

from tests.fakes.slack.block_rules import (
    EVERYTHING_TOO_LONG,
    metadata_mistakes,
    mistakes,
    text_mistakes,
    view_mistakes,
)
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Json, World, with_block_ids

ADVISED_TEXT = 4_000
"""Characters (Slack cuts a notification's text far before; it advises 4,000 and refuses 40,000)."""


def message_content(world: World, method: str, arguments: Json) -> Json:
    """`text`, `blocks` and `metadata` of a message, as far as they were given. Raises `Refused`."""
    content: Json = {}
    if isinstance(arguments.get("text"), str):
        content["text"] = _text(world, method, arguments["text"])
    if "blocks" in arguments:
        content["blocks"] = stored_blocks(world, arguments["blocks"])
    if "metadata" in arguments:
        content["metadata"] = _metadata(arguments["metadata"])
    for image in ("icon_url", "icon_emoji", "username"):
        if arguments.get(image):
            world.product_mistakes.append(f"{method}: {image} needs chat:write.customize, which we do not ask for")
    if arguments.get("attachments"):
        world.product_mistakes.append(f"{method}: attachments are Slack's past")
    return content


def stored_blocks(world: World, blocks: Any) -> list[Json]:
    """Blocks of a message. Raises `Refused`."""
    if wrong := mistakes(blocks, users=world.known_users()):
        too_long = all(mistake.startswith(EVERYTHING_TOO_LONG) for mistake in wrong)
        raise Refused(EVERYTHING_TOO_LONG if too_long else "invalid_blocks", wrong)
    return with_block_ids(world, blocks)


def stored_view(world: World, view: Any, surface: str) -> Json:
    """A view as it was given. Raises `Refused`."""
    wrong = view_mistakes(view, surface=surface, users=world.known_users())
    if wrong:
        raise Refused("invalid_arguments", wrong)
    stored: Json = copy.deepcopy(view)
    return {**stored, "blocks": with_block_ids(world, stored["blocks"])}


def _text(world: World, method: str, text: str) -> str:
    if len(text) > 40_000:
        raise Refused("msg_too_long")
    if len(text) > ADVISED_TEXT:
        world.product_mistakes.append(f"{method}: text of {len(text)} characters, Slack advises {ADVISED_TEXT}")
    world.product_mistakes += [f"{method}: text: {m}" for m in text_mistakes(text, users=world.known_users())]
    return text


def _metadata(metadata: Any) -> Json:
    if metadata == {}:
        return {}
    if wrong := metadata_mistakes(metadata):
        raise Refused("invalid_metadata_format", wrong)
    return {"event_type": metadata["event_type"], "event_payload": copy.deepcopy(metadata["event_payload"])}
