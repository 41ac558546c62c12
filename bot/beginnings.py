"""What is said when a new conversation begins where people cannot see that by themselves: in chats without threads."""

from __future__ import annotations

from bot.domain import Notice
from bot.outbox import notice
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost

ASKED = "This is a new conversation. What was said here before is not part of it."
QUIET = "It has been quiet here, so this is a new conversation. What was said here before is not part of it."


def asks_only_for_that(delivery: Delivery) -> bool:
    """Whether the message says nothing but that a new conversation is to begin."""
    return delivery.body.get("begins") == "asked"


def announcement(delivery: Delivery) -> NewPost | None:
    """The sentence that says so; `None`: the message begins none, or nothing was there before."""
    begins = delivery.body.get("begins")
    if begins is None:
        return None
    return notice(f"begins:{delivery.key}", delivery.thread_id, Notice(ASKED if begins == "asked" else QUIET))
