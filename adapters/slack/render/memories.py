"""`/countersign memory`: what is remembered, for the person who asks alone."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.shared import wording
from adapters.shared.actions import FORGET, FORGET_OF_CHANNEL
from adapters.shared.memories import (
    LISTED,
    MemoryList,
    about_memories,
    buttons_below,
    channel_memories_title,
    forget_label,
    own_memories_title,
)
from adapters.shared.wording import line
from adapters.slack.render.blocks import (
    Block,
    SlackMessage,
    button,
    button_row,
    context,
    header,
    piece,
    plain,
    section,
    sentence,
)
from graph.memory import LONGEST_MEMORY, MemoryItem
from translations import gettext as _


def memory_piece(listed: MemoryList) -> SlackMessage:
    """The list, with a button beside each."""
    about = about_memories(listed)
    blocks = [header(own_memories_title()), sentence(about), *_items(listed.person.items, FORGET)]
    if listed.of_channel:
        blocks += [header(channel_memories_title()), *_items(listed.of_channel, FORGET_OF_CHANNEL)]
    if buttons := [button(label, action, action) for label, action in buttons_below(listed)]:
        blocks.append(button_row(*buttons))
    return piece(blocks, about)


def _items(items: Sequence[MemoryItem], action: str) -> list[Block]:
    blocks: list[Block] = []
    for item in items[:LISTED]:
        text = line(item.text, LONGEST_MEMORY)
        told = _("{name}: {text}").format(name=line(item.by, wording.LONGEST_NAME), text=text) if item.by else text
        blocks.append({**section(plain(told)), "accessory": button(forget_label(), action, item.memory_id)})
    if (more := len(items) - LISTED) > 0:
        blocks.append(context(plain(wording.more_in_list(more))))
    return blocks
