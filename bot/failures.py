"""What is said and kept of a delivery that failed, and how often it is tried."""

from __future__ import annotations

import hashlib

from bot.domain import Notice
from bot.logs import Mask
from bot.outbox import notice
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost

MAX_TRIES = 4
"""Times a delivery is handled before it is parked, when handling it fails."""
MAX_OUTAGE_TRIES = 60
"""Times a message is tried whose platform cannot be asked about it, over about an hour, before it is parked."""
MAX_DEATHS = 12
"""Times a delivery is taken up again after the process died in it, before it is parked."""
PAUSES = (1.0, 5.0, 15.0)
"""Seconds before the second, third and fourth try."""
CAUSE_LIMIT = 500
"""Characters of an error that are kept with its delivery; the whole of it is in the log."""
_mask = Mask()


def cause_of(error: Exception) -> str:
    """An error in one piece of text for the records: no tokens, no queries of links, of bounded length."""
    return _mask(f"{type(error).__name__}: {error}")[:CAUSE_LIMIT]


def reference_of(delivery: Delivery) -> str:
    """What a user can quote and an operator can search for: 8 hexadecimal characters, the same at every try."""
    return hashlib.sha256(delivery.key.encode()).hexdigest()[:8]


def for_author(key: str, delivery: Delivery, sentence: str) -> NewPost:
    """A sentence for the author of a delivery alone."""
    return notice(key, delivery.thread_id, Notice(sentence), only_for=delivery.body["person"])


def regret(delivery: Delivery, sentence: str) -> NewPost:
    """The sentence that tells a delivery's author of its failure, with the reference to it."""
    text = f"{sentence} (Reference {reference_of(delivery)})"
    return notice(f"error:{delivery.key}", delivery.thread_id, Notice(text, "error"))
