"""The list that the command `memory` gives: what is remembered, for the person who asks alone. A click is answered with
the list as it is then."""

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
from adapters.teams.render.elements import (
    Element,
    action_set,
    card,
    container,
    execute,
    heading,
    rich,
    small,
    words,
)
from graph.memory import LONGEST_MEMORY, MemoryItem
from translations import gettext as _


def memory_card(listed: MemoryList) -> Element:
    """The list, with a button below each."""
    about = about_memories(listed)
    body = [heading(own_memories_title()), rich(words(about)), *_items(listed.person.items, FORGET)]
    if listed.of_channel:
        body += [heading(channel_memories_title()), *_items(listed.of_channel, FORGET_OF_CHANNEL)]
    below = [execute(label, action, action) for label, action in buttons_below(listed)]
    return card(body, below, summary=about)


def _items(items: Sequence[MemoryItem], action: str) -> list[Element]:
    made = []
    for item in items[:LISTED]:
        text = line(item.text, LONGEST_MEMORY)
        told = _("{name}: {text}").format(name=line(item.by, wording.LONGEST_NAME), text=text) if item.by else text
        forget = action_set(execute(forget_label(), action, item.memory_id))
        made.append(container("default", rich(words(told)), forget, separator=True))
    more = len(items) - LISTED
    return [*made, *([small(wording.more_in_list(more))] if more > 0 else [])]
