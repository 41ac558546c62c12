"""The list of what is remembered, as every chat platform shows it to one person: what it holds, and its words."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.shared import actions
from bot.memory import Memories, PersonMemories
from graph.memory import MemoryItem
from translations import gettext as _

LISTED = 15
"""Memories of a person, and of a channel, that are listed; the newest."""


@dataclass(frozen=True, slots=True)
class MemoryList:
    """What is remembered of somebody, and of the channel in which they ask."""

    person: PersonMemories
    of_channel: tuple[MemoryItem, ...] = ()
    is_on: bool = True
    """Whether anything is remembered, of anybody."""


async def memory_list(memories: Memories, person_id: str, channel: str) -> MemoryList:
    """What somebody is shown. Raises what the store raises.

    Args:
        channel: in which they are; empty: in a direct chat.
    """
    own = await memories.of_person(person_id)
    return MemoryList(own, await memories.of_channel(channel) if memories.is_on else (), memories.is_on)


def about_memories(listed: MemoryList) -> str:
    """What stands above the list."""
    if not listed.is_on:
        return _("I don’t remember anything here: memory is turned off.")
    if not listed.person.is_remembered:
        return _("I don’t remember anything about you, as you wished.")
    if not listed.person.items:
        return _("Nothing yet. Say “remember that …”, “call me …” or “I prefer …” in a conversation.")
    return _("You said this. I know it in all your conversations.")


def own_memories_title() -> str:
    """The heading of what is remembered of the person."""
    return _("What I remember about you")


def channel_memories_title() -> str:
    """The heading of what is remembered of the channel."""
    return _("What I remember about this channel")


def forget_label() -> str:
    """The button beside each."""
    return _("Forget")


def buttons_below(listed: MemoryList) -> list[tuple[str, str]]:
    """Label and action of the buttons below the list."""
    if not listed.is_on:
        return []
    if not listed.person.is_remembered:
        return [(_("Remember me"), actions.REMEMBER_AGAIN)]
    all_ = [(_("Forget all"), actions.FORGET_ALL)] if listed.person.items else []
    return [*all_, (_("Don’t remember me"), actions.REMEMBER_NOTHING)]
