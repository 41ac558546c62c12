"""The threads in which the words of messages are looked through for what to remember: each belongs to a conversation,
and holds up nothing in it."""

from __future__ import annotations

from typing import Final

MEMORY: Final = "memory"
"""Kind of the deliveries in these threads."""
MEMORY_MARK = "#memory"
"""Ends the ids of these threads, and of no others. What follows "#" is within the place of the conversation: one
process looks after both, and a transaction that locks one has locked the other (`bot.records.locks`)."""


def memory_thread_id(thread_id: str) -> str:
    """Returns the id of the thread beside a conversation's."""
    return f"{thread_id}{MEMORY_MARK}"


def is_memory_thread(thread_id: str) -> bool:
    """Returns whether it is one of these."""
    return thread_id.endswith(MEMORY_MARK)


def conversation_remembered(thread_id: str) -> str:
    """Returns the conversation that such a thread belongs to."""
    return thread_id.removesuffix(MEMORY_MARK)
